package cpu_test

import (
	"math/rand/v2"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
)

// BenchmarkTrain is a whole training step (forward, backward, AdamW) of the 20M model on 8 sequences of 512 tokens, for every
// architecture and precision, in tokens per second.
func BenchmarkTrain(b *testing.B) {
	for _, a := range layer.Archs() {
		for _, p := range []cpu.Precision{cpu.FP32, cpu.BF16} {
			b.Run(a.Name+"/"+p.String(), func(b *testing.B) { benchTrain(b, a.Name, p) })
		}
	}
}

func benchTrain(b *testing.B, arch string, p cpu.Precision) {
	r, err := recipe.Small(arch)
	if err != nil {
		b.Fatal(err)
	}
	dev := cpu.New(cpu.Options{Precision: p})
	defer dev.Close()
	m, err := model.New(dev, r.Model, layer.Memory{Train: true})
	if err != nil {
		b.Fatal(err)
	}
	m.Init(1)
	o := optim.New(dev, m.Params, r.Optim)
	const seqs, tokens = 8, 512
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
	t := 2
	for b.Loop() {
		step(t)
		t++
	}
	b.ReportMetric(float64(b.N*seqs*tokens)/b.Elapsed().Seconds(), "tok/s")
}
