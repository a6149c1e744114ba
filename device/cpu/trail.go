package cpu

import "antiphase/internal/simd"

// trail records which weight followed which. Decoding reads every weight once per step, always in the same order, and
// is bound by memory: so an idle worker, at the end of an op or during one that another worker does alone, prefetches
// the beginning of its share of the next weight.
type trail struct {
	last uintptr
	next map[uintptr]span // by the address of the previous weight
}

// span is a weight as shares distribute it: n tiles of size bytes.
type span struct {
	at      uintptr // never dereferenced: prefetching does not fault
	size, n int
}

// follow announces that the next op reads a weight, in shares.
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

// errand is a worker's prefetch while it waits.
type errand struct {
	at, end uintptr
	turn    int // when it started
}

// mostAhead is the number of bytes of an errand: they leave room in L2.
const mostAhead = 512 << 10

// look directs a worker to the pool's next weight. A run must be in progress.
func (e *errand) look(p *pool, worker int) {
	if e.turn == p.turns {
		return
	}
	from, to := shareOf(p.ahead.n, worker, len(p.shares.of))
	e.turn, e.at = p.turns, p.ahead.at+uintptr(from*p.ahead.size)
	e.end = e.at + uintptr(min(mostAhead, (to-from)*p.ahead.size))
}

// step prefetches a little.
func (e *errand) step() {
	if e.at < e.end {
		simd.Fetch(e.at)
		e.at += simd.FetchBytes
	}
}
