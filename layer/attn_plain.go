package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// plainArch is the baseline: one softmax map per head, Llama's grouped-query attention.
var plainArch = Arch{
	Name: "transformer", Doc: "softmax attention, one map per head (the baseline)",
	Maps: 1, Keys: 1, Values: 1, HeadNorm: HeadNormOff,
	make: func(ps *ParamSet, c *AttnConfig) mixer { return &plain{cfg: c, gain: c.normGain(ps)} },
}

// plain is head_h = HeadNorm(softmax(QKᵀ/√D)·V). The norm is off except in ablations.
type plain struct {
	cfg  *AttnConfig
	gain *Param
	arg  device.Attn
	part device.Attn // some rows of arg
	grad device.AttnGrad
}

func (l *plain) bind(p *Pass, s device.AttnShape, q tensor.Tensor) {
	l.arg = device.Attn{AttnShape: s, Norm: l.cfg.norm(l.gain, 1), Q: q}
	l.arg.Out = p.Act(q.Rows, s.Heads*s.DV)
}

// normedPlain allocates what the head norm saves.
func normedPlain(p *Pass, a *device.Attn) {
	if a.Norm.On {
		a.Raw = p.Act(a.Q.Rows, a.Heads*a.DV)
		a.Rstd = p.stat(a.Q.Rows, a.Heads)
	}
}

func (l *plain) forward(p *Pass, s device.AttnShape, _, q, k, v tensor.Tensor) tensor.Tensor {
	l.bind(p, s, q)
	l.arg.K, l.arg.V, l.arg.Start = k, v, p.Start
	l.arg.LSE = p.stat(q.Rows, s.Heads)
	normedPlain(p, &l.arg)
	p.Dev.Attention(&l.arg)
	return l.arg.Out
}

func (l *plain) cached(p *Pass, s device.AttnShape, _, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	l.bind(p, s, q)
	overCache(p, l, c, l.arg.Out, q)
	return l.arg.Out
}

func (l *plain) paged(p *Pass, c *device.Cache) bool { return pagedPlain(p, &l.arg, c) }

func (l *plain) rows(p *Pass, c *device.Cache, from, to int) {
	rowsPlain(p, &l.part, &l.arg, c, from, to)
}

func (l *plain) chunk(p *Pass, _ *Chunk, o, q, k, v tensor.Tensor) {
	chunkPlain(p, &l.part, &l.arg, o, q, k, v)
}

func (l *plain) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	l.grad = device.AttnGrad{DOut: dout, DQ: dq, DK: dk, DV: dv}
	if l.gain != nil {
		l.grad.DNorm = l.gain.G
	}
	p.Dev.AttentionBackward(&l.arg, &l.grad)
}

func (l *plain) tail(*Pass, tensor.Tensor, tensor.Tensor) {}

func (l *plain) free(device.Device) {}

func (l *plain) lambda() (lam, sum tensor.Tensor) { return }

func (l *plain) applied() applied { return applied{norm: l.arg.Norm, raw: rawOr(l.arg.Raw, l.arg.Out)} }

// rowsPlain runs rows [from, to) of all over the cache; part receives their arguments.
func rowsPlain(p *Pass, part, all *device.Attn, c *device.Cache, from, to int) {
	*part = *all
	part.Q, part.Out = all.Q.RowRange(from, to), all.Out.RowRange(from, to)
	p.Dev.AttentionCached(part, c, p.Slot.Columns(from, to), p.Pos.Columns(from, to))
}

// chunkPlain runs a chunk of all as a separate sequence; part receives its arguments.
func chunkPlain(p *Pass, part, all *device.Attn, o, q, k, v tensor.Tensor) {
	*part = *all
	part.B, part.T = 1, q.Rows
	part.Q, part.K, part.V, part.Out = q, k, v, o
	normedPlain(p, part)
	p.Dev.Attention(part)
}
