package cpu

import "sync/atomic"

// shares distribute the tiles of a run so that each worker processes adjacent ones, the same ones in every op whose
// tiles are rows: what an op leaves in a worker's cache is what its next op needs, and what a tile prefetches is its
// worker's own next tile. A worker that has finished its share takes tiles of others.
type shares struct {
	of []share
	n  int
}

type share struct {
	next atomic.Int64
	_    [56]byte // workers do not share cache lines
}

func newShares(workers int) shares { return shares{of: make([]share, workers)} }

// cut starts over with n tiles.
func (s *shares) cut(n int) {
	s.n = n
	for w := range s.of {
		from, _ := shareOf(n, w, len(s.of))
		s.of[w].next.Store(int64(from))
	}
}

// claim gives the worker a tile that has not been taken; ok is false if there is none.
func (s *shares) claim(worker int) (tile int, ok bool) {
	workers := len(s.of)
	for i := range workers {
		w := (worker + i) % workers
		_, to := shareOf(s.n, w, workers)
		if t := int(s.of[w].next.Add(1) - 1); t < to {
			return t, true
		}
	}
	return 0, false
}

// left is about the number of tiles not yet taken.
func (s *shares) left() (n int) {
	for w := range s.of {
		_, to := shareOf(s.n, w, len(s.of))
		n += max(0, to-int(s.of[w].next.Load()))
	}
	return n
}

// shareOf is worker w's part of n tiles.
func shareOf(n, w, workers int) (from, to int) { return w * n / workers, (w + 1) * n / workers }
