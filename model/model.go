package model

import (
	"fmt"
	"math"
	"slices"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Model is a network with its memory on one device. It is used by one goroutine at a time.
type Model struct {
	Config Config
	Params *layer.ParamSet

	dev    device.Device
	arena  *tensor.Arena
	embed  *layer.Embed
	rope   *layer.Rope
	blocks []*Block
	norm   *layer.Norm
	loss   *layer.Loss

	pass   layer.Pass
	feed   Feed          // of passes that are not recorded
	losses tensor.Tensor // Stat [1,N] of the last batch
	rows   int           // rows of its last pass, for Lambda
	lamBuf []float32
	chunks chunks
	ends   ends // of the last Run

	recompute layer.Recompute

	shared  [][]tensor.Tensor // by part: gradients of which each rank of a split model has a share
	parts   []int             // where the parts begin in Params.List, and its length
	lead    *lead             // tells other ranks what is done here; nil: nobody listens
	told    []*Cache          // that a rank which leads has asked for
	version int               // of what passes do: recorded work of an older one is stale
}

// New builds a model of a complete configuration (see Config.Complete) on d. Weights are zero until Init or Load.
func New(d device.Device, c Config, m layer.Memory) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := c.CheckSplit(m.Split.Parts()); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	freq, factor, _ := c.Frequencies()
	rope := layer.NewRope(d, freq, c.Context, factor, c.RopeInterleaved)
	mod := &Model{Config: c, Params: layer.NewParamSet(), dev: d, arena: tensor.NewArena(d), rope: rope, lamBuf: make([]float32, c.Heads)}
	mod.Params.Split = m.Split
	mod.declare(rope)
	mod.Params.Alloc(d, m)
	mod.findShared()
	return mod, nil
}

// declare makes the layers, which enter their parameters into the table in order.
func (m *Model) declare(rope *layer.Rope) {
	c, ps := m.Config, m.Params
	m.embed = layer.NewEmbed(ps, c.Vocab, c.Dim)
	m.blocks, m.parts = nil, []int{0}
	for l := range c.Layers {
		first := len(ps.List)
		b := newBlock(ps, c, l, rope)
		m.blocks, m.parts = append(m.blocks, b), append(m.parts, first, first+slices.Index(ps.List[first:], b.Norm2.W))
	}
	m.parts = append(m.parts, len(ps.List))
	m.norm = layer.NewNorm(ps, "norm", c.Dim, c.NormEps)
	w := m.embed.Table
	if !c.TieEmbed {
		w = nil
	}
	m.loss = layer.NewLoss(ps, w, c.Vocab, c.Dim)
	m.parts = append(m.parts, len(ps.List))
}

// Table is the parameter table of a configuration, without memory.
func Table(c Config) *layer.ParamSet {
	m := &Model{Config: c, Params: layer.NewParamSet()}
	m.declare(nil)
	return m.Params
}

func (c Config) residualGain() float64 {
	if c.InitResidual {
		return 1 / math.Sqrt(2*float64(c.Layers))
	}
	return 1
}

// Device is where the model lives.
func (m *Model) Device() device.Device { return m.dev }

// Free gives the model's memory back; it cannot be used afterwards.
func (m *Model) Free() {
	m.arena.Free()
	m.Params.Free(m.dev)
	m.rope.Free(m.dev)
	for _, b := range m.blocks {
		b.Attn.Free(m.dev)
	}
	m.feed.Free()
	m.chunks.free(m.dev)
}

// Init draws fresh weights from a seed.
func (m *Model) Init(seed uint64) { m.Params.Init(m.dev, seed) }

// settle puts the memory of the passes before into one piece.
func (m *Model) settle() {
	if m.arena.Settle() {
		m.version++
	}
}

// Recompute sets which activations passes over batches drop; gradients keep their bits. It changes the version.
func (m *Model) Recompute(r layer.Recompute) {
	if m.recompute != r {
		m.recompute = r
		m.version++
	}
}

// Version changes whenever passes do other work, or on other memory, than before: what was recorded is then stale.
func (m *Model) Version() int { return m.version }

// ActivationBytes is the most memory that passes have needed so far.
func (m *Model) ActivationBytes() int { return m.arena.High() }

// Lambdas appends the mean λ of every layer in the last pass; nothing for an architecture without λ.
func (m *Model) Lambdas(dst []float64) []float64 {
	dst, _, _ = m.LambdaRange(dst)
	return dst
}

// LambdaRange is Lambdas with the least and the largest λ of any layer and head, NaN for an architecture without λ.
func (m *Model) LambdaRange(dst []float64) (mean []float64, lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for i, b := range m.blocks {
		s, ok := b.Attn.Lambda(m.dev, m.rows, m.lamBuf)
		if !ok {
			continue
		}
		if dst = append(dst, s.Mean); i == 0 {
			lo, hi = s.Min, s.Max
		}
		lo, hi = min(lo, s.Min), max(hi, s.Max)
	}
	return dst, lo, hi
}
