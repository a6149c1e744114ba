package devicetest

import (
	"fmt"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// attnSpec is one geometry of either attention.
type attnSpec struct {
	b, t, h, g, d, dv int
	norm              string // "off", "plain" or "affine"
	docs              bool   // with documents
	hot               bool   // with logits of some hundreds
	keys              int    // DIFF: key heads of a group
	scalar            bool   // DIFF: one λ
	bare              bool   // without what only backward needs
}

// String is the spec in a case's name.
func (s attnSpec) String() string {
	name := fmt.Sprintf("B=%d,T=%d,H=%d,G=%d,D=%d,DV=%d,norm=%s", s.b, s.t, s.h, s.g, s.d, s.dv, s.norm)
	for _, f := range []struct {
		on   bool
		text string
	}{{s.keys > 0, fmt.Sprintf(",keys=%d", s.keys)}, {s.scalar, ",scalar"}, {s.docs, ",docs"}, {s.hot, ",hot"},
		{s.bare, ",bare"}} {
		if f.on {
			name += f.text
		}
	}
	return name
}

func (s attnSpec) shape(b int) device.AttnShape {
	return device.AttnShape{B: b, T: s.t, Heads: s.h, Groups: s.g, D: s.d, DV: s.dv, Scale: 1 / math.Sqrt(float64(s.d))}
}

// cells is the number of (query, key) pairs of all heads.
func (s attnSpec) cells() float64 { return float64(s.b*s.h) * float64(s.t) * float64(s.t+1) / 2 }

// starts draws documents: each row begins one with probability 1/5, so most are short and some span tiles.
func (s attnSpec) starts(c *Case) []int32 {
	r, v := c.random(), make([]int32, s.b*s.t)
	for n := range v {
		if n%s.t != 0 {
			v[n] = v[n-1]
			if r.IntN(5) == 0 && n%s.t < s.t/2 || r.IntN(40) == 0 {
				v[n] = int32(n % s.t)
			}
		}
	}
	return v
}

// attnArgs are the handles of an attention's tensors; DIFF adds lam and out2.
type attnArgs struct{ q, k, v, start, weight, out, raw, lse, rstd, lam, out2 int }

// inputs adds what forward and backward both read: qh query and kh key heads, and the rest.
func (s attnSpec) inputs(c *Case, qh, kh int) (a attnArgs) {
	n, deviation := s.b*s.t, 1.0
	if s.hot {
		deviation, c.slack = 10, 20 // logits of ±300 carry errors of 300u into the exponent
	}
	a.q = c.in("q", act, n, qh*s.d, normal(0, deviation), perRow(s.t))
	a.k = c.in("k", act, n, kh*s.d, normal(0, deviation), perRow(s.t))
	a.v = c.in("v", act, n, s.g*s.dv, perRow(s.t))
	if s.docs {
		a.start = c.ints("start", 1, n, s.starts(c), perCol(s.t))
	}
	if s.norm == "affine" {
		a.weight = c.in("norm", act, 1, s.dv, normal(1, 0.3))
	}
	return a
}

// results adds out, and raw and rstd when the norm is on.
func (s attnSpec) results(c *Case, a *attnArgs) {
	n, w := s.b*s.t, s.h*s.dv
	a.out = c.out("out", act, n, w, loose, perRow(s.t))
	if s.norm != "off" {
		a.raw = c.out("raw", act, n, w, loose, perRow(s.t))
		a.rstd = c.out("rstd", stat, n, s.h, loose, perRow(s.t))
	}
}

// kept adds what backward reads of forward's results.
func (s attnSpec) kept(c *Case, a *attnArgs) {
	n, w := s.b*s.t, s.h*s.dv
	if s.norm == "off" {
		a.out = c.in("out", act, n, w, perRow(s.t))
		return
	}
	a.raw = c.in("raw", act, n, w, perRow(s.t))
	a.rstd = c.in("rstd", stat, n, s.h, perRow(s.t))
}

func (s attnSpec) headNorm(weight tensor.Tensor) device.HeadNorm {
	return device.HeadNorm{On: s.norm != "off", Weight: weight, Eps: 1e-5, Scale: 0.8}
}

// gradArgs are the handles of a backward pass's tensors.
type gradArgs struct{ dout, dq, dk, dv, dnorm int }

func (s attnSpec) gradients(c *Case, qh, kh int) (g gradArgs) {
	n := s.b * s.t
	// dS = P∘(dP − Δ) errs as dP does even where it cancels, as for a row with one key: |Scale·dP| is about
	// √(DV/D)·|dO|, and the norm's rstd makes dO larger than DOut.
	noise := floor(math.Sqrt(float64(s.dv) / float64(s.d)))
	if s.norm != "off" {
		noise = floor(2 * math.Sqrt(float64(s.dv)/float64(s.d)))
	}
	g.dout = c.in("dout", act, n, s.h*s.dv, perRow(s.t))
	g.dq = c.out("dq", act, n, qh*s.d, loose, noise, perRow(s.t))
	g.dk = c.out("dk", act, n, kh*s.d, loose, noise, perRow(s.t))
	g.dv = c.out("dv", act, n, s.g*s.dv, loose, floor(1), perRow(s.t))
	if s.norm == "affine" {
		g.dnorm = c.acc("dnorm", stat, 1, s.dv, loose, floor(1))
	}
	return g
}

func attentionCase(s attnSpec) *Case {
	c := newCase("forward,%v", s)
	c.flops = 2 * s.cells() * float64(s.d+s.dv)
	a := s.inputs(c, s.h, s.g)
	s.results(c, &a)
	if !s.bare {
		a.lse = c.out("lse", stat, s.b*s.t, s.h, product, floor(1), perRow(s.t))
	}
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		at := s.attn(x, a)
		return func(d device.Device) { d.Attention(at) }
	}
	return c
}

