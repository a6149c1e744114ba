package infer

import "errors"

// Decoding ahead. Where the device works behind the host (model.Cache's Ahead), a step of greedy decoding is started before the host has seen the
// tokens of the one before it: the device goes on from them by itself, and waiting, sampling, planning and the callers' own work take place beside it.
//
//	step() n−1:  …            wait for n−1's tokens, hand them out
//	step() n:    start n+1,   wait for n's tokens, hand them out
//
// A sequence that turns out to have ended, or whose owner has left, is no longer in the batch when the step under way is collected: its row there is
// thrown away. The row's keys and values lie beyond cached, in pages that others may be given at once, for their work comes behind it on the device.
// All others keep their rows. The batch does not grow before the step under way has been collected.

// errNoNumbers is all that is known of logits that the next step has overwritten.
var errNoNumbers = errors.New("the logits are no numbers: NaN or +Inf is among them, or all are -Inf")

// underWay says that a step was started whose tokens have not been seen. The rows are its rows.
func (e *Engine) underWay() bool { return e.cache.Fetching() > 0 }

// foresee says whether the step behind the next one to be collected can be started already, and takes pages for it: its sequences are known before
// any token is, and all they take is their likeliest one. Nobody loses pages for it.
func (e *Engine) foresee() bool {
	n := len(e.batch)
	if n == 0 || n > e.aheadRows || n != len(e.rows.IDs) || len(e.queue) > 0 && len(e.slots) > 0 {
		return false // no, or a sequence of the step under way has gone, or somebody may come in
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

// readBest reads the step's best tokens, behind the start of the next step where that is foreseen.
func (e *Engine) readBest(dst []int32) error {
	switch {
	case e.underWay():
		for _, s := range e.batch {
			s.cached++ // the token that the last step gave it
		}
	case e.further:
		e.model.FetchBest(e.cache)
	default:
		return e.model.ReadBest(dst)
	}
	if e.further {
		e.model.Follow(e.cache, len(dst))
		e.model.FetchBest(e.cache)
	}
	return e.model.WaitBest(e.cache, dst)
}
