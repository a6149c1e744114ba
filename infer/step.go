package infer

import (
	"fmt"
	"slices"
)

// step computes one batch for all callers. It is called with the lock held and no step running, and returns so; while
// the model runs the lock is free for others to queue, leave and take their tokens.
func (e *Engine) step() {
	e.stepping = true
	e.reap()
	if !e.underWay() { // otherwise its rows are the step's
		e.admit()
		e.plan()
	}
	e.further = e.foresee()
	if len(e.rows.IDs) > 0 {
		e.compute()
	}
	e.stepping = false
	e.turn.Broadcast()
}

// compute runs the planned rows and distributes their tokens.
func (e *Engine) compute() {
	e.mu.Unlock()
	ended := false
	defer func() {
		if !ended { // a panic unwinds this goroutine; calls of others must not wait forever
			e.mu.Lock()
			e.fail(fmt.Errorf("infer: step %d panicked", e.stats.Steps))
			e.stepping = false
			e.turn.Broadcast()
			e.mu.Unlock()
		}
	}()
	err := e.exclusive(e.run)
	if err == nil {
		e.sample()
	}
	ended = true
	e.mu.Lock()
	if err != nil {
		e.fail(fmt.Errorf("infer: step %d: %w", e.stats.Steps, err))
	} else {
		e.publish()
	}
	e.stats.Steps++
	e.stats.Rows += len(e.rows.IDs)
}

// exclusive runs f while no other engine uses the device.
func (e *Engine) exclusive(f func() error) error {
	e.opt.Lock.Lock()
	defer e.opt.Lock.Unlock()
	return f()
}

// run is the model's part. If every sequence needs only its most likely token, only those are copied to the host.
func (e *Engine) run() error {
	if !e.underWay() {
		if err := e.cache.Run(e.rows); err != nil {
			return err
		}
	}
	if err := e.read(); err != nil || e.further { // a step in flight is not waited for
		return err
	}
	return e.model.Device().Sync()
}

// read fetches the step's best tokens, or its logits.
func (e *Engine) read() error {
	n := len(e.rows.Want)
	if e.greedy = n <= len(e.best) && !slices.ContainsFunc(e.batch, func(s *seq) bool { return !s.greedy() }); e.greedy {
		if err := e.readBest(e.best[:n]); err != nil {
			return err
		}
		if e.greedy = e.further || !slices.Contains(e.best[:n], -1); e.greedy { // otherwise the logits show what is wrong
			return nil
		}
	}
	if len(e.logits) < n*e.vocab { // an echo needs more rows than there are slots
		e.logits = make([]float32, n*e.vocab)
	}
	return e.cache.ReadLogits(e.logits[:n*e.vocab])
}

// sample turns the logits into tokens. A row that is not a distribution, or a constraint that panics, fails only its
// own sequence.
func (e *Engine) sample() {
	for _, s := range e.batch {
		s.fresh, s.freshTop = s.fresh[:0], s.freshTop[:0]
		if err := e.guarded(s); err != nil {
			err = fmt.Errorf("infer: step %d, after %d tokens: %w", e.stats.Steps, len(s.tokens), err)
			s.fresh = append(s.fresh, token{id: -1, reason: ReasonError, err: err})
		}
	}
}

// guarded is tokens with a panic turned into an error, because any caller's goroutine may run the step.
func (e *Engine) guarded(s *seq) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return e.tokens(s)
}

// tokens scores the requested prompt tokens and samples the next one if the last row was in the step.
func (e *Engine) tokens(s *seq) (err error) {
	if e.greedy {
		if !s.last {
			return nil
		}
		if e.best[s.want] < 0 {
			return errNoNumbers
		}
		e.give(s, token{id: e.best[s.want]})
		return nil
	}
	row := e.logits[s.want*e.vocab:]
	for range s.echo {
		s.scored++
		t := token{id: s.tokens[s.scored], prompt: true}
		had := len(s.freshTop)
		if t.logprob, s.freshTop, err = e.sampler.score(row[:e.vocab], t.id, s.sampling.Logprobs, s.freshTop); err != nil {
			return err
		}
		t.tops = len(s.freshTop) - had
		s.fresh = append(s.fresh, t)
		row = row[e.vocab:]
	}
	if !s.last {
		return nil
	}
	if len(s.tokens) == s.end { // an echo without room for an answer
		s.fresh = append(s.fresh, token{id: -1, reason: ReasonLength})
		return nil
	}
	var t token
	had := len(s.freshTop)
	if t.id, t.logprob, s.freshTop, err = e.sampler.next(row[:e.vocab], &s.sampling, &s.hist, s.freshTop); err != nil {
		return err
	}
	t.tops = len(s.freshTop) - had
	e.give(s, t)
	return nil
}

// give makes t the next token of s.
func (e *Engine) give(s *seq, t token) {
	t.reason = e.accept(s, t.id)
	s.fresh = append(s.fresh, t)
}

// publish passes the tokens to their owners and releases sequences that have ended.
func (e *Engine) publish() {
	for i := len(e.batch) - 1; i >= 0; i-- {
		s := e.batch[i]
		s.out = append(s.out, s.fresh...)
		s.outTop = append(s.outTop, s.freshTop...)
		e.remember(s)
		if n := len(s.fresh); n > 0 && s.fresh[n-1].reason != "" {
			e.release(s)
		}
	}
}

// fail ends the whole batch. The contents of the failed step's pages are invalid.
func (e *Engine) fail(err error) {
	for len(e.batch) > 0 {
		s := e.batch[len(e.batch)-1]
		s.out = append(s.out, token{id: -1, reason: ReasonError, err: err})
		e.drop(s)
		e.release(s)
	}
}
