package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// attnCall is Attn or DiffAttn as one op with one or two maps.
type attnCall struct {
	device.AttnShape
	maps, keys      int
	norm            device.HeadNorm
	q, k, v         tensor.Tensor
	lam, start      tensor.Tensor
	out, raw, out2  tensor.Tensor
	lse, rstd       tensor.Tensor
	dout            tensor.Tensor
	dq, dk, dv      tensor.Tensor
	dlam, dnorm     tensor.Tensor
	eachLam, weight bool // λ is [N,H]; the norm has a weight
}

// plainCall is Attention as an attnCall; g may be nil.
func plainCall(a *device.Attn, g *device.AttnGrad) attnCall {
	c := attnCall{AttnShape: a.AttnShape, maps: 1, keys: 1, norm: a.Norm, q: a.Q, k: a.K, v: a.V, start: a.Start,
		out: a.Out, raw: a.Raw, lse: a.LSE, rstd: a.Rstd, weight: a.Norm.On && a.Norm.Weight.Ok()}
	if g != nil {
		c.dout, c.dq, c.dk, c.dv, c.dnorm = g.DOut, g.DQ, g.DK, g.DV, g.DNorm
	}
	return c
}

// diffCall is DiffAttention as an attnCall; g may be nil.
func diffCall(a *device.DiffAttn, g *device.DiffAttnGrad) attnCall {
	c := attnCall{AttnShape: a.AttnShape, maps: 2, keys: a.Keys, norm: a.Norm, q: a.Q, k: a.K, v: a.V, lam: a.Lam,
		start: a.Start, out: a.Out, raw: a.Raw, out2: a.Out2, lse: a.LSE, rstd: a.Rstd, weight: a.Norm.On &&
			a.Norm.Weight.Ok(), eachLam: a.Lam.Len() > 1}
	if g != nil {
		c.dout, c.dq, c.dk, c.dv, c.dlam, c.dnorm = g.DOut, g.DQ, g.DK, g.DV, g.DLam, g.DNorm
	}
	return c
}

// Limits of the general kernels.
const maxHead, maxValue = 256, 512

// mustFit panics if no kernel supports the head sizes.
func (c *attnCall) mustFit() {
	if c.D > maxHead || c.DV > maxValue {
		s := c.AttnShape // a copy: formatting the field itself would make every call escape to the heap
		panic(fmt.Sprintf("cuda: attention of %s: heads of at most %d and values of at most %d", s.String(),
			maxHead, maxValue))
	}
}

// weightPtr is the norm's weight as an argument, 0 for all ones.
func (c *attnCall) weightPtr() uint64 {
	if !c.weight {
		return 0
	}
	return ptr(c.norm.Weight)
}
