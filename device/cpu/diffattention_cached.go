package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

// DiffAttentionCached attends from single rows to the cache, V read once for both maps; attn_cached.go does the work.
func (d *Device) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	d.attn.diff(d, a)
	if d.attn.cache(d, c, slot, pos, true) {
		d.attn.cached()
	}
}
