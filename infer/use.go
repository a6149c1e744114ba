package infer

import (
	"context"

	"antiphase/model"
)

// Use passes the model to f between two steps, for work other than generation, such as embeddings or attention maps. No
// step runs meanwhile, so f should be short. A cancelled context ends the wait, not f.
func (e *Engine) Use(ctx context.Context, f func(*model.Model) error) error {
	e.mu.Lock()
	for e.stepping || e.underWay() {
		if ctx.Err() != nil {
			e.mu.Unlock()
			return context.Cause(ctx)
		}
		if e.stepping {
			e.turn.Wait() // for one step
		} else {
			e.step() // a step that was started ahead must be collected first
		}
	}
	e.stepping = true
	e.mu.Unlock()
	defer func() { // also if f panics
		e.mu.Lock()
		e.stepping = false
		e.turn.Broadcast()
		e.mu.Unlock()
	}()
	e.opt.Lock.Lock()
	defer e.opt.Lock.Unlock()
	return f(e.model)
}
