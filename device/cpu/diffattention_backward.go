package cpu

import (
	"antiphase/device"
	"antiphase/device/cpu/attn"
)

// DiffAttentionBackward is the gradient of DiffAttention.
func (d *attention) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	a.CheckBackward(g, d.Types())
	d.touch(g.DQ, g.DK, g.DV, g.DNorm, g.DLam)
	args := diffArgs(a)
	d.attn.Backward(&args, &attn.Grads{DOut: matrix(g.DOut), DQ: matrix(g.DQ), DK: matrix(g.DK), DV: matrix(g.DV),
		DLam: matrix(g.DLam), DNorm: f32(g.DNorm)})
}
