package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

// DiffAttentionCached attends from single rows to the cache, reading V once for both maps.
func (d *attention) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, slot, pos tensor.Tensor) {
	a.CheckCached(c, slot, pos, d.Types())
	d.touch(a.Out, a.Raw, a.Rstd)
	args := diffArgs(a)
	d.fail(d.attn.Cached(&args, attnCache(c), attnPlaces(slot, pos)))
}