func (s attnSpec) attn(x []tensor.Tensor, a attnArgs) *device.Attn {
	return &device.Attn{AttnShape: s.shape(x[a.q].Rows / s.t), Norm: s.headNorm(x[a.weight]), Q: x[a.q],
		K: x[a.k], V: x[a.v], Start: x[a.start], Out: x[a.out], Raw: x[a.raw], LSE: x[a.lse], Rstd: x[a.rstd]}
}

func attentionBackwardCase(s attnSpec) *Case {
	c := newCase("backward,%v", s)
	c.flops = 2 * s.cells() * float64(3*s.d+2*s.dv)
	a := s.inputs(c, s.h, s.g)
	s.kept(c, &a)
	a.lse = c.in("lse", stat, s.b*s.t, s.h, perRow(s.t))
	g := s.gradients(c, s.h, s.g)
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		at := s.attn(x, a)
		gr := &device.AttnGrad{DOut: x[g.dout], DQ: x[g.dq], DK: x[g.dk], DV: x[g.dv], DNorm: x[g.dnorm]}
		return func(d device.Device) { d.AttentionBackward(at, gr) }
	}
	return c.from(attentionCase(s))
}

func attentionCases() (all []*Case) {
	for _, s := range []attnSpec{
		{b: 1, t: 1, h: 1, g: 1, d: 8, dv: 8, norm: "off"},
		{b: 3, t: 1, h: 2, g: 1, d: 16, dv: 24, norm: "affine"},
		{b: 2, t: 7, h: 4, g: 2, d: 8, dv: 16, norm: "off", docs: true},
		{b: 2, t: 7, h: 2, g: 2, d: 24, dv: 24, norm: "plain"},
		{b: 1, t: 64, h: 2, g: 1, d: 16, dv: 16, norm: "off"},
		{b: 2, t: 65, h: 3, g: 1, d: 40, dv: 40, norm: "affine", docs: true},
		{b: 1, t: 129, h: 2, g: 2, d: 64, dv: 64, norm: "off"},
		{b: 2, t: 129, h: 4, g: 2, d: 8, dv: 8, norm: "off", docs: true},
		{b: 1, t: 65, h: 1, g: 1, d: 96, dv: 96, norm: "off", hot: true},
		{b: 1, t: 64, h: 2, g: 1, d: 128, dv: 128, norm: "plain", docs: true},
		{b: 1, t: 200, h: 2, g: 1, d: 64, dv: 128, norm: "off", docs: true},
		{b: 2, t: 140, h: 2, g: 2, d: 24, dv: 40, norm: "affine"},
	} {
		all = append(all, attentionCase(s), attentionBackwardCase(s))
	}
	return append(all, attentionCase(attnSpec{b: 2, t: 70, h: 2, g: 1, d: 32, dv: 32, norm: "off", bare: true}))
}

// attentionExtra: queries, keys and values, and their gradients, may be columns of one tensor.
func attentionExtra(t *testing.T, d device.Device) {
	s := attnSpec{b: 2, t: 33, h: 4, g: 2, d: 16, dv: 24, norm: "off"}
	attentionCase(s).fused(t, d, ref.New(), "q", "k", "v")
	attentionBackwardCase(s).fused(t, d, ref.New(), "q", "k", "v")
	attentionBackwardCase(s).fused(t, d, ref.New(), "dq", "dk", "dv")
}

func attentionBench() []*Case {
	s := attnSpec{b: 1, t: 1024, h: 8, g: 8, d: 64, dv: 64, norm: "off"}
	return []*Case{attentionCase(s), attentionBackwardCase(s)}
}
