package layer

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// diffArch is the Differential Transformer of the paper: two query and two key heads per pair, values twice as wide.
var diffArch = Arch{
	Name: "diff", Doc: "differential attention, A1 − λA2 with one λ per layer and a norm per head (DIFF V1)",
	Maps: 2, Keys: 2, Values: 2, HeadNorm: HeadNormAffine,
	make:       func(ps *ParamSet, c *AttnConfig) mixer { return newDiff(ps, c) },
	archLayout: archLayout{memory: diffMemory},
}

// diffMemory counts dλ of every row and head.
func diffMemory(c *AttnConfig, t device.Types) (kept, passing int) { return 0, t.Stat.Size() * c.Heads }

// LambdaSchedule is λ_init of a layer, counted from 0: 0.8 − 0.6·exp(−0.3·layer).
func LambdaSchedule(layer int) float64 { return 0.8 - 0.6*math.Exp(-0.3*float64(layer)) }

// diff is head_h = (1−λ_init)·RMSNorm((A1 − λA2)·V), A_i = softmax(Q_iK_iᵀ/√D), with
//
//	λ = exp(λq1·λk1) − exp(λq2·λk2) + λ_init
//
// one scalar for the layer. The factor is the constant 1−λ_init, not the learned λ.
type diff struct {
	diffOp
	q1, k1, q2, k2 *Param
	lam            tensor.Tensor // [1,1]; outlives the pass, so that metrics can read it
}

func newDiff(ps *ParamSet, c *AttnConfig) *diff {
	vec := func(name string) *Param {
		return ps.Add(Param{Name: name, Kind: LambdaKind, Rows: 1, Cols: c.HeadDim, Std: c.LambdaStd, Shared: true})
	}
	l := &diff{q1: vec("lambda_q1"), k1: vec("lambda_k1"), q2: vec("lambda_q2"), k2: vec("lambda_k2")}
	l.diffOp = diffOp{cfg: c, gain: c.normGain(ps)}
	return l
}

// setLambda evaluates λ on the device into memory that outlives the pass, unless it is there already.
func (l *diff) setLambda(p *Pass) {
	if p.Known {
		return
	}
	if !l.lam.Ok() {
		l.lam = device.Empty(p.Dev, p.Dev.Types().Stat, 1, 1)
	}
	p.Dev.Lambda(l.lam, device.LambdaVecs{Q1: l.q1.W, K1: l.k1.W, Q2: l.q2.W, K2: l.k2.W}, l.cfg.LambdaInit)
}

func (l *diff) bind(p *Pass, s device.AttnShape, q tensor.Tensor) {
	l.setLambda(p)
	bindDiff(p, &l.arg, s, l.cfg, q, l.lam, l.cfg.norm(l.gain, 1-l.cfg.LambdaInit))
}

func (l *diff) forward(p *Pass, s device.AttnShape, _, q, k, v tensor.Tensor) tensor.Tensor {
	l.bind(p, s, q)
	return forwardDiff(p, &l.arg, k, v)
}

func (l *diff) cached(p *Pass, s device.AttnShape, _, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	l.bind(p, s, q)
	return l.overCache(p, c, q)
}

func (l *diff) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	dlam := l.diffOp.backward(p, dout, dq, dk, dv)
	p.Dev.LambdaBackward(
		device.LambdaVecs{Q1: l.q1.G, K1: l.k1.G, Q2: l.q2.G, K2: l.k2.G}, dlam,
		device.LambdaVecs{Q1: l.q1.W, K1: l.k1.W, Q2: l.q2.W, K2: l.k2.W})
}

func (l *diff) tail(*Pass, tensor.Tensor, tensor.Tensor) {}

func (l *diff) free(d device.Device) {
	if l.lam.Ok() {
		d.Free(l.lam.Buf)
	}
}

func (l *diff) lambda() (lam, sum tensor.Tensor) { return l.lam, l.lam }

// diffOp is the differential op of a layer. Architectures that differ only in λ share it.
type diffOp struct {
	cfg  *AttnConfig
	gain *Param
	arg  device.DiffAttn
	part device.DiffAttn // some rows of arg
	grad device.DiffAttnGrad
}

