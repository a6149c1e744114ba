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

// minute is what became of a minute's load on a gate.
type minute struct {
	answered, refused int
	p99               time.Duration // of those answered
	goodput           float64       // answers within the deadline, per second
}

// flood sends requests as a Poisson process to a gate of 8 + 3 places, each request taking a quarter of a second with some spread, in
// virtual time: the numbers depend on the gate alone, not on the machine.
func flood(t *testing.T, rate float64, wait, deadline time.Duration) (m minute) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 60
		g := newGate(11, 256, 1<<30, wait)
		rnd := rand.New(rand.NewPCG(1, uint64(rate)))
		var mu sync.Mutex
		var wg sync.WaitGroup
		var times []time.Duration
		good := 0
		for start := time.Now(); time.Since(start) < seconds*time.Second; {
			time.Sleep(time.Duration(rnd.ExpFloat64() / rate * float64(time.Second)))
			work := time.Duration((0.15 + 0.2*rnd.Float64()) * float64(time.Second))
			wg.Go(func() {
				begin := time.Now()
				leave, err := g.enter(context.Background(), "one", 1, 64)
				mu.Lock()
				if err != nil {
					if m.refused++; time.Since(begin) != 0 {
						t.Error("a refusal took time")
					}
					mu.Unlock()
					return
				}
				mu.Unlock()
				time.Sleep(work)
				leave()
				mu.Lock()
				defer mu.Unlock()
				times = append(times, time.Since(begin))
				if time.Since(begin) <= deadline {
					good++
				}
			})
		}
		wg.Wait()
		slices.Sort(times)
		m.answered, m.p99, m.goodput = len(times), times[len(times)*99/100], float64(good)/seconds
	})
	return m
}

// TestGoodputUnderOverload: at 1, 2 and 10 times the capacity of 44 requests a second goodput stays within 0.9 of the best, and whoever is
// accepted is answered about as soon. Without the bound on the wait both are lost, which is why there is one.
func TestGoodputUnderOverload(t *testing.T) {
	const capacity, deadline = 44, 5 * time.Second
	best, at := 0.0, map[float64]minute{}
	for _, times := range []float64{1, 2, 10} {
		m := flood(t, times*capacity, time.Second, deadline)
		t.Logf("%2.0f ×: %d answered, %d refused, p99 %v, goodput %.1f/s", times, m.answered, m.refused, m.p99, m.goodput)
		best, at[times] = max(best, m.goodput), m
	}
	if g := at[10].goodput; g < 0.9*best {
		t.Errorf("goodput at ten times the capacity is %.1f, %.2f of the best", g, g/best)
	}
	if p := at[10].p99; p > at[1].p99*3/2 {
		t.Errorf("p99 at ten times the capacity is %v, at the capacity %v", p, at[1].p99)
	}
	if m := flood(t, 10*capacity, 0, deadline); m.goodput > 0.5*best {
		t.Errorf("without the bound goodput is %.1f/s: what is it for?", m.goodput)
	}
}
