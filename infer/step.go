package infer

import "fmt"

// step computes one batch for everybody. It is called with the lock held and nobody stepping, and returns so; while
// the model runs the lock is free for others to queue, leave and take their tokens.
func (e *Engine) step() {
	e.stepping = true
	e.reap()
	e.admit()
	e.plan()
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
	err := e.run()
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

// run is the model's part.
func (e *Engine) run() error {
	if err := e.model.Step(e.cache, e.rows, e.logits[:len(e.rows.Want)*e.vocab]); err != nil {
		return err
	}
	return e.model.Device().Sync()
}

// sample chooses a token for every sequence that has logits. A row of logits that is no distribution fails its
// sequence alone.
func (e *Engine) sample() {
	for _, s := range e.batch {
		if s.want < 0 {
			continue
		}
		t := &s.fresh
		*t = token{}
		row := e.logits[s.want*e.vocab:][:e.vocab]
		var err error
		t.id, t.logprob, s.freshTop, err = e.sampler.next(row, &s.sampling, &s.hist, s.freshTop[:0])
		if err != nil {
			t.reason, t.err = ReasonError, fmt.Errorf("infer: step %d, after %d tokens: %w", e.stats.Steps, len(s.tokens), err)
			continue
		}
		t.tops = len(s.freshTop)
		t.reason = e.accept(s, t.id)
	}
}

// publish hands the sampled tokens to their owners and lets go of those that have ended.
func (e *Engine) publish() {
	for i := len(e.batch) - 1; i >= 0; i-- {
		s := e.batch[i]
		if s.want < 0 {
			continue
		}
		s.out = append(s.out, s.fresh)
		s.outTop = append(s.outTop, s.freshTop[:s.fresh.tops]...)
		if s.fresh.reason != "" {
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
