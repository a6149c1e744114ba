package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var cacheWrite = earlyOf("cache", "cache_write")

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *Device) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.types)
	if k.Rows == 0 {
		return
	}
	wide, pieces := k.Cols%8 == 0 && v.Cols%8 == 0 && vec(c.K, c.V, k, v), k.Cols+v.Cols
	if wide {
		pieces /= 8
	}
	d.launch(cacheWrite, dim2(k.Rows, max(1, ceil(pieces, 128))), dim1(128), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(c.Table), ptr(slot), ptr(pos), d.faultPtr(),
		i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld), i32(c.Table.Ld), i32(k.Cols), i32(v.Cols),
		i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize), i32(c.K.Rows), flag(wide))
	for _, t := range []tensor.Tensor{c.K, c.V} {
		s := spanOf(t)
		if k.Rows == 1 {
			s.slot, s.pos = ptr(slot), ptr(pos)
		}
		d.fresh.note(s)
	}
}
