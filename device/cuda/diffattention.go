package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// DiffAttention: A_i = softmax(Scale·Q_i·K_iᵀ), raw = (A1 − λ·A2)·V, out = HeadNorm(raw), both maps in one pass over K
// and V.
func (d *attention) DiffAttention(a *device.DiffAttn) {
	a.Check(d.types)
	c := diffCall(a, nil)
	d.attend(&c)
}

// DiffAttentionBackward: dV = (P1 − λP2)ᵀ·dO, dS1 = P1∘(dP − Δ1), dS2 = −λP2∘(dP − Δ2), dλ = −Δ2; dP and dV are formed
// once.
func (d *attention) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	a.CheckBackward(g, d.types)
	c := diffCall(a, g)
	d.attendBackward(&c)
}

// DiffAttentionCached: each row attends to positions 0…pos of its slot, with both maps.
func (d *attention) DiffAttentionCached(a *device.DiffAttn, cache *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(cache, slot, pos, d.types)
	c := diffCall(a, nil)
	d.attendCached(&c, cache, slot, pos)
}
