package cpu

import "antiphase/device"

// Attention is causal softmax attention, one map per head.
func (d *attention) Attention(a *device.Attn) {
	a.Check(d.Types())
	d.touch(a.Out, a.Raw, a.LSE, a.Rstd)
	args := plainArgs(a)
	d.attn.Forward(&args)
}
