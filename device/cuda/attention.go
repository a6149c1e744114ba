package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Attention: P = softmax(Scale·q·kᵀ), raw = P·v, out = HeadNorm(raw).
func (d *attention) Attention(a *device.Attn) {
	a.Check(d.types)
	c := plainCall(a, nil)
	d.attend(&c)
}

// AttentionBackward: dP = dO·vᵀ, dS = P∘(dP − Δ), dq = Scale·dS·k, dk = Scale·dSᵀ·q, dv = Pᵀ·dO.
func (d *attention) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	a.CheckBackward(g, d.types)
	c := plainCall(a, g)
	d.attendBackward(&c)
}

// AttentionCached: each row attends to positions 0…pos of its slot.
func (d *attention) AttentionCached(a *device.Attn, cache *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(cache, slot, pos, d.types)
	c := plainCall(a, nil)
	d.attendCached(&c, cache, slot, pos)
}
