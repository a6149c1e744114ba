package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// gdaArch is grouped differential attention: heads of a group share keys and values and also the query of the second
// map. The last query head of every group belongs to the second map. With as many groups as heads this is DIFF.
var gdaArch = Arch{
	Name: "gda", Doc: "differential attention whose heads share one second map per group (GDA)",
	Maps: 2, Keys: 2, Values: 2, HeadNorm: HeadNormAffine,
	make: func(ps *ParamSet, c *AttnConfig) mixer { return &gda{diff: newDiff(ps, c)} },
	archLayout: archLayout{
		groups:     gdaGroups,
		queryHeads: func(heads, groups int) int { return heads + groups },
		query:      gdaQuery,
		memory:     gdaMemory,
	},
}

// gdaGroups makes groups of four heads, or of the largest divisor below four. Ratios of three and four are reported to
// work best.
func gdaGroups(heads int) int {
	for size := 4; size > 1; size-- {
		if heads > 0 && heads%size == 0 {
			return heads / size
		}
	}
	return heads
}

// gdaQuery returns the query head of a map: a group has one query head per head for the first maps, then one for the
// second map.
func gdaQuery(c *AttnConfig, head, m int) int {
	size := c.Heads / c.Groups
	first := head / size * (size + 1)
	if m == 1 {
		return first + size
	}
	return first + head%size
}

// gdaMemory is DIFF's, plus the copied queries of both maps of every head and their gradient.
func gdaMemory(c *AttnConfig, t device.Types) (kept, passing int) {
	kept, passing = diffMemory(c, t)
	spread := actBytes(t, 2*c.Heads*c.HeadDim)
	return kept + spread, passing + spread
}

// gda is DIFF's head with another second map:
//
//	head_h = (1−λ_init)·RMSNorm((softmax(Q_h·K1ᵀ/√D) − λ·softmax(Q'_g·K2ᵀ/√D))·V),  g = h's group
//
// No device op shares a map between heads, so every head gets its own copy of Q'_g. The projection, its gradients and
// its optimiser state are smaller than DIFF's; the attention costs the same.
type gda struct{ *diff }

// spread pushes the queries in DIFF's layout, [N, H·2·D]: the two maps of a head are adjacent.
func (l *gda) spread(p *Pass, q tensor.Tensor) tensor.Tensor {
	out := p.Act(q.Rows, 2*l.cfg.Heads*l.cfg.HeadDim)
	l.each(func(at, from, _ int) { p.Dev.Copy(l.head(out, at), l.head(q, from)) })
	return out
}

// gather sets dq from the gradient of the spread queries, summing over heads that share a query.
func (l *gda) gather(p *Pass, dq, dspread tensor.Tensor) {
	l.each(func(at, from, nth int) {
		if nth == 0 {
			p.Dev.Copy(l.head(dq, from), l.head(dspread, at))
		} else {
			p.Dev.Add(l.head(dq, from), l.head(dspread, at))
		}
	})
}

// each calls f for every spread query head with its index, the index of its original, and the number of earlier copies.
func (l *gda) each(f func(at, from, nth int)) {
	size := l.cfg.Heads / l.cfg.Groups
	for h := range l.cfg.Heads {
		f(2*h, gdaQuery(l.cfg, h, 0), 0)
		f(2*h+1, gdaQuery(l.cfg, h, 1), h%size)
	}
}

// head returns a view of one query head.
func (l *gda) head(t tensor.Tensor, i int) tensor.Tensor {
	return t.Columns(i*l.cfg.HeadDim, (i+1)*l.cfg.HeadDim)
}

func (l *gda) forward(p *Pass, s device.AttnShape, x, q, k, v tensor.Tensor) tensor.Tensor {
	return l.diff.forward(p, s, x, l.spread(p, q), k, v)
}

func (l *gda) cached(p *Pass, s device.AttnShape, x, q tensor.Tensor, c *device.Cache) tensor.Tensor {
	return l.diff.cached(p, s, x, l.spread(p, q), c)
}

func (l *gda) backward(p *Pass, dout, dq, dk, dv tensor.Tensor) {
	dspread := p.Act(dq.Rows, 2*l.cfg.Heads*l.cfg.HeadDim)
	l.diff.backward(p, dout, dspread, dk, dv)
	l.gather(p, dq, dspread)
}
