package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counter counts how often each tile was done.
type counter struct {
	done  []atomic.Int32
	wrong atomic.Int32
	max   int
}

func (c *counter) tile(i, worker int) {
	c.done[i].Add(1)
	if worker < 0 || worker >= c.max {
		c.wrong.Add(1)
	}
}

// Every tile runs exactly once, with workers awake or parked, and all are done when run returns.
func TestPool(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for round := range 2000 {
			if round%500 == 499 {
				time.Sleep(2 * time.Millisecond) // let the helpers park
			}
			n := round % 37
			c := &counter{done: make([]atomic.Int32, n), max: threads}
			p.run(n, c)
			for i := range c.done {
				if k := c.done[i].Load(); k != 1 {
					t.Fatalf("%d threads, run %d: tile %d of %d done %d times", threads, round, i, n, k)
				}
			}
			if c.wrong.Load() != 0 {
				t.Fatalf("%d threads: a worker out of range", threads)
			}
		}
		p.close()
	}
}

// meeting is a run in which every tile waits for all others: each must have a worker of its own.
type meeting struct{ all sync.WaitGroup }

func (m *meeting) tile(int, int) {
	m.all.Done()
	m.all.Wait()
}

// All workers take part in every run, those that had parked too.
func TestAllWorkersCome(t *testing.T) {
	for _, threads := range []int{2, 3, 5} {
		p := newPool(threads)
		for round := range 20 {
			for parked := 0; round%10 == 9 && parked < len(p.helpers); runtime.Gosched() {
				parked = 0
				for i := range p.helpers {
					if p.helpers[i].parked.Load() {
						parked++
					}
				}
			}
			m := &meeting{}
			m.all.Add(threads)
			p.run(threads, m)
		}
		p.close()
	}
}

func BenchmarkPoolRun(b *testing.B) {
	p := newPool(2)
	defer p.close()
	c := &counter{done: make([]atomic.Int32, 8), max: 2}
	for b.Loop() {
		p.run(8, c)
	}
}
