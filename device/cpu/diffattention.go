package cpu

import "antiphase/device"

// DiffAttention is differential attention, both maps of a head in one pass; attn_tile.go does the work.
func (d *Device) DiffAttention(a *device.DiffAttn) {
	a.Check(d.Types())
	d.touch(a.Out, a.Raw, a.LSE, a.Rstd, a.Out2)
	d.attn.diff(d, a)
	d.attn.forward()
}
