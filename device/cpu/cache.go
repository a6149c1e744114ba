package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *attention) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.Types())
	d.touch(c.K, c.V)
	d.fail(d.attn.CacheWrite(attnCache(c), matrix(k), matrix(v), attnPlaces(slot, pos)))
}
