package train

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"antiphase/model"
	"antiphase/recipe"
)

// BenchmarkStepOnText takes steps on rows of real text and on one batch of random ids, in turns, and reports the
// second's time over the first's: what is left of the bare step's speed with a loader before it.
func BenchmarkStepOnText(b *testing.B) {
	r, err := recipe.Tiny("transformer")
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []string{"data.sources=goroot", "data.max_tokens=4000000", "tokenizer.path=bytes",
		"train.steps=1000000", "data.isolate=false"} {
		if err := r.SetPair(s); err != nil {
			b.Fatal(err)
		}
	}
	if r, err = r.Complete(); err != nil {
		b.Fatal(err)
	}
	opt := options(b, b.TempDir())
	opt.Say = func(string, ...any) {}
	t, err := newRun(context.Background(), r, &opt)
	if err != nil {
		b.Fatal(err)
	}
	defer t.close()
	g := rand.New(rand.NewPCG(1, 1))
	bare := model.Batch{B: t.batch.B, T: t.batch.T, IDs: make([]int32, len(t.batch.IDs)),
		Targets: make([]int32, len(t.batch.IDs))}
	for i := range bare.IDs {
		bare.IDs[i], bare.Targets[i] = int32(g.IntN(r.Model.Vocab)), int32(g.IntN(r.Model.Vocab))
	}
	var text, random time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := t.step(); err != nil {
			b.Fatal(err)
		}
		text += time.Since(begin)
		begin = time.Now()
		if _, _, err := t.stepper.Step(&bare, 1, 0); err != nil {
			b.Fatal(err)
		}
		random += time.Since(begin)
	}
	b.ReportMetric(float64(random)/float64(text), "of-bare-speed")
}
