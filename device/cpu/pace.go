package cpu

import "time"

// paces measure the speed of workers, on machines with cores of two speeds. Tiles are distributed on demand, so a slow
// core takes fewer of them; but its last tile may keep all others waiting. A worker therefore leaves the rest to the
// others if they will finish all of it before it would finish one. Which worker computes a tile never affects its bits.
type paces struct {
	of []pace
	on bool // only if cores differ: the clock is read twice per tile
}

type pace struct {
	slow  float64 // recent slowdown relative to the fastest; written between runs
	tiles int
	time  time.Duration // of this run's tiles
	_     [40]byte      // workers do not share cache lines
}

// slowCore is the slowdown above which a worker leaves tiles to others.
const slowCore = 1.5

func newPaces(workers int, on bool) paces {
	p := paces{make([]pace, workers), on}
	for w := range p.of {
		p.of[w].slow = 1
	}
	return p
}

// took counts a tile of a worker.
func (p *paces) took(worker int, d time.Duration) {
	p.of[worker].tiles++
	p.of[worker].time += d
}

// learn updates the speeds after a run, when no worker is running.
func (p *paces) learn() {
	least := time.Duration(1 << 62)
	for w := range p.of {
		if x := &p.of[w]; x.tiles > 0 {
			least = min(least, max(1, x.time/time.Duration(x.tiles)))
		}
	}
	for w := range p.of {
		x := &p.of[w]
		if x.tiles > 0 {
			x.slow = (3*x.slow + float64(x.time)/float64(x.tiles)/float64(least)) / 4
		} else if x.slow > 1 { // it may have moved to another core, so try it again occasionally
			x.slow = max(1, 0.99*x.slow)
		}
		x.tiles, x.time = 0, 0
	}
}

// yields reports whether a worker should leave the remaining tiles to the others. The fastest never does.
func (p *paces) yields(worker, left int) bool {
	mine, least, rate := p.of[worker].slow, p.of[worker].slow, 0.0
	for w := range p.of {
		if w != worker {
			rate += 1 / p.of[w].slow
			least = min(least, p.of[w].slow)
		}
	}
	underWay := float64(len(p.of)-1) / 2 // tiles: half of each that others are working on
	return mine > slowCore*least && mine*rate > float64(left)+underWay
}
