package cpu

import "antiphase/device"

// Attention is causal softmax attention, one map per head; attn_tile.go does the work.
func (d *Device) Attention(a *device.Attn) {
	a.Check(d.Types())
	d.touch(a.Out, a.Raw, a.LSE, a.Rstd)
	d.attn.plain(d, a)
	d.attn.forward()
}
