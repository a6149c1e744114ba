package infer

import (
	"context"
	"fmt"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// benchModel is small enough for a processor and large enough that matrices dominate.
func benchModel(b *testing.B, arch string) *model.Model {
	c := model.Config{Arch: arch, Vocab: 4096, Context: 2048, Layers: 4, Dim: 256, Heads: 4, HeadDim: 64,
		TieEmbed: true}
	if arch == "diff" { // pairs of heads with values twice as wide: half as many for the same width
		c.Heads, c.HeadDim = 2, 64
	}
	return build(b, newCPU(b), c)
}

// BenchmarkDecode generates from short prompts; one iteration is a whole call of 64 tokens per sequence.
func BenchmarkDecode(b *testing.B) {
	for _, a := range layer.Archs() {
		m := benchModel(b, a.Name)
		for _, batch := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/batch=%d", a.Name, batch), func(b *testing.B) {
				const tokens = 64
				e := engine(b, m, nil, Options{Slots: batch})
				var reqs []Request
				for i := range batch {
					reqs = append(reqs, Request{IDs: []int32{int32(i), 1, 2, 3},
						Sampling: Sampling{Temperature: 0.8, TopK: 40, Seed: uint64(i), MaxTokens: tokens}})
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := e.Generate(context.Background(), reqs,
						func(int, Event) bool { return true }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*batch*tokens)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// BenchmarkPrefill computes a prompt of 1024 tokens and one more token.
func BenchmarkPrefill(b *testing.B) {
	for _, a := range layer.Archs() {
		m := benchModel(b, a.Name)
		b.Run(a.Name, func(b *testing.B) {
			const n = 1024
			e := engine(b, m, nil, Options{Slots: 1})
			req := []Request{{IDs: make([]int32, n), Sampling: Sampling{MaxTokens: 1}}}
			for b.Loop() {
				if err := e.Generate(context.Background(), req, func(int, Event) bool { return true }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
