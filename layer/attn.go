package layer

import (
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// archs is the table of attention architectures. A new one is a file in this folder and a line here.
var archs = []*Arch{&plainArch, &diffArch, &diff2Arch, &gdaArch}

// Arch describes an attention architecture to the shared code: maps per head, key and value widths of a group in units
// of D, and how to make the mixer. Code above this package uses these fields only and computes nothing by the name.
type Arch struct {
	Name string
	Doc  string // one line, for listings

	Maps   int // softmax maps of an output head: 1, or 2 for A1 − λA2
	Keys   int // key heads of width D per group
	Values int // width of a value head, in units of D

	HeadNorm HeadNormMode // default if the configuration names none
	Variants bool         // supports DIFF V2's ablations: LambdaForm and Pairing

	make func(ps *ParamSet, c *AttnConfig) mixer

	archLayout
}

// mixer turns rotated queries, keys and values into head outputs. This is the part in which architectures differ.
type mixer interface {
	// forward returns out [N, H·DV]; x is the layer's input, from which q, k and v were projected.
	forward(p *Pass, s device.AttnShape, x, q, k, v tensor.Tensor) tensor.Tensor
	// cached is forward for rows over the cache, which already holds their keys and values.
	cached(p *Pass, s device.AttnShape, x, q tensor.Tensor, c *device.Cache) tensor.Tensor
	// backward sets dq, dk, dv from dout.
	backward(p *Pass, dout, dq, dk, dv tensor.Tensor)
	// tail adds to dx the gradient that reaches x other than through q, k and v.
	tail(p *Pass, dx, x tensor.Tensor)
	// free releases memory that outlives passes.
	free(d device.Device)
	// lambda returns λ of the last forward and the sum of its entries over rows; both absent without λ.
	lambda() (lam, sum tensor.Tensor)
	// applied returns what the last pass applied besides its maps.
	applied() applied
}

// applied is λ including interventions (absent without λ), the head norm, and the heads' output before that norm, which
// only passes without a cache keep.
type applied struct {
	lam  tensor.Tensor
	norm device.HeadNorm
	raw  tensor.Tensor // [N, H·DV]
}

// HeadNormMode is the norm over each head's output.
type HeadNormMode string

// The paper's DIFF has a norm; whether it has a gain differs between releases. Off and plain are used by ablations.
const (
	HeadNormOff    HeadNormMode = "off"
	HeadNormPlain  HeadNormMode = "plain"
	HeadNormAffine HeadNormMode = "affine"
)

// AttnConfig configures one attention layer. Heads counts outputs: heads of a Transformer, pairs of DIFF. Inside a
// layer that is split over ranks it counts this rank's heads.
type AttnConfig struct {
	Arch        *Arch
	Layer       int // 0-based
	Dim         int // C
	Heads       int // H
	Groups      int // G
	HeadDim     int // D
	Bias        bool
	HeadNorm    HeadNormMode
	HeadNormEps float64
	LambdaInit  float64
	LambdaStd   float64
	LambdaForm  LambdaForm // of DIFF V2
	Pairing     Pairing    // of DIFF V2
	OutGain     float64    // scales the initial output projection
	Rope        *Rope

	edits edits // interventions, by head; nil: none
	split *Split
}

// LookupArch finds an architecture by name.
func LookupArch(name string) (*Arch, error) {
	var names []string
	for _, a := range archs {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, fmt.Errorf("arch: %q is unknown; there are %v", name, names)
}

// Archs lists the architectures in order.
func Archs() []*Arch { return archs }

// Check returns an error that names the wrong field and the values it allows.
func (c *AttnConfig) Check() error {
	for _, f := range []struct {
		name string
		v    int
	}{{"dim", c.Dim}, {"heads", c.Heads}, {"kv_heads", c.Groups}, {"head_dim", c.HeadDim}} {
		if f.v <= 0 {
			return fmt.Errorf("%s: is %d, must be positive", f.name, f.v)
		}
	}
	if c.Heads%c.Groups != 0 {
		return fmt.Errorf("kv_heads: %d does not divide heads = %d", c.Groups, c.Heads)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim: is %d, must be even for rotary positions", c.HeadDim)
	}
	switch c.HeadNorm {
	case HeadNormOff, HeadNormPlain, HeadNormAffine:
	default:
		return fmt.Errorf("head_norm: is %q, must be %q, %q or %q", c.HeadNorm, HeadNormOff, HeadNormPlain,
			HeadNormAffine)
	}
	return c.checkVariants()
}

// checkVariants checks the settings of DIFF V2's ablations.
func (c *AttnConfig) checkVariants() error {
	switch c.LambdaForm {
	case LambdaSigmoid, LambdaLinear, LambdaNone:
	default:
		return fmt.Errorf("lambda_form: is %q, must be empty (the sigmoid), %q or %q", c.LambdaForm,
			LambdaLinear, LambdaNone)
	}
	switch c.Pairing {
	case PairingGroup, PairingAcross:
	default:
		return fmt.Errorf("pairing: is %q, must be empty (inside a group) or %q", c.Pairing, PairingAcross)
	}
	if c.Arch != nil && !c.Arch.Variants && (c.LambdaForm != LambdaSigmoid || c.Pairing != PairingGroup) {
		return fmt.Errorf("lambda_form and pairing are settings of %s, not of %s", diff2Name, c.Arch.Name)
	}
	if c.Pairing == PairingAcross && c.HeadNorm != HeadNormOff {
		return fmt.Errorf("pairing: %q has no norm over each head; head_norm is %q, must be %q", c.Pairing,
			c.HeadNorm, HeadNormOff)
	}
	return nil
}

// Attention is the part of an attention layer that all architectures share:
//
//	[q|k|v] = x·W_QKVᵀ,  q,k = RoPE(q,k),  y = mix(q,k,v)·W_Oᵀ
//
// with widths q: QueryHeads·D, k: G·Keys·D, v: G·Values·D, mix: H·Values·D.
type Attention struct {
	cfg      AttnConfig
	shape    device.AttnShape
	QKV, Out *Linear
	mix      mixer
	low      *lowbit // nil: exact

	x, qkv, heads tensor.Tensor // kept for Backward
}

// NewAttention declares one attention layer.
func NewAttention(ps *ParamSet, c AttnConfig) *Attention {
	a := c.Arch
	l := &Attention{cfg: c}
	l.cfg.Heads, l.cfg.Groups, l.cfg.split = ps.Split.share(c.Heads), ps.Split.share(c.Groups), ps.Split
	l.shape = device.AttnShape{Heads: l.cfg.Heads, Groups: l.cfg.Groups, D: c.HeadDim, DV: a.Values * c.HeadDim,
		Scale: 1 / math.Sqrt(float64(c.HeadDim))}
	wq, wk, wv := a.QueryHeads(c.Heads, c.Groups)*c.HeadDim, c.Groups*a.Keys*c.HeadDim, c.Groups*l.shape.DV
	l.QKV = NewLinear(ps, "qkv", c.Dim, wq+wk+wv, 1, c.Bias)
	l.mix = a.make(ps, &l.cfg)
	l.Out = NewLinear(ps, "out", c.Heads*l.shape.DV, c.Dim, c.OutGain, c.Bias)
	if s := ps.Split; s != nil {
		l.QKV.keepRows(s.run(0, wq), s.run(wq, wk), s.run(wq+wk, wv))
		l.Out.W.keep(true, s.run(0, c.Heads*l.shape.DV))
	}
	return l
}

// widths returns the numbers of columns of q, k and v in qkv.
func (l *Attention) widths() (wq, wk, wv int) {
	a, s := l.cfg.Arch, l.shape
	return a.QueryHeads(s.Heads, s.Groups) * s.D, s.Groups * a.Keys * s.D, s.Groups * s.DV
}

// split returns views of the columns of a fused [N, q+k+v] tensor.
func (l *Attention) split(t tensor.Tensor) (q, k, v tensor.Tensor) {
	wq, wk, wv := l.widths()
	return t.Columns(0, wq), t.Columns(wq, wq+wk), t.Columns(wq+wk, wq+wk+wv)
}

// rotated returns the columns that RoPE rotates: queries and keys are adjacent.
func (l *Attention) rotated(t tensor.Tensor) tensor.Tensor {
	wq, wk, _ := l.widths()
	return t.Columns(0, wq+wk)
}

// Forward attends within the pass, or over the cache if the pass has slots.
func (l *Attention) Forward(p *Pass, x tensor.Tensor, c *device.Cache) tensor.Tensor {
	heads := l.attend(p, x, c)
	y := p.branch(x.Rows, l.Out.W.Rows)
	l.Out.Sum(p, l.cfg.split, y, heads)
	return y
}

// Again recomputes what Backward needs, without y, from the x of the last Forward.
func (l *Attention) Again(p *Pass) { l.attend(p, l.x, nil) }

// attend pushes qkv and the heads' outputs.
func (l *Attention) attend(p *Pass, x tensor.Tensor, c *device.Cache) tensor.Tensor {
	qkv := l.QKV.Forward(p, x)
	l.cfg.Rope.Rotate(p, l.rotated(qkv), false)
	q, k, v := l.split(qkv)
	s := l.shape
	s.B, s.T = p.B, p.T
	l.low.keys(p, s, k, v)
	var heads tensor.Tensor
	if p.Slot.Ok() {
		p.Dev.CacheWrite(c, k, v, p.Slot, p.Pos)
		heads = l.mix.cached(p, s, x, q, c)
	} else {
		heads = l.mix.forward(p, s, x, q, k, v)
	}
	l.rework(p, s, c, heads, q, k, v)
	l.x, l.qkv, l.heads = x, qkv, heads
	if p.Probe != nil {
		p.Probe.Attention(l.view(p, s, q, k, v))
	}
	return heads
}

// Backward sets dx from dy.
func (l *Attention) Backward(p *Pass, dx, dy tensor.Tensor) {
	dheads := p.Act(l.heads.Rows, l.heads.Cols)
	l.Out.Backward(p, dheads, dy, l.heads, false)
	dqkv := p.Act(l.qkv.Rows, l.qkv.Cols)
	dq, dk, dv := l.split(dqkv)
	l.mix.backward(p, dheads, dq, dk, dv)
	l.cfg.Rope.Rotate(p, l.rotated(dqkv), true)
	share := l.cfg.split.begin(p, dx)
	l.QKV.Backward(p, share, dqkv, l.x, false)
	l.mix.tail(p, share, l.x)
	l.cfg.split.end(p, dx, share)
}

// Free releases the memory that the layer holds between passes.
func (l *Attention) Free(d device.Device) { l.mix.free(d) }

// CacheHeads returns the numbers of key and value heads per cached position, and their widths.
func (l *Attention) CacheHeads() (keys, values, d, dv int) {
	_, wk, wv := l.widths()
	return wk / l.shape.D, wv / l.shape.DV, l.shape.D, l.shape.DV
}

// Lambda returns the sum over rows of each head's λ in the last Forward [1,·], and by how much to divide it for the
// mean if the pass had that many rows; absent for an architecture without λ.
func (l *Attention) Lambda(rows int) (sum tensor.Tensor, over int) {
	lam, sum := l.mix.lambda()
	if lam.Len() == 1 {
		rows = 1
	}
	return sum, rows
}

// norm is the configured head norm for the device; scale is its constant factor.
func (c *AttnConfig) norm(w *Param, scale float64) device.HeadNorm {
	n := device.HeadNorm{On: c.HeadNorm != HeadNormOff, Eps: c.HeadNormEps, Scale: scale}
	if w != nil {
		n.Weight = w.W
	}
	return n
}

// normGain declares the head norm's weight if the mode has one.
func (c *AttnConfig) normGain(ps *ParamSet) *Param {
	if c.HeadNorm != HeadNormAffine {
		return nil
	}
	return ps.Add(Param{Name: "head_norm.weight", Kind: Gain, Rows: 1, Cols: c.Arch.Values * c.HeadDim, Const: 1,
		Shared: true})
}
