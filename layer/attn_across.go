package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Pairing selects which query heads DIFF V2 subtracts from each other.
type Pairing string

// PairingGroup is V2's own. PairingAcross is the one its authors call wrong: the first half of the query heads minus
// the second half, which belong to other groups if there is more than one.
const (
	PairingGroup  Pairing = ""
	PairingAcross Pairing = "across"
)

// across is the ablation of DIFF V2 that pairs heads across groups, so the two maps of a pair have different keys and
// values:
//
//	a = attention of 2H query heads over G groups,  head_h = a_h − λ_h·a_{H+h}
type across struct {
	cfg  *AttnConfig
	lam  tokenLambda
	used tensor.Tensor // λ as applied
	out  tensor.Tensor
	arg  device.Attn
	part device.Attn // some rows of arg
	grad device.AttnGrad
}

// bind sets up plain attention of all query heads.
func (l *across) bind(p *Pass, s device.AttnShape, x, q tensor.Tensor) {
	s.Heads *= 2
	l.used = l.cfg.edits.scaled(p, l.lam.forward(p, x), x.Rows)
	l.arg = device.Attn{AttnShape: s, Q: q, Out: p.Act(q.Rows, s.Heads*s.DV)}
}

func (l *across) forward(p *Pass, s device.AttnShape, x, q, k, v tensor.Tensor) tensor.Tensor {
	l.bind(p, s, x, q)
	l.arg.K, l.arg.V, l.arg.Start = k, v, p.Start
	l.arg.LSE = p.stat(q.Rows, l.arg.Heads)
	p.Dev.Attention(&l.arg)
	l.lam.count(p, l.used)
	return l.subtract(p)
}

func (l *across) cached(p *Pass, s device.AttnShape, x, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	l.bind(p, s, x, q)
	overCache(p, l, c, l.arg.Out, q)
	return l.subtract(p)
}

func (l *across) paged(p *Pass, c *device.Cache) bool { return pagedPlain(p, &l.arg, c) }

func (l *across) rows(p *Pass, c *device.Cache, from, to int) {
	rowsPlain(p, &l.part, &l.arg, c, from, to)
}

func (l *across) chunk(p *Pass, _ *Chunk, o, q, k, v tensor.Tensor) {
	chunkPlain(p, &l.part, &l.arg, o, q, k, v)
}

// subtract pushes a_h − λ_h·a_{H+h}.
func (l *across) subtract(p *Pass) tensor.Tensor {
	l.out = p.Act(l.arg.Out.Rows, l.cfg.Heads*l.arg.DV)
	p.Dev.SubtractHeads(l.out, l.arg.Out, l.used, l.cfg.Heads)
	return l.out
}

func (l *across) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	da, dlam := p.Act(dout.Rows, l.arg.Out.Cols), p.stat(dout.Rows, l.cfg.Heads)
	p.Dev.SubtractHeadsBackward(da, dlam, dout, l.arg.Out, l.used, l.cfg.Heads)
	l.grad = device.AttnGrad{DOut: da, DQ: dq, DK: dk, DV: dv}
	p.Dev.AttentionBackward(&l.arg, &l.grad)
	l.lam.backward(p, dlam, l.used)
}

func (l *across) tail(p *Pass, dx, x tensor.Tensor) { l.lam.tail(p, dx, x) }

func (l *across) free(d device.Device) { l.lam.free(d) }

func (l *across) lambda() (lam, sum tensor.Tensor) { return l.used, l.lam.sum }

func (l *across) applied() applied { return applied{lam: l.used, raw: l.out} }
