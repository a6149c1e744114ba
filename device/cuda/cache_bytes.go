package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	cacheWriteBytes = earlyOf("cache_bytes", "cache_write_bytes")
	cacheReadBytes  = earlyOf("cache_bytes", "cache_read_bytes")
)

var _ device.CacheReader = (*Device)(nil)

// headsOfBlock is the number of heads of a row per block of cache_bytes.cu.
const headsOfBlock = 4

// keepBytes is CacheWrite into an int8 cache.
func (d *rowOps) keepBytes(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	d.launch(cacheWriteBytes, dim2(k.Rows, ceil(c.KHeads+c.VHeads, headsOfBlock)), dim1(32*headsOfBlock), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(c.Table), ptr(slot), ptr(pos), d.faultPtr(),
		i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld), i32(c.Table.Ld), i32(c.KHeads), i32(c.VHeads), i32(c.D), i32(c.DV),
		i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize), i32(c.K.Rows))
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
