package devicetest

import (
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// lambdas adds λ, one or one per row and head.
func (s attnSpec) lambdas(c *Case, a *attnArgs) {
	n := s.b * s.t
	if !s.scalar {
		a.lam = c.in("lam", stat, n, s.h, uniform(0.1, 0.9), perRow(s.t))
		return
	}
	var o []option
	if n == 1 && s.h == 2 { // [1,2] would be one per row and head
		o = append(o, anyCols)
	}
	if n == 2 && s.h == 1 {
		o = append(o, anyRows)
	}
	a.lam = c.in("lam", stat, 1, 1, append(o, uniform(0.1, 0.9))...)
}

func diffattentionCase(s attnSpec) *Case {
	c := newCase("forward,%v", s)
	c.flops = 4 * s.cells() * float64(s.d+s.dv)
	a := s.inputs(c, 2*s.h, s.g*s.keys)
	s.lambdas(c, &a)
	s.results(c, &a)
	if !s.bare {
		a.out2 = c.out("out2", act, s.b*s.t, s.h*s.dv, loose, perRow(s.t))
		a.lse = c.out("lse", stat, s.b*s.t, 2*s.h, product, floor(1), perRow(s.t))
	}
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		at := s.diff(x, a)
		return func(d device.Device) { d.DiffAttention(at) }
	}
	return c
}

func (s attnSpec) diff(x []tensor.Tensor, a attnArgs) *device.DiffAttn {
	return &device.DiffAttn{AttnShape: s.shape(x[a.q].Rows / s.t), Keys: s.keys, Norm: s.headNorm(x[a.weight]),
		Q: x[a.q], K: x[a.k], V: x[a.v], Lam: x[a.lam], Start: x[a.start], Out: x[a.out], Raw: x[a.raw],
		Out2: x[a.out2], LSE: x[a.lse], Rstd: x[a.rstd]}
}

func diffattentionBackwardCase(s attnSpec) *Case {
	c := newCase("backward,%v", s)
	c.flops = 2 * s.cells() * float64(6*s.d+2*s.dv)
	n := s.b * s.t
	a := s.inputs(c, 2*s.h, s.g*s.keys)
	s.lambdas(c, &a)
	s.kept(c, &a)
	a.out2 = c.in("out2", act, n, s.h*s.dv, perRow(s.t))
	a.lse = c.in("lse", stat, n, 2*s.h, perRow(s.t))
	g := s.gradients(c, 2*s.h, s.g*s.keys)
	dlam := c.out("dlam", stat, n, s.h, loose, floor(1), perRow(s.t))
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		at := s.diff(x, a)
		gr := &device.DiffAttnGrad{DOut: x[g.dout], DQ: x[g.dq], DK: x[g.dk], DV: x[g.dv], DLam: x[dlam],
			DNorm: x[g.dnorm]}
		return func(d device.Device) { d.DiffAttentionBackward(at, gr) }
	}
	return c.from(diffattentionCase(s))
}

func diffattentionCases() (all []*Case) {
	for _, s := range []attnSpec{
		{b: 1, t: 1, h: 1, g: 1, d: 8, dv: 16, norm: "off", keys: 2, scalar: true},
		{b: 3, t: 1, h: 2, g: 1, d: 16, dv: 16, norm: "affine", keys: 1},
		{b: 2, t: 7, h: 4, g: 2, d: 8, dv: 16, norm: "off", docs: true, keys: 2},
		{b: 2, t: 7, h: 2, g: 2, d: 24, dv: 24, norm: "plain", keys: 1, scalar: true},
		{b: 1, t: 64, h: 2, g: 1, d: 16, dv: 32, norm: "plain", keys: 2, scalar: true},
		{b: 2, t: 65, h: 3, g: 1, d: 40, dv: 80, norm: "affine", docs: true, keys: 2},
		{b: 1, t: 129, h: 2, g: 2, d: 64, dv: 128, norm: "affine", keys: 2, scalar: true},
		{b: 2, t: 129, h: 4, g: 2, d: 8, dv: 8, norm: "off", docs: true, keys: 1},
		{b: 1, t: 65, h: 1, g: 1, d: 96, dv: 96, norm: "off", hot: true, keys: 1},
		{b: 1, t: 64, h: 2, g: 1, d: 128, dv: 256, norm: "plain", docs: true, keys: 2, scalar: true},
		{b: 1, t: 200, h: 4, g: 1, d: 64, dv: 64, norm: "off", docs: true, keys: 1},
		{b: 2, t: 140, h: 2, g: 2, d: 24, dv: 48, norm: "affine", keys: 2, scalar: true},
	} {
		all = append(all, diffattentionCase(s), diffattentionBackwardCase(s))
	}
	return append(all, diffattentionCase(attnSpec{b: 2, t: 70, h: 2, g: 1, d: 32, dv: 64, norm: "off", keys: 2,
		scalar: true, bare: true}))
}

// diffattentionExtra: as for attention, columns of one tensor.
func diffattentionExtra(t *testing.T, d device.Device) {
	for _, keys := range []int{1, 2} {
		s := attnSpec{b: 2, t: 33, h: 4, g: 2, d: 16, dv: 32, norm: "plain", keys: keys}
		diffattentionCase(s).fused(t, d, ref.New(), "q", "k", "v")
		diffattentionBackwardCase(s).fused(t, d, ref.New(), "q", "k", "v")
		diffattentionBackwardCase(s).fused(t, d, ref.New(), "dq", "dk", "dv")
	}
}

func diffattentionBench() (all []*Case) {
	for _, s := range []attnSpec{
		{b: 1, t: 1024, h: 4, g: 4, d: 64, dv: 128, norm: "affine", keys: 2, scalar: true},
		{b: 1, t: 1024, h: 8, g: 4, d: 64, dv: 64, norm: "off", keys: 1},
	} {
		all = append(all, diffattentionCase(s), diffattentionBackwardCase(s))
	}
	return all
}
