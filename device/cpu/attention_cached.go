package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

// AttentionCached attends from single rows to the cache.
func (d *attention) AttentionCached(a *device.Attn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	args := plainArgs(a)
	d.fail(d.attn.Cached(&args, attnCache(c), attnPlaces(slot, pos)))
}
