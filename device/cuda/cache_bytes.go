package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	cacheWriteBytes = earlyOf("cache_bytes", "cache_write_bytes")
	cacheReadBytes  = earlyOf("cache_bytes", "cache_read_bytes")
)

// ropeBytes also does Rope, by layout: halves, interleaved.
var ropeBytes = [2]kernel{earlyOf("rope_bytes", "rope_bytes_half"), earlyOf("rope_bytes", "rope_bytes_pairs")}

var _ device.CacheReader = (*Device)(nil)

// headsOfBlock is the number of heads of a row per block of cache_bytes.cu.
const headsOfBlock = 4

// keepBytes is CacheWrite into an int8 cache.
func (d *rowOps) keepBytes(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	d.launch(cacheWriteBytes, dim2(k.Rows, ceil(c.KHeads+c.VHeads, headsOfBlock)), dim1(32*headsOfBlock), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(c.Table), ptr(slot), ptr(pos), d.faultPtr(),
		i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld), i32(c.Table.Ld), i32(c.KHeads), i32(c.VHeads),
		i32(c.D), i32(c.DV),
		i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize), i32(c.K.Rows))
}

// turnAndKeepBytes launches the held Rope and CacheWrite into an int8 cache together.
func (d *queue) turnAndKeepBytes(c *device.Cache, v, slot, pos tensor.Tensor) {
	d.held.taken()
	t := &d.held.turn
	const lanes, threads = 16, 128 // of a head, of a block
	d.launch(ropeBytes[flag(t.Interleaved)], dim1(ceil(t.x.Rows*(t.Heads+c.VHeads)*lanes, threads)), dim1(threads), 0,
		ptr(t.x), i32(t.x.Ld), ptr(t.table), i32(t.table.Ld), ptr(t.pos), i32(t.x.Rows), i32(t.Heads), i32(t.Dim),
		i32(t.table.Rows), f32(t.sign()),
		ptr(c.K), i32(c.K.Ld), i32(t.Heads-c.KHeads), ptr(c.V), i32(c.V.Ld), ptr(v), i32(v.Ld), i32(c.VHeads),
		i32(c.DV), ptr(slot), ptr(pos),
		ptr(c.Table), i32(c.Table.Ld), i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize),
		i32(c.K.Rows), d.faultPtr())
	d.fresh.wrote(t.x)
}

// CacheRead copies rows of the cache, as bf16.
func (d *rowOps) CacheRead(k, v tensor.Tensor, c *device.Cache, ids tensor.Tensor) {
	if c.K.Type != tensor.I8 {
		d.Embed(k, c.K, ids)
		d.Embed(v, c.V, ids)
		return
	}
	if k.Rows == 0 {
		return
	}
	d.launch(cacheReadBytes, dim2(k.Rows, ceil(c.KHeads+c.VHeads, headsOfBlock)), dim1(32*headsOfBlock), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(ids), d.faultPtr(), i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld),
		i32(c.KHeads), i32(c.VHeads), i32(c.D), i32(c.DV), i32(c.K.Rows))
	d.fresh.wrote(k, v)
}
