package cpu

import (
	"cmp"

	"antiphase/device"
	"antiphase/tensor"
)

// DiffAttentionCached attends from single rows to the cache, V read once for both maps.
func (d *Device) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	args := diffArgs(a)
	d.fault = cmp.Or(d.fault, d.attn.Cached(&args, attnCache(c), attnPlaces(slot, pos)))
}
