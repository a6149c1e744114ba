package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

// AttentionCached attends from single rows to the cache; attn_cached.go does the work.
func (d *Device) AttentionCached(a *device.Attn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	d.attn.plain(d, a)
	if d.attn.cache(d, c, slot, pos, true) {
		d.attn.cached()
	}
}
