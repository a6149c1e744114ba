package cpu

import "antiphase/internal/simd"

// trail remembers which weight followed which. Decoding reads every weight once a step, always in the same order, and memory is its bound: so a worker
// that has nothing to do, at the end of an op or beside one that is another's alone, fetches the beginning of its share of the next weight.
type trail struct {
	last uintptr
	next map[uintptr]span // by where the one before it lies
}

// span is a weight as shares hand it out: n tiles of size bytes.
type span struct {
	at      uintptr // never looked at: fetching does not fault
	size, n int
}

// follow says that the next op reads a weight, in shares.
func (d *machine) follow(s span) {
	t := &d.trail
	if t.next == nil {
		t.next = map[uintptr]span{}
	}
	if t.next[t.last] != s {
		t.next[t.last] = s
	}
	t.last = s.at
	d.pool.ahead, d.pool.turns = t.next[s.at], d.pool.turns+1
}

// errand is what a worker fetches while it waits.
type errand struct {
	at, end uintptr
	turn    int // when it set out
}

// mostAhead is the bytes of an errand: they leave room in the second cache.
const mostAhead = 512 << 10

// look sends a worker to the pool's next weight. The pool must be at a run.
func (e *errand) look(p *pool, worker int) {
	if e.turn == p.turns {
		return
	}
	from, to := shareOf(p.ahead.n, worker, len(p.shares.of))
	e.turn, e.at = p.turns, p.ahead.at+uintptr(from*p.ahead.size)
	e.end = e.at + uintptr(min(mostAhead, (to-from)*p.ahead.size))
}

// step fetches a little.
func (e *errand) step() {
	if e.at < e.end {
		simd.Fetch(e.at)
		e.at += simd.FetchBytes
	}
}
