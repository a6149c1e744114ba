package cpu_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
)

// BenchmarkTrain is a whole training step (forward, backward, AdamW) of tiny on 8 sequences of 256 tokens and of small
// on 8 of 512, for every architecture and precision: tokens per second in the median step and, for a machine that is
// shared, in the fastest.
func BenchmarkTrain(b *testing.B) {
	for _, size := range []string{"tiny", "small"} {
		for _, a := range layer.Archs() {
			for _, p := range []cpu.Precision{cpu.FP32, cpu.BF16} {
				r, err := recipe.Named(size, a.Name)
				if err != nil {
					b.Fatal(err)
				}
				b.Run(size+"/"+a.Name+"/"+p.String(), func(b *testing.B) { benchTrain(b, r, p) })
			}
		}
	}
}

func benchTrain(b *testing.B, r recipe.Recipe, p cpu.Precision) {
	dev := cpu.New(cpu.Options{Precision: p})
	defer dev.Close()
	m, err := model.New(dev, r.Model, layer.Memory{Train: true})
	if err != nil {
		b.Fatal(err)
	}
	m.Init(1)
	o := optim.New(dev, m.Params, r.Optim)
	seqs, tokens := 8, r.Train.SeqLen
	batch := &model.Batch{B: seqs, T: tokens, IDs: make([]int32, seqs*tokens), Targets: make([]int32, seqs*tokens)}
	g := rand.New(rand.NewPCG(1, 2))
	for i := range batch.IDs {
		batch.IDs[i], batch.Targets[i] = int32(g.IntN(r.Model.Vocab)), int32(g.IntN(r.Model.Vocab))
	}
	step := func(t int) {
		m.Params.ZeroGrad(dev)
		if err := m.Backprop(batch, 1); err != nil {
			b.Fatal(err)
		}
		o.SetRate(t, 1e-4)
		o.Step()
	}
	step(1)
	b.ReportAllocs()
	var took []float64
	for b.Loop() {
		begin := time.Now()
		step(2 + len(took))
		took = append(took, time.Since(begin).Seconds())
	}
	slices.Sort(took)
	b.ReportMetric(float64(seqs*tokens)/took[len(took)/2], "tok/s")
	b.ReportMetric(float64(seqs*tokens)/took[0], "best-tok/s")
}
