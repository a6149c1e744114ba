package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// attnSplit and attnJoin are the kernels of cached attention, by the number of maps.
var (
	attnSplit = [3]kernel{1: kernelOf("attention_cached", "attention_split"), 2: kernelOf("diffattention_cached", "diffattention_split")}
	attnJoin  = [3]kernel{1: kernelOf("attention_cached", "attention_join"), 2: kernelOf("diffattention_cached", "diffattention_join")}
)

// Numbers of kernels/attn_cached.cuh: keys of a split, floats that its warps add up, threads of a join; how many splits of a
// row a launch takes at once; and the bytes that the splits of one launch may leave in scratch memory.
const (
	splitKeys, splitSums, joinThreads = 64, 4 * 4 * 256, 1024
	splitsAtOnce                      = 64
	splitRoom                         = 256 << 20
)

// splitParts is where the partial sums of one launch lie: O, then m and l.
type splitParts struct {
	sums, stats uint64
	splits      int
}

// attendCached launches attention of single rows to a cache. Long prompts come in pieces, so that scratch memory stays small.
func (d *Device) attendCached(c *attnCall, cache *device.Cache, slot, pos tensor.Tensor) {
	c.mustFit()
	splits := ceil(cache.Table.Cols*cache.PageSize, splitKeys)
	if c.q.Rows == 0 || splits == 0 {
		return
	}
	perRow := splits * c.Heads * c.maps * (c.DV + 2) * 4
	rows := min(c.q.Rows, max(1, splitRoom/perRow), 65535)
	part := splitParts{sums: uint64(d.scratch(rows * perRow)), splits: splits}
	part.stats = part.sums + uint64(rows*splits*c.Heads*c.maps*c.DV*4)
	for from := 0; from < c.q.Rows; from += rows {
		to := min(from+rows, c.q.Rows)
		d.split(c, cache, c.q.RowRange(from, to), slot.Columns(from, to), pos.Columns(from, to), part)
		d.join(c, from, to, pos.Columns(from, to), part)
	}
}

// split launches the rows' partial sums.
func (d *Device) split(c *attnCall, cache *device.Cache, q, slot, pos tensor.Tensor, part splitParts) {
	vectors := c.Heads / c.Groups * c.maps
	d.launch(attnSplit[c.maps], dim3(min(part.splits, splitsAtOnce), c.Groups, q.Rows), dim1(128), 4*(vectors*(c.D+splitKeys)+splitSums),
		ptr(q), ptr(cache.K), ptr(cache.V), ptr(cache.Table), ptr(slot), ptr(pos), d.faultPtr(), part.sums, part.stats,
		i32(q.Ld), i32(cache.K.Ld), i32(cache.V.Ld), i32(cache.Table.Ld), i32(c.Heads), i32(c.Groups), i32(c.D), i32(c.DV), i32(c.keys),
		i32(part.splits), flag(c.D%8 == 0 && vec8(c.DV, cache.K, cache.V)), f32(c.Scale),
		i32(cache.Table.Rows), i32(cache.Table.Cols), i32(cache.PageSize), i32(cache.K.Rows))
}

// join launches the sum over splits and the head norm.
func (d *Device) join(c *attnCall, from, to int, pos tensor.Tensor, part splitParts) {
	lam, out, raw, rstd := c.lam, c.out.RowRange(from, to), c.raw, c.rstd
	if c.eachLam {
		lam = lam.RowRange(from, to)
	}
	if raw.Ok() {
		raw = raw.RowRange(from, to)
	}
	if rstd.Ok() {
		rstd = rstd.RowRange(from, to)
	}
	d.launch(attnJoin[c.maps], dim2(c.Heads, to-from), dim1(joinThreads), 4*c.maps*part.splits,
		part.sums, part.stats, ptr(pos), ptr(lam), c.weightPtr(), ptr(out), ptr(raw), ptr(rstd), i32(lam.Ld), i32(out.Ld), i32(raw.Ld), i32(rstd.Ld),
		i32(c.Heads), i32(c.DV), i32(part.splits), flag(c.eachLam), flag(c.norm.On), f32(c.norm.Eps), f32(c.norm.Scale))
}
