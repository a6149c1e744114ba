package recipe

import (
	"fmt"
	"strings"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
)

// Size is a named recipe function.
type Size struct {
	Name string
	Doc  string
	Make func(arch string) (Recipe, error)
}

// Sizes lists the recipes in order of size.
func Sizes() []Size {
	return []Size{
		{"nano", "a few seconds, for tests", Nano},
		{"tiny", "minutes on a laptop: the speedrun's models", Tiny},
		{"mini", "3.4M parameters: the embedded models", Mini},
		{"small", "17M parameters, hours on a CPU", Small},
		{"160m", "12 × 768, one GPU", M160},
		{"830m", "24 × 1536, the paper's smallest scaling model", M830},
		{"1.4b", "24 × 2048, the paper's ablation model", B1},
		{"2.8b", "32 × 2560, the paper's scaling model", B2},
		{"6.8b", "32 × 4096, the paper's scaling model", B6},
		{"13.1b", "40 × 5120, the paper's largest", B13},
	}
}

// Named finds a recipe by size and architecture.
func Named(size, arch string) (Recipe, error) {
	var names []string
	for _, s := range Sizes() {
		if s.Name == size {
			return s.Make(arch)
		}
		names = append(names, s.Name)
	}
	return Recipe{}, fmt.Errorf("size: %q is unknown; there are %s", size, strings.Join(names, ", "))
}

// Pair returns runs of two architectures with equal size, data, seed and all other settings.
func Pair(size, a, b string) (Recipe, Recipe, error) {
	ra, err := Named(size, a)
	if err != nil {
		return ra, ra, err
	}
	rb, err := Named(size, b)
	return ra, rb, err
}

// shape is a size in terms of the baseline: heads counts the Transformer's.
type shape struct{ layers, dim, heads, ffn, context, vocab int }

// build turns a shape into an architecture of equal size. If value heads are wider than the baseline's, there are
// proportionally fewer. Extra parameters of the architecture (DIFF V2's second queries) are taken from the MLP.
func (s shape) build(arch string) (model.Config, error) {
	a, err := layer.LookupArch(arch)
	if err != nil {
		return model.Config{}, fmt.Errorf("model.%w", err)
	}
	c := model.Config{Arch: arch, Vocab: s.vocab, Context: s.context, Layers: s.layers, Dim: s.dim,
		Heads: s.heads / a.Values, HeadDim: s.dim / s.heads, FFN: s.ffn, TieEmbed: true, InitResidual: true,
		RopeInterleaved: true}
	if c, err = c.Complete(); err != nil {
		return c, fmt.Errorf("model.%w", err)
	}
	// The parameters of one column of the MLP over all layers, and the attention's excess over the baseline's 4·dim².
	const step = 8
	// In units of head_dim·dim.
	attn := a.QueryHeads(c.Heads, c.KVHeads) + a.Keys*c.KVHeads + a.Values*c.KVHeads + a.Values*c.Heads
	extra := attn*c.HeadDim*c.Dim - 4*c.Dim*c.Dim
	c.FFN -= extra / (3 * c.Dim) / step * step
	return c, nil
}

func (s shape) recipe(name, arch string, tr Train, lr float64) (Recipe, error) {
	c, err := s.build(arch)
	r := Recipe{
		Name: name + "-" + arch, Model: c,
		Tokenizer: Tokenizer{Vocab: s.vocab, Docs: 20000},
		Data:      Data{Sources: Paths("synthetic"), HeldOut: 0.02},
		Train:     tr,
		Optim:     optim.Default(),
	}
	r.Optim.LR = lr
	return r, err
}

func training(steps, batch, micro, seq int) Train {
	return Train{Seed: 1, Steps: steps, Batch: batch, MicroBatch: micro, SeqLen: seq,
		LogEvery: 100, EvalEvery: 200, EvalBatches: 8, SaveEvery: 200, KeepLast: 2}
}

// Nano is a byte-level model of a few thousand parameters, for tests.
func Nano(arch string) (Recipe, error) {
	s := shape{layers: 2, dim: 32, heads: 4, ffn: 88, context: 64, vocab: 260}
	r, err := s.recipe("nano", arch, training(20, 4, 4, 32), 3e-3)
	r.Tokenizer = Tokenizer{Path: "bytes"}
	r.Data.Sources = Paths("synthetic:docs=200")
	r.Optim.Warmup = 4
	r.Train.EvalEvery, r.Train.SaveEvery = 0, 5
	return r, err
}

