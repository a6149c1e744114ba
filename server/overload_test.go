package server

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeEngine decodes in shared steps, in virtual time: a step takes a while by itself, and longer the more sequences
// are in it.
type fakeEngine struct {
	slots, base, each int               // of a step: microseconds, and microseconds for each sequence
	slow              func(int) float64 // by the second: how many times as long steps take
	begin             time.Time
	queue, batch      []*fakeSeq
	mu                sync.Mutex
	wake              chan struct{}
}

type fakeSeq struct {
	left int
	done chan struct{}
}

// run computes steps until the context ends.
func (e *fakeEngine) run(ctx context.Context) {
	for {
		e.mu.Lock()
		for len(e.batch) < e.slots && len(e.queue) > 0 {
			e.batch, e.queue = append(e.batch, e.queue[0]), e.queue[1:]
		}
		n := len(e.batch)
		e.mu.Unlock()
		if n == 0 {
			select {
			case <-e.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		factor := e.slow(int(time.Since(e.begin) / time.Second))
		time.Sleep(time.Duration(factor * float64(e.base+n*e.each) * float64(time.Microsecond)))
		e.mu.Lock()
		e.batch = slices.DeleteFunc(e.batch, func(s *fakeSeq) bool {
			if s.left--; s.left == 0 {
				close(s.done)
			}
			return s.left == 0
		})
		e.mu.Unlock()
	}
}

// generate takes as many steps as there are tokens.
func (e *fakeEngine) generate(tokens int) {
	s := &fakeSeq{tokens, make(chan struct{})}
	e.mu.Lock()
	e.queue = append(e.queue, s)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	<-s.done
}

// outcome is what became of a load.
type outcome struct {
	answered, refused int
	p99               time.Duration // of those answered
	goodput           float64       // answers within the deadline, per second
}

// traffic is a kind of requests and the machine that they meet.
type traffic struct {
	low, high int // tokens of an answer
	slow      func(second int) float64
}

// meet sends requests for so many seconds of virtual time to a gate before a fake engine of eight slots: as a Poisson
// process at a rate or, without one, so that eleven are always open. The numbers depend on the gate alone, not on the
// machine.
func (c traffic) meet(t *testing.T, seconds, rate float64, wait, deadline time.Duration) (m outcome) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		e := &fakeEngine{slots: 8, base: 3000, each: 300, slow: c.slow, begin: time.Now(), wake: make(chan struct{}, 1)}
		var wg, engine sync.WaitGroup
		engine.Go(func() { e.run(ctx) })
		g := newGate(11, 256, 1<<30, wait)
		rnd := rand.New(rand.NewPCG(1, uint64(rate)))
		var mu sync.Mutex
		var times []time.Duration
		good := 0
		ask := func(tokens int) {
			begin := time.Now()
			leave, err := g.enter(context.Background(), "one", 1, 64)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if m.refused++; time.Since(begin) != 0 {
					t.Error("a refusal took time")
				}
				return
			}
			e.generate(tokens)
			leave()
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(begin))
			if time.Since(begin) <= deadline {
				good++
			}
		}
		draw := func() int { return c.low + rnd.IntN(c.high-c.low+1) }
		open := make(chan struct{}, 11)
		for start := time.Now(); time.Since(start).Seconds() < seconds; {
			if rate > 0 {
				time.Sleep(time.Duration(rnd.ExpFloat64() / rate * float64(time.Second)))
			} else {
				open <- struct{}{}
			}
			tokens := draw()
			wg.Go(func() {
				ask(tokens)
				if rate == 0 {
					<-open
				}
			})
		}
		wg.Wait()
		stop()
		engine.Wait()
		slices.Sort(times)
		m.answered, m.p99, m.goodput = len(times), times[len(times)*99/100], float64(good)/seconds
	})
	return m
}

// TestOverloadBars: at 1, 2 and 10 times what the server can take, goodput stays within 0.9 of the best and accepted
// requests are answered about as soon, without a setting: whether answers take a tenth of a second or ten, whether they
// are equal or not, and on a machine whose speed changes every second.
func TestOverloadBars(t *testing.T) {
	steady := func(int) float64 { return 1 }
	changing := func(second int) float64 {
		return 1 + 2*rand.New(rand.NewPCG(9, uint64(second))).Float64()
	}
	for name, c := range map[string]traffic{
		"short":            {16, 16, steady},
		"medium":           {32, 96, steady},
		"long":             {600, 1000, steady},
		"mixed":            {2, 300, steady},
		"a busy machine":   {32, 96, changing},
		"short on a busy":  {8, 24, changing},
		"very long, mixed": {50, 2000, steady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			capacity := float64(c.meet(t, 60, 0, 0, time.Hour).answered) / 60
			seconds := max(60, 1500/capacity) // a p99 of few is the worst of few
			deadline := time.Duration(20 * 11 / capacity * float64(time.Second))
			best, at := 0.0, map[float64]outcome{}
			for _, times := range []float64{1, 2, 10} {
				m := c.meet(t, seconds, times*capacity, 0, deadline)
				t.Logf("%2.0f × %.1f/s: %d answered, %d refused, p99 %v, goodput %.1f/s", times, capacity, m.answered,
					m.refused, m.p99, m.goodput)
				best, at[times] = max(best, m.goodput), m
			}
			if g := at[10].goodput; g < 0.9*best {
				t.Errorf("goodput at ten times the capacity is %.1f, %.2f of the best", g, g/best)
			}
			if p := at[10].p99; p > at[1].p99*3/2 {
				t.Errorf("p99 at ten times the capacity is %v, at the capacity %v: %.2f times", p, at[1].p99,
					float64(p)/float64(at[1].p99))
			}
		})
	}
}

// TestLongQueueLosesGoodput: without a bound on the wait, goodput within five seconds is lost at ten times the
// capacity: what the bound is for.
func TestLongQueueLosesGoodput(t *testing.T) {
	c := traffic{32, 96, func(int) float64 { return 1 }}
	const deadline = 5 * time.Second
	bounded, endless := c.meet(t, 60, 300, 0, deadline), c.meet(t, 60, 300, time.Hour, deadline)
	if endless.goodput > 0.5*bounded.goodput {
		t.Errorf("goodput with a bound %.1f/s, without %.1f/s", bounded.goodput, endless.goodput)
	}
}
