package cpu

import "sync/atomic"

// spans hands tiles out so that each worker goes through a run of neighbours: what a tile fetches ahead is then its worker's own next
// tile. Whoever is done with its run goes on with those of others. It serves a task of n tiles that takes claim(worker) for each.
type spans struct {
	runs []span
	n    int
}

type span struct {
	next atomic.Int64
	_    [56]byte // workers do not share cache lines
}

// cut starts anew with n tiles.
func (s *spans) cut(n, workers int) {
	if len(s.runs) != workers {
		s.runs = make([]span, workers)
	}
	s.n = n
	for w := range s.runs {
		s.runs[w].next.Store(int64(w * n / workers))
	}
}

// claim gives the worker a tile that nobody had.
func (s *spans) claim(worker int) int {
	workers := len(s.runs)
	for i := range workers {
		w := (worker + i) % workers
		if t := int(s.runs[w].next.Add(1) - 1); t < (w+1)*s.n/workers {
			return t
		}
	}
	panic("cpu: more tiles claimed than there are")
}