// Tiny learns to retrieve in minutes on two cores. Documents are whole and most contain something to look up; half of
// the tokens are from documents of up to 512 bytes, which teach to retrieve earliest, half from documents of up to
// 1,024, as long as the context; names and numbers are single tokens of the vocabulary; output projections start at
// full scale.
func Tiny(arch string) (Recipe, error) {
	s := shape{layers: 3, dim: 128, heads: 4, ffn: 344, context: 256, vocab: 1024}
	r, err := s.recipe("tiny", arch, training(2000, 8, 8, 256), 1e-3)
	r.Model.InitResidual = false
	r.Data = Data{HeldOut: 0.02, Isolate: true, Sources: []Source{
		{Path: "synthetic:docs=120000,len=512,mix=needle:4+kv:4+prose:1", Weight: 0.5},
		{Path: "synthetic:seed=2,docs=60000,len=1024,mix=needle:4+kv:4+prose:1", Weight: 0.5}}}
	r.Tokenizer = Tokenizer{Vocab: s.vocab, Docs: 4000, Pattern: "gpt2"}
	r.Optim.Beta2 = 0.95
	return r, err
}

// Mini writes plain English and retrieves within 512 tokens; two of them are embedded in the binary. It learns to
// retrieve for the same reasons as Tiny.
func Mini(arch string) (Recipe, error) {
	s := shape{layers: 6, dim: 192, heads: 6, ffn: 512, context: 512, vocab: 4096}
	r, err := s.recipe("mini", arch, training(20000, 32, 32, 512), 2e-3)
	r.Model.InitResidual = false
	r.Data = Data{Sources: Paths("synthetic:docs=400000,len=2048,mix=needle:3+kv:2+prose:2"), HeldOut: 0.01,
		Isolate: true}
	r.Tokenizer = Tokenizer{Vocab: s.vocab, Docs: 8000, Pattern: "gpt2"}
	r.Optim.Beta2 = 0.95
	return r, err
}

// Small is the model of the CPU benchmarks: 8 × 384.
func Small(arch string) (Recipe, error) {
	s := shape{layers: 8, dim: 384, heads: 6, ffn: 1024, context: 2048, vocab: 8192}
	return s.recipe("small", arch, training(10000, 32, 8, 512), 1e-3)
}

// M160 is 12 × 768.
func M160(arch string) (Recipe, error) {
	s := shape{layers: 12, dim: 768, heads: 12, ffn: 2048, context: 2048, vocab: 50304}
	return s.recipe("160m", arch, training(20000, 128, 16, 2048), 6e-4)
}

// M830 is the paper's smallest scaling model: 24 × 1536, 16 heads of 96.
func M830(arch string) (Recipe, error) {
	s := shape{layers: 24, dim: 1536, heads: 16, ffn: 4096, context: 2048, vocab: 100288}
	return s.paper("830m", arch)
}

// B1 is the paper's 1.4B: 24 × 2048.
func B1(arch string) (Recipe, error) {
	s := shape{layers: 24, dim: 2048, heads: 16, ffn: 5460, context: 2048, vocab: 100288}
	return s.paper("1.4b", arch)
}

// B2 is the paper's 2.8B: 32 × 2560.
func B2(arch string) (Recipe, error) {
	s := shape{layers: 32, dim: 2560, heads: 20, ffn: 6912, context: 2048, vocab: 100288}
	return s.paper("2.8b", arch)
}

// B6 is the paper's 6.8B: 32 × 4096, at half the learning rate. At 16 bytes of state per parameter it needs 102 GiB, so
// one GPU of 141 GB trains it with recomputed blocks.
func B6(arch string) (Recipe, error) {
	s := shape{layers: 32, dim: 4096, heads: 32, ffn: 10880, context: 2048, vocab: 100288}
	return s.large("6.8b", arch)
}

// B13 is the paper's 13.1B: 40 × 5120. Its state needs 196 GiB: several GPUs.
func B13(arch string) (Recipe, error) {
	s := shape{layers: 40, dim: 5120, heads: 40, ffn: 13696, context: 2048, vocab: 100288}
	return s.large("13.1b", arch)
}

// large is paper with half the learning rate and recomputed blocks.
func (s shape) large(name, arch string) (Recipe, error) {
	r, err := s.paper(name, arch)
	r.Optim.LR, r.Train.Recompute = 7.5e-5, layer.RecomputeBlocks
	return r, err
}

// paper is a recipe of the paper's scaling runs: 40,000 steps of a quarter million tokens, 375 of them warm-up, then
// linear decay.
func (s shape) paper(name, arch string) (Recipe, error) {
	r, err := s.recipe(name, arch, training(40000, 128, 4, 2048), 1.5e-4)
	r.Optim.Warmup, r.Optim.Schedule = 375, "linear"
	return r, err
}
