package infer

import (
	"context"
	"runtime"
	"testing"

	"antiphase/model"
)

// TestWaitingTakesLittle: of a thousand sequences that may fill a long context only those that run take memory for it.
// Before, a request of 64 prompts with 16 choices each took a thousand contexts at once.
func TestWaitingTakesLittle(t *testing.T) {
	const context64k, seqs = 1 << 16, 1000
	m := build(t, newCPU(t), model.Config{Arch: "diff", Vocab: 50, Context: context64k, Layers: 1, Dim: 16, Heads: 4,
		KVHeads: 2, HeadDim: 4})
	e := engine(t, m, nil, Options{Slots: 2, CacheTokens: context64k})
	reqs := make([]Request, seqs)
	for i := range reqs {
		reqs[i] = Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{RepetitionPenalty: 1.1, IgnoreEOS: true}}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := e.Generate(ctx, reqs, func(int, Event) bool {
		if after.Mallocs == 0 {
			runtime.ReadMemStats(&after)
			stop()
		}
		return true
	})
	if err == nil {
		t.Fatal("it was not stopped")
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d MiB for %d sequences of which two run; a context takes %d KiB", got>>20, seqs, context64k*4>>10)
	}
}
