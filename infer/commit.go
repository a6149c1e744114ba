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
	n := max(1, min(e.opt.PrefillChunk, e.model.Config.Context, e.store.pool.tokens())-1)
	largest := Request{IDs: make([]int32, n), Sampling: Sampling{Echo: true, MaxTokens: 1, IgnoreEOS: true}}
	for range 2 { // the first pass allocates activations piece by piece, the next one as one block
		if err := e.Generate(ctx, []Request{largest}, func(int, Event) bool { return true }); err != nil {
			return err
		}
	}
	e.stats = Stats{} // not caused by a request
	return nil
}
