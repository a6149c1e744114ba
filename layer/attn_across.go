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
//
// No device op subtracts heads, and an ablation does not justify one, so the host does the subtraction.
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
	w := l.cfg.Heads * l.arg.DV
	out := p.Act(l.arg.Out.Rows, w)
	a, lam := readAll(p.Dev, l.arg.Out), l.lambdas(p, out.Rows)
	y := make([]float64, out.Len())
	for i := range y {
		n, c := i/w, i%w
		y[i] = a[2*n*w+c] - lam[n*l.cfg.Heads+c/l.arg.DV]*a[(2*n+1)*w+c]
	}
	device.WriteFloats(p.Dev, out, y)
	l.out = out
	return out
}

// lambdas reads λ of every row and head to the host.
func (l *across) lambdas(p *Pass, rows int) []float64 {
	lam := readAll(p.Dev, l.used)
	for len(lam) < rows*l.cfg.Heads { // one for all
		lam = append(lam, lam[0])
	}
	return lam
}

// backward: da_h = do_h, da_{H+h} = −λ_h·do_h, dλ_h = −do_h·a_{H+h}.
func (l *across) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	rows, w, d := dout.Rows, l.cfg.Heads*l.arg.DV, l.arg.DV
	do, a, lam := readAll(p.Dev, dout), readAll(p.Dev, l.arg.Out), l.lambdas(p, rows)
	da, dl := make([]float64, len(a)), make([]float64, rows*l.cfg.Heads)
	for i, x := range do {
		n, c := i/w, i%w
		h := n*l.cfg.Heads + c/d
		da[2*n*w+c], da[(2*n+1)*w+c] = x, -lam[h]*x
		dl[h] -= x * a[(2*n+1)*w+c]
	}
	dall, dlam := p.Act(rows, 2*w), p.stat(rows, l.cfg.Heads)
	device.WriteFloats(p.Dev, dall, da)
	device.WriteFloats(p.Dev, dlam, dl)
	l.grad = device.AttnGrad{DOut: dall, DQ: dq, DK: dk, DV: dv}
	p.Dev.AttentionBackward(&l.arg, &l.grad)
	l.lam.backward(p, dlam, l.used)
}

func (l *across) tail(p *Pass, dx, x tensor.Tensor) { l.lam.tail(p, dx, x) }

func (l *across) free(d device.Device) { l.lam.free(d) }

func (l *across) lambda() (lam, sum tensor.Tensor) { return l.used, l.lam.sum }

func (l *across) applied() applied { return applied{lam: l.used, raw: l.out} }