// overCache computes the output of rows over the cache.
func (l *diffOp) overCache(p *Pass, c *device.Cache, q tensor.Tensor) tensor.Tensor {
	overCache(p, l, c, l.arg.Out, q)
	return l.arg.Out
}

func (l *diffOp) paged(p *Pass, c *device.Cache) bool { return pagedDiff(p, &l.arg, c) }

func (l *diffOp) rows(p *Pass, c *device.Cache, from, to int) {
	rowsDiff(p, &l.part, &l.arg, c, from, to)
}

func (l *diffOp) chunk(p *Pass, c *Chunk, o, q, k, v tensor.Tensor) {
	chunkDiff(p, &l.part, &l.arg, c, o, q, k, v)
}

// backward sets dq, dk and dv and returns dλ of every row and head.
func (l *diffOp) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) (dlam tensor.Tensor) {
	dlam = p.stat(dout.Rows, l.cfg.Heads)
	l.grad = device.DiffAttnGrad{DOut: dout, DQ: dq, DK: dk, DV: dv, DLam: dlam}
	if l.gain != nil {
		l.grad.DNorm = l.gain.G
	}
	p.Dev.DiffAttentionBackward(&l.arg, &l.grad)
	return dlam
}

func (l *diffOp) applied() applied {
	return applied{l.arg.Lam, l.arg.Norm, rawOr(l.arg.Raw, l.arg.Out)}
}

// bindDiff fills the arguments that all rows share and allocates the output.
func bindDiff(p *Pass, a *device.DiffAttn, s device.AttnShape, c *AttnConfig, q, lam tensor.Tensor, n device.HeadNorm) {
	*a = device.DiffAttn{AttnShape: s, Keys: c.Arch.Keys, Norm: n, Q: q, Lam: c.edits.scaled(p, lam, q.Rows)}
	a.Out = p.Act(q.Rows, s.Heads*s.DV)
}

// forwardDiff runs the op over the pass and saves what the backward pass needs.
func forwardDiff(p *Pass, a *device.DiffAttn, k, v tensor.Tensor) tensor.Tensor {
	n, w := a.Q.Rows, a.Heads*a.DV
	a.K, a.V, a.Start = k, v, p.Start
	a.Out2 = p.Act(n, w)
	a.LSE = p.stat(n, 2*a.Heads)
	normedDiff(p, a)
	p.Dev.DiffAttention(a)
	return a.Out
}

// normedDiff allocates what the head norm saves.
func normedDiff(p *Pass, a *device.DiffAttn) {
	if a.Norm.On {
		a.Raw = p.Act(a.Q.Rows, a.Heads*a.DV)
		a.Rstd = p.stat(a.Q.Rows, a.Heads)
	}
}

// rowsDiff runs rows [from, to) of all over the cache; part receives their arguments.
func rowsDiff(p *Pass, part, all *device.DiffAttn, c *device.Cache, from, to int) {
	*part = *all
	part.Q, part.Out = all.Q.RowRange(from, to), all.Out.RowRange(from, to)
	if all.Lam.Len() > 1 {
		part.Lam = all.Lam.RowRange(from, to)
	}
	p.Dev.DiffAttentionCached(part, c, p.Slot.Columns(from, to), p.Pos.Columns(from, to))
}

// chunkDiff runs a chunk of all as a separate sequence; part receives its arguments.
func chunkDiff(p *Pass, part, all *device.DiffAttn, c *Chunk, o, q, k, v tensor.Tensor) {
	*part = *all
	part.B, part.T = 1, q.Rows
	part.Q, part.K, part.V, part.Out = q, k, v, o
	if all.Lam.Len() > 1 {
		part.Lam = all.Lam.RowRange(c.From, c.To)
		if c.Past > 0 {
			part.Lam = behind(p, c.Past, part.Lam)
		}
	}
	normedDiff(p, part)
	p.Dev.DiffAttention(part)
}
