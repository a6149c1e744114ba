package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var cacheWrite = kernelOf("cache", "cache_write")

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *Device) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.types)
	if k.Rows == 0 {
		return
	}
	d.launch(cacheWrite, dim1(k.Rows), dim1(128), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(c.Table), ptr(slot), ptr(pos), d.faultPtr(),
		i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld), i32(c.Table.Ld), i32(k.Cols), i32(v.Cols),
		i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize), i32(c.K.Rows), flag(vec(c.K, c.V, k, v)))
}
