package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// cacheWrite copies rows, in k and v, into the pages, in their dtype.
type cacheWrite attnState

// cacheRows is the number of rows in one tile.
const cacheRows = 16

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *Device) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.Types())
	d.touch(c.K, c.V)
	s := &d.attn
	s.k, s.v = matOf(k), matOf(v)
	if s.cache(d, c, slot, pos, false) {
		d.run((k.Rows+cacheRows-1)/cacheRows, (*cacheWrite)(s))
	}
}

func (t *cacheWrite) tile(i, _ int) {
	for n := i * cacheRows; n < min((i+1)*cacheRows, t.k.rows); n++ {
		row := t.place(int(t.slot[n]), int(t.pos[n]))
		switch {
		case t.k.h != nil:
			copy(t.keys16.from(row, 0), t.k.half(n, 0, t.k.cols))
			copy(t.values16.from(row, 0), t.v.half(n, 0, t.v.cols))
		case t.keys16.x != nil:
			simd.NarrowBF16(t.keys16.from(row, 0), t.k.row(n))
			simd.NarrowBF16(t.values16.from(row, 0), t.v.row(n))
		default:
			copy(t.keys32.from(row, 0), t.k.row(n))
			copy(t.values32.from(row, 0), t.v.row(n))
		}
	}
}
