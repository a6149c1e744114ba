package cpu

import "antiphase/device"

// DiffAttention is differential attention, both maps of a head in one pass.
func (d *attention) DiffAttention(a *device.DiffAttn) {
	a.Check(d.Types())
	d.touch(a.Out, a.Raw, a.LSE, a.Rstd, a.Out2)
	args := diffArgs(a)
	d.attn.Forward(&args)
}
