package infer

import "fmt"

// step computes one batch for all callers. It is called with the lock held and no step running, and returns so; while
// the model runs the lock is free for others to queue, leave and take their tokens.
func (e *Engine) step() {
	e.stepping = true
	e.sched.reap()
	if !e.pass.underWay() { // otherwise its rows are the step's
		e.sched.admit()
		e.pass.plan()
	}
	e.pass.further = e.pass.foresee(e.beside == 0)
	if len(e.pass.rows.IDs) > 0 {
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
	err := e.exclusive(e.pass.run)
	if err == nil {
		e.pass.sample()
	}
	ended = true
	e.mu.Lock()
	if err != nil {
		e.fail(fmt.Errorf("infer: step %d: %w", e.stats.Steps, err))
	} else {
		e.publish()
	}
	e.stats.Steps++
	e.stats.Rows += len(e.pass.rows.IDs)
}

// exclusive runs f while no other engine uses the device.
func (e *Engine) exclusive(f func() error) error {
	e.opt.Lock.Lock()
	defer e.opt.Lock.Unlock()
	return f()
}

// publish passes the tokens to their owners and releases sequences that have ended.
func (e *Engine) publish() {
	for i := len(e.sched.batch) - 1; i >= 0; i-- {
		s := e.sched.batch[i]
		s.out = append(s.out, s.fresh...)
		s.outTop = append(s.outTop, s.freshTop...)
		n := len(s.fresh)
		if n > 0 && s.fresh[n-1].err != nil {
			e.store.disown(s)
		} else {
			e.store.remember(s)
		}
		if n > 0 && s.fresh[n-1].reason != "" {
			e.sched.release(s)
		}
	}
}

// fail ends the whole batch. The contents of the failed step's pages are invalid.
func (e *Engine) fail(err error) {
	for len(e.sched.batch) > 0 {
		s := e.sched.batch[len(e.sched.batch)-1]
		s.out = append(s.out, token{id: -1, reason: ReasonError, err: err})
		e.store.drop(s)
		e.sched.release(s)
	}
}
