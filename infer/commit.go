package infer

import (
	"context"

	"antiphase/model"
)

// commit allocates the memory of full load: the pages, and what a step needs whose prompts fill its chunk and request
// all logits they may.
func commit(e *Engine) error {
	ctx := context.Background()
	err := e.Use(ctx, func(m *model.Model) error {
		e.store.cache.Commit()
		return m.Device().Sync()
	})
	if err != nil {
		return err
	}
	for range 2 { // the first pass allocates activations piece by piece, the next one as one block
		if err := e.Generate(ctx, largest(e), func(int, Event) bool { return true }); err != nil {
			return err
		}
	}
	e.stats = Stats{} // not caused by a request
	return nil
}

// largest are requests whose first step has as many rows as any: prompts that fill the chunk, and a single token in
// every slot that they leave.
func largest(e *Engine) []Request {
	list := make([]Request, e.opt.Slots)
	left, room := e.opt.PrefillChunk, e.store.pool.tokens()
	for i := range list {
		n := max(1, min(left, e.model.Config.Context, room-1))
		left -= n
		list[i] = Request{IDs: make([]int32, n), Sampling: Sampling{Echo: true, MaxTokens: 1, IgnoreEOS: true}}
	}
	return list
}
