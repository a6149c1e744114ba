package model_test

import (
	"math/rand/v2"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// BenchmarkBackprop is forward and backward of the tiny pair, in tokens per second.
func BenchmarkBackprop(b *testing.B) {
	for _, a := range layer.Archs() {
		b.Run(a.Name, func(b *testing.B) {
			r, err := recipe.Tiny(a.Name)
			if err != nil {
				b.Fatal(err)
			}
			dev := cpu.New(cpu.Options{})
			defer dev.Close()
			m, err := model.New(dev, r.Model, layer.Memory{Train: true})
			if err != nil {
				b.Fatal(err)
			}
			m.Init(1)
			n := r.Train.MicroBatch * r.Train.SeqLen
			batch := &model.Batch{B: r.Train.MicroBatch, T: r.Train.SeqLen, IDs: make([]int32, n),
				Targets: make([]int32, n)}
			g := rand.New(rand.NewPCG(1, 2))
			for i := range batch.IDs {
				batch.IDs[i], batch.Targets[i] = int32(g.IntN(r.Model.Vocab)), int32(g.IntN(r.Model.Vocab))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Backprop(batch, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
