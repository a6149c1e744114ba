package cpu

import (
	"cmp"

	"antiphase/device"
	"antiphase/tensor"
)

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *Device) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.Types())
	d.touch(c.K, c.V)
	d.fault = cmp.Or(d.fault, d.attn.CacheWrite(attnCache(c), matrix(k), matrix(v), attnPlaces(slot, pos)))
}
