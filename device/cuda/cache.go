package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	cacheWrite = earlyOf("cache", "cache_write")
	// ropeCache also does Rope, by layout: halves, interleaved.
	ropeCache = [2]kernel{earlyOf("rope_cache", "rope_cache_half"), earlyOf("rope_cache", "rope_cache_pairs")}
)

// CacheWrite stores row n of k and v at (slot[n], pos[n]).
func (d *rowOps) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	c.CheckWrite(k, v, slot, pos, d.types)
	if k.Rows == 0 {
		return
	}
	if c.K.Type == tensor.I8 {
		if !d.joinBytes(c, k, v, slot, pos) {
			d.keepBytes(c, k, v, slot, pos)
		}
		d.noteKept(c, k.Rows, slot, pos)
		return
	}
	wide := k.Cols%8 == 0 && v.Cols%8 == 0 && vec(c.K, c.V, k, v)
	if !d.joinCache(c, k, v, slot, pos, wide) {
		d.keep(c, k, v, slot, pos, wide)
	}
	d.noteKept(c, k.Rows, slot, pos)
}

// noteKept records that rows of the cache were written.
func (d *rowOps) noteKept(c *device.Cache, rows int, slot, pos tensor.Tensor) {
	for _, t := range []tensor.Tensor{c.K, c.V} {
		s := spanOf(t)
		s.kept = kept{ptr(slot), ptr(pos), rows}
		d.fresh.note(s)
	}
}

// keep launches CacheWrite alone; wide allows 16-byte accesses.
func (d *rowOps) keep(c *device.Cache, k, v, slot, pos tensor.Tensor, wide bool) {
	pieces := k.Cols + v.Cols
	if wide {
		pieces /= 8
	}
	d.launch(cacheWrite, dim2(k.Rows, max(1, ceil(pieces, 128))), dim1(128), 0,
		ptr(c.K), ptr(c.V), ptr(k), ptr(v), ptr(c.Table), ptr(slot), ptr(pos), d.faultPtr(),
		i32(c.K.Ld), i32(c.V.Ld), i32(k.Ld), i32(v.Ld), i32(c.Table.Ld), i32(k.Cols), i32(v.Cols),
		i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize), i32(c.K.Rows), flag(wide))
}

// leaves reports whether k is the last columns that Rope rotates, whole heads, and v follows them.
func (c *turnCall) leaves(k, v tensor.Tensor) bool {
	at := c.x.Cols - k.Cols
	if at < 0 || at%c.Dim != 0 || !same(k, c.x.Columns(at, c.x.Cols)) {
		return false
	}
	if !v.Overlaps(c.x) {
		return true
	}
	// Columns of one row of both: their spans overlap if there are several rows.
	from := int(ptr(v)-ptr(c.x)) / v.Type.Size()
	return v.Ld == c.x.Ld && from >= c.x.Cols && from+v.Cols <= v.Ld
}

// ends reports whether v is the product's columns after those that are rotated.
func (p *productCall) ends(t *turnCall, v tensor.Tensor) bool {
	return same(v, p.c.Columns(t.x.Cols, p.c.Cols))
}

// turnAndKeep launches the held Rope and CacheWrite together.
func (d *queue) turnAndKeep(c *device.Cache, v, slot, pos tensor.Tensor) {
	d.held.taken()
	t := &d.held.turn
	pairs, _ := t.pairs()
	units := t.x.Rows * (t.Heads*(t.Dim/2/pairs) + v.Cols/8)
	d.launch(ropeCache[flag(t.Interleaved)], dim1(ceil(units, 128)), dim1(128), 0,
		ptr(t.x), i32(t.x.Ld), ptr(t.table), i32(t.table.Ld), ptr(t.pos), i32(t.x.Rows), i32(t.Heads), i32(t.Dim),
		i32(t.table.Rows), f32(t.sign()),
		ptr(c.K), i32(c.K.Ld), i32(t.x.Cols-c.K.Cols), ptr(c.V), i32(c.V.Ld), ptr(v), i32(v.Ld), i32(v.Cols),
		ptr(slot), ptr(pos),
		ptr(c.Table), i32(c.Table.Ld), i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize),
		i32(c.K.Rows), d.faultPtr())
	d.fresh.wrote(t.x)
}
