package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// DiffAttention: A_i = softmax(Scale·Q_i·K_iᵀ), raw = (A1 − λ·A2)·V, out = HeadNorm(raw), Out2 = A2·V.
func (d *attention) DiffAttention(a *device.DiffAttn) {
	a.Check(d.types)
	q, k, v, lam := load(a.Q), load(a.K), load(a.V), load(a.Lam)
	raw, out2, lse := newMatrix(q.rows, a.Heads*a.DV), newMatrix(q.rows, a.Heads*a.DV), newMatrix(q.rows, 2*a.Heads)
	for n := range q.rows {
		lo := firstKey(a.Start, a.T, n)
		for h := range a.Heads {
			g, k1, k2 := keyHeads(a, h)
			p1, l1 := attend(q.head(n, 2*h, a.D), k, k1, lo, n, a.Scale)
			p2, l2 := attend(q.head(n, 2*h+1, a.D), k, k2, lo, n, a.Scale)
			mix(out2.head(n, h, a.DV), p2, v, g, lo)
			axpy(p1, -lambdaOf(lam, n, h), p2)
			mix(raw.head(n, h, a.DV), p1, v, g, lo)
			lse.row(n)[2*h], lse.row(n)[2*h+1] = l1, l2
		}
	}
	storeHeads(a.Norm, a.DV, raw, a.Out, a.Raw, a.Rstd)
	storeIf(a.Out2, out2)
	storeIf(a.LSE, lse)
}

// keyHeads are the value head and the two key heads that pair h reads.
func keyHeads(a *device.DiffAttn, h int) (g, k1, k2 int) {
	g = h / (a.Heads / a.Groups)
	return g, g * a.Keys, g*a.Keys + a.Keys - 1
}

// lambdaOf is λ of row n and head h: one for all, or each its own.
func lambdaOf(lam matrix, n, h int) float64 {
	if len(lam.v) == 1 {
		return lam.v[0]
	}
	return lam.row(n)[h]
}

// DiffAttentionBackward: dV = (P1 − λP2)ᵀ·dO, dS1 = P1∘(dP − Δ1), dS2 = −λP2∘(dP − Δ2), dλ = −Δ2.
func (d *attention) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	a.CheckBackward(g, d.types)
	q, k, v := load(a.Q), load(a.K), load(a.V)
	lam, lse, out2 := load(a.Lam), load(a.LSE), load(a.Out2)
	raw, draw := openHeads(a.Norm, a.DV, a.Out, a.Raw, a.Rstd, g.DOut, g.DNorm)
	dq, dk, dv := newMatrix(q.rows, q.cols), newMatrix(k.rows, k.cols), newMatrix(v.rows, v.cols)
	dlam := newMatrix(q.rows, a.Heads)
	for n := range q.rows {
		lo := firstKey(a.Start, a.T, n)
		for h := range a.Heads {
			vh, k1, k2 := keyHeads(a, h)
			q1, q2, dO := q.head(n, 2*h, a.D), q.head(n, 2*h+1, a.D), draw.head(n, h, a.DV)
			l := lambdaOf(lam, n, h)
			delta2 := dot(dO, out2.head(n, h, a.DV))
			delta1 := dot(dO, raw.head(n, h, a.DV)) + l*delta2
			dlam.row(n)[h] = -delta2
			p1 := again(q1, k, k1, lo, n, a.Scale, lse.row(n)[2*h])
			p2 := again(q2, k, k2, lo, n, a.Scale, lse.row(n)[2*h+1])
			for i := range p1 {
				s := lo + i
				dP := dot(dO, v.head(s, vh, a.DV))
				dS1, dS2 := p1[i]*(dP-delta1), -l*p2[i]*(dP-delta2)
				axpy(dq.head(n, 2*h, a.D), a.Scale*dS1, k.head(s, k1, a.D))
				axpy(dq.head(n, 2*h+1, a.D), a.Scale*dS2, k.head(s, k2, a.D))
				axpy(dk.head(s, k1, a.D), a.Scale*dS1, q1)
				axpy(dk.head(s, k2, a.D), a.Scale*dS2, q2)
				axpy(dv.head(s, vh, a.DV), p1[i]-l*p2[i], dO)
			}
		}
	}
	store(g.DQ, dq)
	store(g.DK, dk)
	store(g.DV, dv)
	store(g.DLam, dlam)
}

// DiffAttentionCached: each row attends to positions 0…pos of its slot, with both maps.
func (d *attention) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.types)
	q, lam, raw := load(a.Q), load(a.Lam), newMatrix(a.Q.Rows, a.Heads*a.DV)
	for n := range q.rows {
		hi := int(integers(pos)[n])
		k, v := d.gather(c, int(integers(slot)[n]), hi)
		for h := range a.Heads {
			g, k1, k2 := keyHeads(a, h)
			p, _ := attend(q.head(n, 2*h, a.D), k, k1, 0, hi, a.Scale)
			p2, _ := attend(q.head(n, 2*h+1, a.D), k, k2, 0, hi, a.Scale)
			axpy(p, -lambdaOf(lam, n, h), p2)
			mix(raw.head(n, h, a.DV), p, v, g, 0)
		}
	}
	storeHeads(a.Norm, a.DV, raw, a.Out, a.Raw, a.Rstd)
}
