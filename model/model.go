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
	feed   Feed          // for passes that are not recorded
	losses tensor.Tensor // Stat [1,N] of the last batch
	rows   int           // rows of the last pass, for Lambda
	lamBuf []float32
	chunks chunks
	ends   ends // of the last Run

	recompute layer.Recompute

	shared  [][]tensor.Tensor // by part: gradients of which each rank of a split model has a share
	parts   []int             // start of each part in Params.List, and its length
	lead    *lead             // sends operations to other ranks; nil if there are none
	told    []*Cache          // caches that the leading rank asked for
	twin    bool              // weights and rope belong to another model
	version int               // incremented when passes change: recorded work of an older version is stale
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

// declare makes the layers, which add their parameters to the table in order.
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

// Device is the device that holds the model.
func (m *Model) Device() device.Device { return m.dev }

// Free releases the model's memory; the model cannot be used afterwards.
func (m *Model) Free() {
	m.arena.Free()
	if !m.twin {
		m.Params.Free(m.dev)
		m.rope.Free(m.dev)
	}
	for _, b := range m.blocks {
		b.Attn.Free(m.dev)
	}
	m.feed.Free()
	m.chunks.free(m.dev)
}

// Init draws fresh weights from a seed.
func (m *Model) Init(seed uint64) { m.Params.Init(m.dev, seed) }

// settle compacts the arena.
func (m *Model) settle() {
	if m.arena.Settle() {
		m.version++
	}
}

// Recompute selects the activations that passes over batches drop; gradients are bit-identical. It changes the version.
func (m *Model) Recompute(r layer.Recompute) {
	if m.recompute != r {
		m.recompute = r
		m.version++
	}
}

// Version changes whenever passes do different work or use different memory: recordings of an older version are stale.
func (m *Model) Version() int { return m.version }

// ActivationBytes is the peak memory of passes so far.
func (m *Model) ActivationBytes() int { return m.arena.High() }

// Lambdas appends the mean λ of every layer in the last pass; nothing for an architecture without λ.
func (m *Model) Lambdas(dst []float64) []float64 {
	dst, _, _ = m.LambdaRange(dst)
	return dst
}

// LambdaRange is Lambdas with the minimum and maximum over layers and heads; NaN for an architecture without λ.
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
