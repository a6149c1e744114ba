package cpu

import "antiphase/device"

// DiffAttentionBackward is the gradient of DiffAttention; attn_prepare.go and attn_backward.go do the work.
func (d *Device) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	a.CheckBackward(g, d.Types())
	d.touch(g.DQ, g.DK, g.DV, g.DNorm, g.DLam)
	d.attn.diff(d, a)
	d.attn.dnorm, d.attn.dlam = f32(g.DNorm), matOf(g.DLam)
	d.attn.grad(matOf(g.DOut), matOf(g.DQ), matOf(g.DK), matOf(g.DV))
	d.attn.backward()
}
