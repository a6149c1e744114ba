package ref

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Attention: P = softmax(Scale·q·kᵀ) over the query's document up to itself, raw = P·v, out = HeadNorm(raw).
func (d *attention) Attention(a *device.Attn) {
	a.Check(d.types)
	q, k, v := load(a.Q), load(a.K), load(a.V)
	raw, lse := newMatrix(q.rows, a.Heads*a.DV), newMatrix(q.rows, a.Heads)
	for n := range q.rows {
		lo := firstKey(a.Start, a.T, n)
		for h := range a.Heads {
			g := h / (a.Heads / a.Groups)
			p, l := attend(q.head(n, h, a.D), k, g, lo, n, a.Scale)
			mix(raw.head(n, h, a.DV), p, v, g, lo)
			lse.row(n)[h] = l
		}
	}
	storeHeads(a.Norm, a.DV, raw, a.Out, a.Raw, a.Rstd)
	storeIf(a.LSE, lse)
}

// firstKey is the row of the first key visible to query row n: the sequence's first, or its document's.
func firstKey(start tensor.Tensor, t, n int) int {
	lo := n / t * t
	if start.Ok() {
		lo += int(integers(start)[n])
	}
	return lo
}

// attend is one query's softmax over rows lo…hi of key head kh, and its log-sum-exp.
func attend(q []float64, k matrix, kh, lo, hi int, scale float64) (p []float64, lse float64) {
	return softmax(logits(q, k, kh, lo, hi, scale))
}

// logits are Scale·q·k_s for rows lo…hi of key head kh.
func logits(q []float64, k matrix, kh, lo, hi int, scale float64) []float64 {
	s := make([]float64, hi-lo+1)
	for i := range s {
		s[i] = scale * dot(q, k.head(lo+i, kh, len(q)))
	}
	return s
}

// mix: out += Σ_s p_s·v_s, starting at row lo.
func mix(out, p []float64, v matrix, vh, lo int) {
	for i, e := range p {
		axpy(out, e, v.head(lo+i, vh, len(out)))
	}
}

// again is a map recomputed from its log-sum-exp: P = exp(Scale·q·k − lse).
func again(q []float64, k matrix, kh, lo, hi int, scale, lse float64) []float64 {
	p := logits(q, k, kh, lo, hi, scale)
	for i, s := range p {
		p[i] = math.Exp(s - lse)
	}
	return p
}

// AttentionBackward: dP = dO·vᵀ, dS = P∘(dP − dO·raw), dq = Scale·dS·k, dk = Scale·dSᵀ·q, dv = Pᵀ·dO.
func (d *attention) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	a.CheckBackward(g, d.types)
	q, k, v, lse := load(a.Q), load(a.K), load(a.V), load(a.LSE)
	raw, draw := openHeads(a.Norm, a.DV, a.Out, a.Raw, a.Rstd, g.DOut, g.DNorm)
	dq, dk, dv := newMatrix(q.rows, q.cols), newMatrix(k.rows, k.cols), newMatrix(v.rows, v.cols)
	for n := range q.rows {
		lo := firstKey(a.Start, a.T, n)
		for h := range a.Heads {
			kh := h / (a.Heads / a.Groups)
			qh, dO := q.head(n, h, a.D), draw.head(n, h, a.DV)
			delta := dot(dO, raw.head(n, h, a.DV))
			for i, p := range again(qh, k, kh, lo, n, a.Scale, lse.row(n)[h]) {
				s := lo + i
				dS := p * (dot(dO, v.head(s, kh, a.DV)) - delta)
				axpy(dq.head(n, h, a.D), a.Scale*dS, k.head(s, kh, a.D))
				axpy(dk.head(s, kh, a.D), a.Scale*dS, qh)
				axpy(dv.head(s, kh, a.DV), p, dO)
			}
		}
	}
	store(g.DQ, dq)
	store(g.DK, dk)
	store(g.DV, dv)
}

// AttentionCached: each row attends to positions 0…pos of its slot.
func (d *attention) AttentionCached(a *device.Attn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.types)
	q, raw := load(a.Q), newMatrix(a.Q.Rows, a.Heads*a.DV)
	for n := range q.rows {
		hi := int(integers(pos)[n])
		k, v := d.gather(c, int(integers(slot)[n]), hi)
		for h := range a.Heads {
			g := h / (a.Heads / a.Groups)
			p, _ := attend(q.head(n, h, a.D), k, g, 0, hi, a.Scale)
			mix(raw.head(n, h, a.DV), p, v, g, 0)
		}
	}
	storeHeads(a.Norm, a.DV, raw, a.Out, a.Raw, a.Rstd)
}
