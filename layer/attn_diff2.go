package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// diff2Arch is DIFF V2: the two query heads of a pair share one key and one value head of ordinary width.
// Pairs lie inside a group by construction: group g holds the 2H/G neighbouring query heads.
var diff2Arch = Arch{
	Name: "diff2", Doc: "differential attention with shared keys and a λ per token and head (DIFF V2)",
	Queries: 2, Keys: 1, Values: 1, HeadNorm: HeadNormOff,
	make: func(ps *ParamSet, c *AttnConfig) mixer {
		l := &diff2{cfg: c, gain: c.normGain(ps), proj: NewLinear(ps, "lambda", c.Dim, c.Heads, 1, false)}
		l.proj.W.Kind = LambdaMatrix
		return l
	},
}

// diff2 is head_h = (A1 − λ_h·A2)·V, A_i = softmax(Q_iKᵀ/√D), λ = σ(x·W_λᵀ), one per row and head.
type diff2 struct {
	cfg  *AttnConfig
	gain *Param
	proj *Linear       // W_λ [H,C]
	sum  tensor.Tensor // [1,H]: Σ over rows of λ, for metrics
	arg  device.DiffAttn
	part device.DiffAttn // some rows of arg
	grad device.DiffAttnGrad
}

func (l *diff2) bind(p *Pass, s device.AttnShape, x, q tensor.Tensor) {
	lam := p.stat(x.Rows, l.cfg.Heads)
	l.proj.Into(p, lam, x)
	p.Dev.Sigmoid(lam, lam)
	bindDiff(p, &l.arg, s, l.cfg, q, lam, l.cfg.norm(l.gain, 1))
}

func (l *diff2) forward(p *Pass, s device.AttnShape, x, q, k, v tensor.Tensor) tensor.Tensor {
	l.bind(p, s, x, q)
	if !l.sum.Ok() {
		l.sum = device.Empty(p.Dev, p.Dev.Types().Stat, 1, l.cfg.Heads)
	}
	out := forwardDiff(p, &l.arg, k, v)
	m := p.Arena.Mark()
	lam := p.Act(x.Rows, l.cfg.Heads)
	p.Dev.Copy(lam, l.arg.Lam)
	p.Dev.Zero(l.sum)
	p.Dev.BiasBackward(l.sum, lam)
	p.Arena.Release(m)
	return out
}

func (l *diff2) cached(p *Pass, s device.AttnShape, x, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	l.bind(p, s, x, q)
	overCache(p, l, c, l.arg.Out, q)
	return l.arg.Out
}

func (l *diff2) rows(p *Pass, c *device.Cache, from, to int) {
	rowsDiff(p, &l.part, &l.arg, c, from, to)
}

func (l *diff2) chunk(p *Pass, c *Chunk, o, q, k, v tensor.Tensor) {
	chunkDiff(p, &l.part, &l.arg, c, o, q, k, v)
}

func (l *diff2) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	dlam := p.stat(dout.Rows, l.cfg.Heads)
	l.grad = device.DiffAttnGrad{DOut: dout, DQ: dq, DK: dk, DV: dv, DLam: dlam}
	if l.gain != nil {
		l.grad.DNorm = l.gain.G
	}
	p.Dev.DiffAttentionBackward(&l.arg, &l.grad)
	p.Dev.SigmoidBackward(dlam, dlam, l.arg.Lam)
}

// tail carries dλ back through W_λ to the layer's input.
func (l *diff2) tail(p *Pass, dx, x tensor.Tensor) {
	dlam := p.padded(x.Rows, l.cfg.Heads)
	p.Dev.Copy(dlam, l.grad.DLam)
	l.proj.Backward(p, dx, dlam, x, true)
}

func (l *diff2) free(d device.Device) {
	if l.sum.Ok() {
		d.Free(l.sum.Buf)
	}
}

func (l *diff2) lambda() (lam, sum tensor.Tensor) { return l.arg.Lam, l.sum }

func (l *diff2) applied() (tensor.Tensor, device.HeadNorm) { return l.arg.Lam, l.arg.Norm }
