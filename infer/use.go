package infer

import (
	"context"

	"antiphase/model"
)

// Use passes the engine's model to f between two steps, and after a call of Beside that has begun. No step runs
// meanwhile, so f must be short; longer work belongs in Beside. A cancelled context ends the wait, not f.
func (e *Engine) Use(ctx context.Context, f func(*model.Model) error) error {
	t := newTurn(e)
	defer t.end()
	if !t.take(ctx) {
		return context.Cause(ctx)
	}
	return f(e.model)
}

// Beside passes a twin of the model (see model.Twin) to f, for work other than generation, such as embeddings or
// attention maps. f calls rest between pieces of its work; each call computes one step if there are sequences. So how
// long a sequence waits for its next token depends on a piece, not on the whole. One call runs at a time; the next
// waits until its context ends.
func (e *Engine) Beside(ctx context.Context, f func(m *model.Model, rest func()) error) error {
	select {
	case <-e.aside:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { e.aside <- struct{}{} }()
	t := newTurn(e)
	defer t.end()
	if !t.take(ctx) {
		return context.Cause(ctx)
	}
	if e.twin == nil {
		e.twin = model.Twin(e.model)
	}
	return f(e.twin, t.pass)
}

// turn is exclusive use of the device between two steps.
type turn struct {
	e    *Engine
	held bool
}

// newTurn announces a turn: until its end no step is started ahead. It must be ended.
func newTurn(e *Engine) *turn {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.beside++
	return &turn{e: e}
}

// take waits for the current step, and for one that was started ahead. It is false if the context ended first.
func (t *turn) take(ctx context.Context) bool {
	t.e.mu.Lock()
	t.e.claims++
	return t.await(ctx)
}

// await is take after the claim. It begins with the engine locked and ends with it unlocked.
func (t *turn) await(ctx context.Context) bool {
	e := t.e
	for e.stepping || e.pass.underWay() {
		switch {
		case ctx.Err() != nil:
			e.claims--
			e.turn.Broadcast() // to those who let the claim go first
			e.mu.Unlock()
			return false
		case e.stepping:
			e.turn.Wait() // for one step
		default: // collect what was started ahead
			e.claims-- // in case it panics
			e.step()
			e.claims++
		}
	}
	e.claims--
	e.stepping = true
	e.mu.Unlock()
	e.opt.Lock.Lock()
	t.held = true
	return true
}

// pass computes one step if there are sequences, and takes the next turn. From the end of this turn to the claim on the
// next the engine is unlocked only within that step: otherwise others could compute any number of steps in between.
func (t *turn) pass() {
	e := t.e
	t.held = false
	e.opt.Lock.Unlock()
	e.mu.Lock()
	e.stepping = false
	if len(e.sched.batch)+len(e.sched.queue) > 0 {
		e.step()
	}
	e.claims++
	t.await(context.Background()) // the work itself ends when its context does
}

// end lets steps run again, also if the work panics.
func (t *turn) end() {
	if t.held { // false if a step inside pass has panicked
		t.e.opt.Lock.Unlock()
	}
	t.e.mu.Lock()
	if t.held {
		t.e.stepping = false
		t.e.turn.Broadcast()
	}
	t.e.beside--
	t.e.mu.Unlock()
}
