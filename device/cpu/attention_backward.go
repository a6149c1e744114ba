package cpu

import (
	"antiphase/device"
	"antiphase/device/cpu/attn"
)

// AttentionBackward is the gradient of Attention.
func (d *attention) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	a.CheckBackward(g, d.Types())
	d.touch(g.DQ, g.DK, g.DV, g.DNorm)
	args := plainArgs(a)
	d.attn.Backward(&args, &attn.Grads{DOut: matrix(g.DOut), DQ: matrix(g.DQ), DK: matrix(g.DK), DV: matrix(g.DV),
		DNorm: f32(g.DNorm)})
}
