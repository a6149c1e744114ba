package cpu

import "antiphase/device"

// AttentionBackward is the gradient of Attention; attn_prepare.go and attn_backward.go do the work.
func (d *Device) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	a.CheckBackward(g, d.Types())
	d.touch(g.DQ, g.DK, g.DV, g.DNorm)
	d.attn.plain(d, a)
	d.attn.dnorm = f32(g.DNorm)
	d.attn.grad(matOf(g.DOut), matOf(g.DQ), matOf(g.DK), matOf(g.DV))
	d.attn.backward()
}
