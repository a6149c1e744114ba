package cpu

import (
	"math"
	"sync/atomic"
	"testing"
	"time"
)

// race runs n tiles on workers that take so many turns for each, by a clock of its own, and gives the turn in which the
// last tile is done.
func race(n int, speeds []int, p *paces) (end int) {
	s := newShares(len(speeds))
	s.cut(n)
	free := make([]int, len(speeds)) // when each worker is done with its tile
	gone, done := make([]bool, len(speeds)), 0
	for now := 0; done < len(speeds); now++ {
		for w, each := range speeds {
			if gone[w] || free[w] > now {
				continue
			}
			if free[w] > 0 {
				p.took(w, time.Duration(each))
			}
			_, ok := 0, false
			if !p.on || !p.yields(w, s.left()) {
				_, ok = s.claim(w)
			}
			if !ok {
				gone[w], done = true, done+1
				continue
			}
			free[w] = now + each
			end = max(end, free[w])
		}
	}
	p.learn()
	return end
}

// optimum is the least number of turns that anyone could need.
func optimum(n int, speeds []int) (turns int) {
	for done := 0; done < n; turns++ {
		done = 0
		for _, each := range speeds {
			done += (turns + 1) / each
		}
	}
	return turns
}

// With four fast cores and four that are a quarter as fast, runs of few tiles end soon after the time that the best
// plan would take.
func TestSlowCoresDoNotHoldUp(t *testing.T) {
	speeds := []int{100, 100, 100, 100, 400, 400, 400, 400}
	var sum, ideal, worst [2]float64
	for i, on := range []bool{false, true} {
		p := newPaces(len(speeds), on)
		for range 20 {
			race(64, speeds, &p)
		}
		for n := 8; n <= 128; n++ {
			took, best := float64(race(n, speeds, &p)), float64(optimum(n, speeds))
			sum[i], ideal[i], worst[i] = sum[i]+took, ideal[i]+best, max(worst[i], took/best)
		}
	}
	t.Logf("over the best plan: %.2f, at worst %.2f; leaving the rest to others %.2f, at worst %.2f", sum[0]/ideal[0],
		worst[0], sum[1]/ideal[1], worst[1])
	if sum[1]/ideal[1] > 1.05 || worst[1] > 1.35 {
		t.Errorf("runs take %.2f times as long as the best plan, at worst %.2f times", sum[1]/ideal[1], worst[1])
	}
}

// A worker's slowdown moves a quarter of the way to what a run shows; one that took nothing comes back slowly, to 1 at
// most.
func TestPacesLearn(t *testing.T) {
	p := newPaces(4, true)
	p.of[2].slow, p.of[3].slow = 3, 1.001
	p.took(0, 10)
	p.took(0, 30) // 20 each
	p.took(1, 100)
	p.learn()
	for w, want := range []float64{1, (3 + 5) / 4., 0.99 * 3, 1} {
		if got := p.of[w]; !(math.Abs(got.slow-want) <= 1e-12) || got.tiles != 0 || got.time != 0 {
			t.Errorf("worker %d: %+v, want %g", w, got, want)
		}
	}
}

// Tiles too short for the clock say nothing of who is slow.
func TestPacesOfNoTime(t *testing.T) {
	p := newPaces(2, true)
	p.took(0, 0)
	p.took(1, 0)
	p.learn()
	p.took(0, 0)
	p.took(1, 5)
	p.learn()
	for w, x := range p.of {
		if !(x.slow >= 0.5 && x.slow < 10) {
			t.Errorf("worker %d is %g times as slow", w, x.slow)
		}
	}
}

// A slow worker leaves the rest if the others, having done half of what they are at, do it while it would do one tile.
func TestWhoYields(t *testing.T) {
	for _, c := range []struct {
		slow []float64
		left int
		want bool // of worker 0
	}{
		{[]float64{4, 1}, 3, true}, {[]float64{4, 1}, 4, false}, {[]float64{4, 1, 1}, 6, true},
		{[]float64{4, 1, 1}, 7, false},
		{[]float64{4, 1, 2}, 4, true}, {[]float64{4, 1, 2}, 5, false}, {[]float64{1, 4, 4}, 0, false},
		{[]float64{4}, 0, false},
		{[]float64{1.5, 1, 1, 1}, 0, false}, {[]float64{1.6, 1, 1, 1}, 0, true}, {[]float64{4, 3, 3, 3}, 0, false},
	} {
		p := newPaces(len(c.slow), true)
		for w, x := range c.slow {
			p.of[w].slow = x
		}
		if got := p.yields(0, c.left); got != c.want {
			t.Errorf("slowdowns %g, %d left: %v", c.slow, c.left, got)
		}
	}
}

// Equal cores keep taking all there is.
func TestEqualCoresKeepAll(t *testing.T) {
	speeds := []int{100, 100, 100, 100}
	with, without := newPaces(4, true), newPaces(4, false)
	for n := 1; n <= 64; n++ {
		if a, b := race(n, speeds, &with), race(n, speeds, &without); a != b {
			t.Fatalf("%d tiles: %d turns instead of %d", n, a, b)
		}
	}
}

type countTiles struct{ done []atomic.Int32 }

func (c *countTiles) tile(i, worker int) {
	if worker > 0 {
		time.Sleep(100 * time.Microsecond) // a slow core
	}
	c.done[i].Add(1)
}

// The caller of a run leaves tiles where it is slow, counts those that it does where it is not, and in the end does
// what nobody came for.
func TestPacedCaller(t *testing.T) {
	p := newPool(2)
	defer p.close()
	for _, slow := range []float64{1, 100} {
		c := countTiles{make([]atomic.Int32, 5)}
		p.paces = newPaces(2, true)
		p.paces.of[0].slow = slow
		p.task = &c
		p.shares.cut(5)
		p.work(0)
		if left, counted := p.shares.left(), p.paces.of[0].tiles; slow == 1 && (left != 0 || counted != 5) ||
			slow > 1 && (left != 5 || counted != 0) {
			t.Errorf("%g times as slow: %d tiles left, %d counted", slow, left, counted)
		}
		p.settle()
		for i := range c.done {
			if n := c.done[i].Load(); n != 1 {
				t.Errorf("%g times as slow: tile %d was done %d times", slow, i, n)
			}
		}
		if x := p.paces.of[0]; slow > 1 && x.slow != 0.99*slow || x.tiles != 0 {
			t.Errorf("after a run: %+v", x)
		}
	}
}

// Every tile is done once, whoever leaves what to whom.
func TestSlowCoresDoAll(t *testing.T) {
	p := newPool(3)
	defer p.close()
	p.paces.on = true
	for n := 1; n < 60; n++ {
		c := countTiles{make([]atomic.Int32, n)}
		p.run(n, &c)
		for i := range c.done {
			if x := c.done[i].Load(); x != 1 {
				t.Fatalf("tile %d of %d was done %d times", i, n, x)
			}
		}
	}
}
