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
func (e *Engine) underWay() bool { return e.cache.Fetching() > 0 }

// foresee reports whether the step after the next one to be collected can already be started, and takes pages for it:
// its sequences are known before any token is, and all need only their most likely token. No sequence loses pages for
// it.
func (e *Engine) foresee() bool {
	n := len(e.batch)
	if e.beside > 0 || n == 0 || n > e.aheadRows || n != len(e.rows.IDs) || len(e.queue) > 0 && len(e.slots) > 0 {
		return false // no, or other work waits, a sequence of the step in flight has ended, or a new one may be admitted
	}
	need := 0
	for _, s := range e.batch {
		if !s.last || !s.greedy() || len(s.tokens)+1 >= s.end {
			return false
		}
		need += max(0, e.pool.count(len(s.tokens)+1)-len(s.pages))
	}
	if need > e.pool.available() {
		return false
	}
	for _, s := range e.batch {
		e.grow(s, len(s.tokens)+1)
	}
	return true
}

// readBest reads the step's best tokens, after starting the next step if that is possible.
func (e *Engine) readBest(dst []int32) error {
	switch {
	case e.underWay():
		for _, s := range e.batch {
			s.cached++ // the token from the last step
		}
	case e.further:
		e.cache.FetchBest()
	default:
		return e.cache.ReadBest(dst)
	}
	if e.further {
		e.cache.Follow(len(dst))
		e.cache.FetchBest()
	}
	return e.cache.WaitBest(dst)
}
