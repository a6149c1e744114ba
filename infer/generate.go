package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Request is a prompt and its sampling settings.
type Request struct {
	IDs      []int32
	Sampling Sampling
	// Scope names the group of requests with which this one may share a prefix: keys and values of a prefix of an
	// earlier request with the same scope are reused. Empty shares nothing.
	Scope string
}

// Generate runs all requests in shared batches, with one another and with other calls. emit is called on the caller's
// goroutine for every token of every request, with i the request's index, and last with Done set. If it returns false
// that request ends at once, without a further event. Other requests are not affected.
//
// If any request is invalid nothing runs, and the error is a [*FieldError] or a [*ContextError]. A cancelled context
// ends all requests and its error is returned. A request whose logits are not finite fails with [ReasonError]; its
// error is returned when the others are done.
func (e *Engine) Generate(ctx context.Context, reqs []Request, emit func(i int, ev Event) bool) error {
	return e.Stream(ctx, reqs, emit, func() {})
}

// Stream is Generate for callers that forward events: rest is called when there are no more for now, before waiting for
// the next step.
func (e *Engine) Stream(ctx context.Context, reqs []Request, emit func(i int, ev Event) bool, rest func()) error {
	seqs := make([]*seq, len(reqs))
	outs := make([]*output, len(reqs))
	for i, r := range reqs {
		seqs[i] = &seq{tokens: slices.Clip(r.IDs), scope: r.Scope} // copied when admitted
		if err := e.begin(seqs[i], &r.Sampling); err != nil {
			return fmt.Errorf("infer: request %d: %w", i, err)
		}
		outs[i] = e.newOutput(seqs[i])
	}
	return e.serve(ctx, seqs, outs, emit, rest)
}

// serve queues sequences that begin has prepared and runs them to their end.
func (e *Engine) serve(ctx context.Context, seqs []*seq, outs []*output, emit func(int, Event) bool,
	rest func()) error {
	e.mu.Lock()
	for _, s := range seqs {
		if len(s.tokens) == s.end && !s.sampling.Echo { // nothing to do: no room for a single token
			s.out = append(s.out, token{id: -1, reason: ReasonLength})
		} else {
			e.sched.enqueue(s)
		}
	}
	e.mu.Unlock()
	defer e.settle(seqs) // also if emit panics
	fs := make([]func(Event) bool, len(outs))
	for i := range fs {
		fs[i] = func(ev Event) bool { return emit(i, ev) }
	}
	for open := len(outs); open > 0; {
		if !e.await(ctx, outs) {
			cancelled := token{id: -1, reason: ReasonCancelled}
			for i, o := range outs {
				if !o.closed {
					fs[i](o.event(&cancelled))
				}
			}
			return context.Cause(ctx)
		}
		open = 0
		for i, o := range outs {
			if o.closed {
				continue
			}
			if o.emit(fs[i]); o.closed {
				e.dismiss(o.seq)
			} else {
				open++
			}
		}
		rest()
	}
	return failures(outs)
}

// await returns true when any of outs has taken tokens, running steps if no other goroutine does, and false if the
// context is cancelled.
func (e *Engine) await(ctx context.Context, outs []*output) bool {
	e.mu.Lock()
	for {
		if ctx.Err() != nil {
			e.mu.Unlock()
			return false
		}
		some := false
		for _, o := range outs {
			if o.take() {
				some = true
			}
		}
		if some {
			e.mu.Unlock()
			return true
		}
		if e.stepping || e.claims > 0 {
			e.turn.Wait() // for one step
		} else {
			e.step()
		}
	}
}

// dismiss marks s as no longer wanted. It leaves before the next step.
func (e *Engine) dismiss(s *seq) {
	e.mu.Lock()
	s.leave = true
	e.mu.Unlock()
}

// settle ensures that seqs have left, waiting for a step that computes some of them. The last caller also waits for a
// step that was started ahead, so that nothing computes when no call is in progress.
func (e *Engine) settle(seqs []*seq) {
	e.mu.Lock()
	for _, s := range seqs {
		for s.leave = true; s.state != idle; {
			if e.stepping {
				e.turn.Wait()
			} else {
				e.sched.release(s)
			}
		}
	}
	for len(e.sched.batch) == 0 && !e.stepping && e.pass.underWay() {
		e.step()
	}
	e.mu.Unlock()
}

// failures joins the errors of single requests.
func failures(outs []*output) error {
	var list []error
	for i, o := range outs {
		if o.err != nil {
			list = append(list, fmt.Errorf("request %d: %w", i, o.err))
		}
	}
	return errors.Join(list...)
}
