package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

const diff2Name = "diff2"

// diff2Arch is DIFF V2: the two query heads of a pair share one key head and one value head of ordinary width. Pairs
// are inside a group: group g has 2H/G adjacent query heads.
var diff2Arch = Arch{
	Name: diff2Name, Doc: "differential attention with shared keys and a λ per token and head (DIFF V2)",
	Maps: 2, Keys: 1, Values: 1, HeadNorm: HeadNormOff, Variants: true,
	make: func(ps *ParamSet, c *AttnConfig) mixer {
		gain, lam := c.normGain(ps), newTokenLambda(ps, c)
		if c.Pairing == PairingAcross {
			return &across{cfg: c, lam: lam}
		}
		return &diff2{diffOp: diffOp{cfg: c, gain: gain}, lam: lam}
	},
	archLayout: archLayout{query: diff2Query, memory: diff2Memory},
}

// diff2Query pairs adjacent query heads, except in the ablation that pairs across groups.
func diff2Query(c *AttnConfig, head, m int) int {
	if c.Pairing == PairingAcross {
		return m*c.Heads + head
	}
	return 2*head + m
}

// diff2Memory counts λ of every row and head, its gradient, and the gradient of the projection's output. Pairs across
// groups keep the outputs of all query heads together and the difference besides, and take a gradient of the former.
func diff2Memory(c *AttnConfig, t device.Types) (kept, passing int) {
	stat := t.Stat.Size() * c.Heads
	passing = stat
	if c.LambdaForm != LambdaNone {
		kept, passing = stat, passing+actBytes(t, up8(c.Heads))
	}
	if c.Pairing == PairingAcross {
		heads := c.Heads * c.HeadDim
		kept += actBytes(t, 2*heads) - actBytes(t, heads)
		passing += actBytes(t, 2*heads)
	}
	return kept, passing
}

// diff2 is head_h = (A1 − λ_h·A2)·V, A_i = softmax(Q_iKᵀ/√D), λ = σ(x·W_λᵀ), one per row and head.
type diff2 struct {
	diffOp
	lam tokenLambda
}

func (l *diff2) bind(p *Pass, s device.AttnShape, x, q tensor.Tensor) {
	bindDiff(p, &l.arg, s, l.cfg, q, l.lam.forward(p, x), l.cfg.norm(l.gain, 1))
}

func (l *diff2) forward(p *Pass, s device.AttnShape, x, q, k, v tensor.Tensor) tensor.Tensor {
	l.bind(p, s, x, q)
	out := forwardDiff(p, &l.arg, k, v)
	l.lam.count(p, l.arg.Lam)
	return out
}

func (l *diff2) cached(p *Pass, s device.AttnShape, x, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	l.bind(p, s, x, q)
	return l.overCache(p, c, q)
}

func (l *diff2) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	l.lam.backward(p, l.diffOp.backward(p, dout, dq, dk, dv), l.arg.Lam)
}

func (l *diff2) tail(p *Pass, dx, x tensor.Tensor) { l.lam.tail(p, dx, x) }

func (l *diff2) free(d device.Device) { l.lam.free(d) }

func (l *diff2) lambda() (lam, sum tensor.Tensor) { return l.arg.Lam, l.lam.sum }
