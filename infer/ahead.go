package infer

import "errors"

// Decoding ahead. On an asynchronous device (model.Cache's Ahead), a step of greedy decoding is started before the host
// has seen the tokens of the previous one. The device continues from them itself, while the host waits, samples, plans
// and does the callers' work.
//
//	step() n−1:  …            wait for n−1's tokens, hand them out
//	step() n:    start n+1,   wait for n's tokens, hand them out
//
// A sequence that has ended, or whose owner has left, is no longer in the batch when the step in flight is collected;
// its row there is discarded. The row's keys and values are beyond cached, in pages that may be given to others at
// once, because their work is ordered after it on the device. All others keep their rows. The batch does not grow
// before the step in flight has been collected.

// errNoNumbers is all that is known about logits that the next step has overwritten.
var errNoNumbers = errors.New("the logits are unusable: NaN or +Inf is among them, or all are -Inf")

// underWay reports whether a step was started whose tokens have not been seen. The rows are its rows.
func (p *pass) underWay() bool { return p.store.cache.Fetching() > 0 }

// foresee reports whether the step after the next one to be collected can already be started, and takes pages for it:
// its sequences are known before any token is, and all need only their most likely token. No sequence loses pages for
// it. alone says that no other work waits for the device.
func (p *pass) foresee(alone bool) bool {
	n := len(p.sched.batch)
	if !alone || n == 0 || n > p.aheadRows || n != len(p.rows.IDs) || len(p.sched.queue) > 0 && len(p.sched.slots) > 0 {
		return false // other work waits, a sequence of the step in flight has ended, or a new one may be admitted
	}
	need := 0
	for _, s := range p.sched.batch {
		if !s.last || !s.greedy() || len(s.tokens)+1 >= s.end {
			return false
		}
		need += max(0, p.store.pool.count(len(s.tokens)+1)-len(s.pages))
	}
	if need > p.store.pool.available() {
		return false
	}
	for _, s := range p.sched.batch {
		p.sched.grow(s, len(s.tokens)+1)
	}
	return true
}

// readBest reads the step's best tokens, after starting the next step if that is possible.
func (p *pass) readBest(dst []int32) error {
	switch {
	case p.underWay():
		for _, s := range p.sched.batch {
			s.cached++ // the token from the last step
		}
	case p.further:
		p.store.cache.FetchBest()
	default:
		return p.store.cache.ReadBest(dst)
	}
	if p.further {
		p.store.cache.Follow(len(dst))
		p.store.cache.FetchBest()
	}
	return p.store.cache.WaitBest(dst)
}
