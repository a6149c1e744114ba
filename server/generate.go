package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"antiphase/infer"
)

// textRoutes are those that generate text.
type textRoutes struct{ *core }

// call is a validated request for text.
type call struct {
	model    *Model
	id       string
	created  int64
	reqs     []infer.Request
	n        int  // choices per prompt
	logprobs bool // tokens are reported
	top      int  // number of top tokens for each
	stream   bool
	usage    bool // at the end of the stream
	dialect  dialect
}

// ask adds a prompt's requests, one for each choice. If cut is not 0 the prompt is truncated to its last cut tokens.
func (c *call) ask(ids []int32, cut int, p infer.Sampling, format func() infer.Constraint) {
	if cut > 0 && len(ids) > cut {
		ids = ids[len(ids)-cut:]
	}
	for range c.n {
		q := infer.Request{IDs: ids, Sampling: p}
		q.Sampling.Constraint = format()
		c.reqs = append(c.reqs, q)
	}
}

// dialect is how a route writes choices.
type dialect interface {
	// begin is a stream's first event of a choice; nil for none.
	begin(c *call, i int) any
	// chunk is an event that adds to a choice; nil for none.
	chunk(c *call, i int, p piece) any
	// end is the event with a choice's finish_reason.
	end(c *call, ch *choice) any
	// total is the last event, if the stream requested it.
	total(c *call, u usage) any
	// whole is the complete response.
	whole(c *call, list []*choice, u usage) any
}

// prepare completes the requests of a call: the caller's share of the prefix cache, lengths, log-probabilities.
func (t *textRoutes) prepare(r *http.Request, c *call, salt string) error {
	tokens := 0
	for i := range c.reqs {
		q := &c.reqs[i]
		q.Scope = caller(r) + "\x00" + salt
		room := c.model.Context - len(q.IDs)
		p := &q.Sampling
		switch {
		case len(q.IDs) > c.model.Context, room == 0 && !p.Echo:
			return &infer.ContextError{Prompt: len(q.IDs), Limit: c.model.Context, Of: "context"}
		case room == 0:
			p.ScoreOnly = true
		case p.MaxTokens == 0 && !p.ScoreOnly && t.cfg.Limits.MaxTokens > 0:
			p.MaxTokens = min(room, t.cfg.Limits.MaxTokens)
		}
		if c.logprobs {
			p.Logprobs = max(1, c.top)
		}
		p.Seed += uint64(i % c.n)
		if p.Echo {
			tokens += len(q.IDs)
		}
		if p.MaxTokens > 0 {
			room = min(room, p.MaxTokens)
		}
		if !p.ScoreOnly {
			tokens += room
		}
	}
	if most := t.cfg.Limits.requestTokens(c.model); tokens > most {
		return invalid("max_tokens",
			"%d answers may have %d tokens in all, the most of one request is %d; ask for shorter or fewer ones",
			len(c.reqs), tokens, most)
	}
	return nil
}

// run answers a call.
func (t *textRoutes) run(w http.ResponseWriter, r *http.Request, c *call) {
	if err := t.calls.begin(); err != nil {
		t.fail(w, r, err)
		return
	}
	defer t.calls.end()
	ctx, cancel := t.calls.deadline(r, t.cfg.Limits.Request)
	defer cancel()
	var out *events
	if c.stream {
		out = newEvents(w, &t.cfg.Limits)
		defer out.close()
	}
	list, err := t.compute(ctx, r, c, out)
	if err == nil {
		u := count(list, c.reqs, c.n)
		if out == nil {
			t.json(w, http.StatusOK, c.dialect.whole(c, list, u))
			return
		}
		if c.usage {
			err = out.send(c.dialect.total(c, u))
		}
		if err == nil {
			err = out.raw("[DONE]")
		}
		if err == nil {
			err = out.flush()
		}
	}
	if err != nil {
		t.abandon(w, r, out, err)
	}
}

// compute waits for admission and generates, writing to out if it is not nil.
func (t *textRoutes) compute(ctx context.Context, r *http.Request, c *call, out *events) (_ []*choice, err error) {
	defer func() { // a step that panics must still be reported to its client
		if p := recover(); p != nil {
			t.cfg.Log.Error("panic", "id", requestID(r), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	list := make([]*choice, len(c.reqs))
	tokens := 0
	for i := range list {
		list[i] = &choice{index: i, logprobs: c.logprobs, keep: !c.stream}
		tokens += len(c.reqs[i].IDs)
	}
	watch := t.metrics.watch(c.model, tokens)
	leave, err := c.model.gate.enter(ctx, caller(r), len(c.reqs), tokens)
	if err != nil {
		return nil, gone(r, err)
	}
	defer leave()
	watch.admitted()
	var lost error
	err = c.model.Engine.Stream(ctx, c.reqs, func(i int, ev infer.Event) bool {
		if lost != nil {
			return false
		}
		watch.event(i, ev)
		p := list[i].add(ev)
		if out != nil {
			lost = c.write(out, list[i], p)
		}
		return lost == nil
	}, func() {
		if out != nil && lost == nil {
			lost = out.flush()
		}
	})
	watch.finished(list, errors.Join(lost, err))
	if lost != nil {
		return nil, lost
	}
	return list, gone(r, err)
}

// gone distinguishes a disconnected client from other reasons to cancel.
func gone(r *http.Request, err error) error {
	if err != nil && r.Context().Err() != nil {
		return errGone
	}
	return err
}

// write sends what an event has added to a choice.
func (c *call) write(out *events, ch *choice, p piece) error {
	var list []any
	if !ch.begun {
		ch.begun = true
		list = append(list, c.dialect.begin(c, ch.index))
	}
	if p.text != "" || len(p.tokens) > 0 {
		list = append(list, c.dialect.chunk(c, ch.index, p))
	}
	if p.done && !ch.failed {
		list = append(list, c.dialect.end(c, ch))
	}
	for _, v := range list {
		if v == nil {
			continue
		}
		if err := out.send(v); err != nil {
			return err
		}
	}
	return nil
}
