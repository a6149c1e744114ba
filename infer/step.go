package infer

import (
	"fmt"
	"slices"
)

// step computes one batch for everybody. It is called with the lock held and nobody stepping, and returns so; while
// the model runs the lock is free for others to queue, leave and take their tokens.
func (e *Engine) step() {
	e.stepping = true
	e.reap()
	if !e.underWay() { // else its rows are the step's
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

// compute runs the planned rows and hands out their tokens.
func (e *Engine) compute() {
	e.mu.Unlock()
	ended := false
	defer func() {
		if !ended { // a panic passes through this goroutine; the others' calls must not wait for ever
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

// run is the model's part. Where every sequence takes its likeliest token and asks for no more, only those come to the host.
func (e *Engine) run() error {
	if !e.underWay() {
		if err := e.model.Run(e.cache, e.rows); err != nil {
			return err
		}
	}
	if err := e.read(); err != nil || e.further { // what is under way is not waited for
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
		if e.greedy = e.further || !slices.Contains(e.best[:n], -1); e.greedy { // else the logits tell what is wrong with them
			return nil
		}
	}
	if len(e.logits) < n*e.vocab { // an echo wants more rows than there are slots
		e.logits = make([]float32, n*e.vocab)
	}
	return e.model.ReadLogits(e.logits[:n*e.vocab])
}

// sample makes tokens of the logits. A row that is no distribution, or a constraint that panics, fails its sequence alone.
func (e *Engine) sample() {
	for _, s := range e.batch {
		s.fresh, s.freshTop = s.fresh[:0], s.freshTop[:0]
		if err := e.guarded(s); err != nil {
			err = fmt.Errorf("infer: step %d, after %d tokens: %w", e.stats.Steps, len(s.tokens), err)
			s.fresh = append(s.fresh, token{id: -1, reason: ReasonError, err: err})
		}
	}
}

// guarded is tokens with a panic as an error: whose goroutine runs the step is chance.
func (e *Engine) guarded(s *seq) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return e.tokens(s)
}

// tokens scores the prompt tokens that were asked for and samples the next one if the last row was among the step's.
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

// publish hands the tokens to their owners and lets go of those that have ended.
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

// fail ends the whole batch. What the failed step left in the pages is not to be trusted.
func (e *Engine) fail(err error) {
	for len(e.batch) > 0 {
		s := e.batch[len(e.batch)-1]
		s.out = append(s.out, token{id: -1, reason: ReasonError, err: err})
		e.drop(s)
		e.release(s)
	}
}
