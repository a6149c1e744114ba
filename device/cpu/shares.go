package cpu

import "sync/atomic"

// shares hand tiles out so that each worker goes through a run of neighbours: what a tile fetches ahead is then its worker's own next
// tile. Whoever is done with its share goes on with those of others. They serve a task of n tiles that takes claim(worker) for each.
type shares struct {
	of []share
	n  int
}

type share struct {
	next atomic.Int64
	_    [56]byte // workers do not share cache lines
}

// cut starts anew with n tiles.
func (s *shares) cut(n, workers int) {
	if len(s.of) != workers {
		s.of = make([]share, workers)
	}
	s.n = n
	for w := range s.of {
		s.of[w].next.Store(int64(w * n / workers))
	}
}

// claim gives the worker a tile that nobody had.
func (s *shares) claim(worker int) int {
	workers := len(s.of)
	for i := range workers {
		w := (worker + i) % workers
		if t := int(s.of[w].next.Add(1) - 1); t < (w+1)*s.n/workers {
			return t
		}
	}
	panic("cpu: more tiles claimed than there are")
}
