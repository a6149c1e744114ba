package ref

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *attention) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.types)
	keys, vals := load(k), load(v)
	for n := range keys.rows {
		row := d.cacheRow(c, int(integers(slot)[n]), int(integers(pos)[n]))
		if row < 0 {
			continue
		}
		storeRow(c.K.RowRange(row, row+1), keys.row(n))
		storeRow(c.V.RowRange(row, row+1), vals.row(n))
	}
}

// cacheRow is the row Table[s, p/PageSize]·PageSize + p%PageSize, or −1 and a fault if there is none.
func (d *attention) cacheRow(c *device.Cache, slot, pos int) int {
	row, page := -1, pos/c.PageSize
	if slot >= 0 && slot < c.Table.Rows && pos >= 0 && page < c.Table.Cols {
		row = int(tensor.Host[int32](c.Table.RowRange(slot, slot+1))[page])*c.PageSize + pos%c.PageSize
	}
	if row < 0 || row >= c.K.Rows {
		d.fail(fmt.Errorf("ref: cache: position %d of slot %d is in no page: table %v, cache %v", pos, slot,
			c.Table, c.K))
		return -1
	}
	return row
}

// gather copies positions 0…last of a slot from their pages, in order; a missing one is zero.
func (d *attention) gather(c *device.Cache, slot, last int) (k, v matrix) {
	k, v = newMatrix(last+1, c.K.Cols), newMatrix(last+1, c.V.Cols)
	for p := range last + 1 {
		if row := d.cacheRow(c, slot, p); row >= 0 {
			loadRow(k.row(p), c.K.RowRange(row, row+1))
			loadRow(v.row(p), c.V.RowRange(row, row+1))
		}
	}
	return k, v
}
