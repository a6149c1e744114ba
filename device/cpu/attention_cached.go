package cpu

import (
	"cmp"

	"antiphase/device"
	"antiphase/tensor"
)

// AttentionCached attends from single rows to the cache.
func (d *Device) AttentionCached(a *device.Attn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	args := plainArgs(a)
	d.fault = cmp.Or(d.fault, d.attn.Cached(&args, attnCache(c), attnPlaces(slot, pos)))
}
