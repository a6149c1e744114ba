package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// attnCached are the kernels of cached attention for one shape.
type attnCached struct{ split, splits, join kernel }

// cachedKernels registers kernels for a shape and a cache of bf16 or int8; the zero shape takes its dimensions at run
// time. Kernels of a shape for int8 have four blocks on an SM.
func cachedKernels(maps int, s attnShape, bytes bool) attnCached {
	unit := "attention"
	if maps == 2 {
		unit = "diffattention"
	}
	split := 0
	if s.maps != 0 {
		split = s.splitKeys(bytes, splitBound(bytes))
	}
	options := fmt.Sprintf("-DHEAD=%d -DVALUE=%d -DKEYS=%d -DSPLIT=%d -DTHREADS=%d", s.d, s.dv, s.keys,
		split, splitThreads)
	if bytes {
		options += " -DBYTES=1"
	}
	if bytes && split > 0 {
		options += " -DBLOCKS=4"
	}
	of := func(name string) kernel { return earlyOf(unit+"_cached", unit+name, options) }
	return attnCached{of("_split"), of("_splits"), of("_join")}
}

// cachedShapes are the shapes with compile-time dimensions, by whether the cache is int8: those of the tiled kernels,
// except plain attention with wide values.
var cachedShapes = func() map[bool]map[attnShape]attnCached {
	all := map[bool]map[attnShape]attnCached{}
	for _, bytes := range []bool{false, true} {
		all[bytes] = map[attnShape]attnCached{}
		for _, d := range []int{32, 64, 96, 128} {
			for _, s := range []attnShape{{1, 1, d, d}, {2, 1, d, d}, {2, 2, d, 2 * d}} {
				all[bytes][s] = cachedKernels(s.maps, s, bytes)
			}
		}
	}
	return all
}()

// cachedGeneral are the kernels for any other shape, by the number of maps and whether the cache is int8.
var cachedGeneral = [3][2]attnCached{
	1: {cachedKernels(1, attnShape{}, false), cachedKernels(1, attnShape{}, true)},
	2: {cachedKernels(2, attnShape{}, false), cachedKernels(2, attnShape{}, true)},
}

// Constants of kernels/attn_cached.cuh: the threads of a split and of a join; the bytes of K and V that bound a split;
// and the scratch bytes that the splits of one launch may use. Splits of 128 threads and 64 KB were as fast for one
// map, and a fifth slower for two maps with many rows.
const (
	splitThreads = 256
	joinThreads  = 384
	splitBytes   = 100 << 10
	splitRoom    = 256 << 20
	splitBlocks  = 12 // per SM, if there are many rows: three at a time, and waves enough to balance their lengths
)

// wide16 is the width of a head in shared memory and in the splits' sums.
func wide16(n int) int { return ceil(n, 16) * 16 }

// splitBound is the bound of a shape that has kernels of its own: half of it for int8, whose splits would else have
// twice the keys, and an SM half the blocks.
func splitBound(bytes bool) int {
	if bytes {
		return splitBytes / 2
	}
	return splitBytes
}

// splitKeys is the number of keys per split: at most these bytes of K and V.
func (s attnShape) splitKeys(bytes bool, most int) int {
	keys := splitThreads
	for row := (s.keys*wide16(s.d) + wide16(s.dv)) * cellSize(bytes); keys > 32 && keys*row > most; {
		keys /= 2
	}
	return keys
}

// cellSize is the size in bytes of an element of the cache.
func cellSize(bytes bool) int {
	if bytes {
		return 1
	}
	return 2
}

// cachedCall is a call's kernels and the division of its keys into splits; sums and stats hold O, and m with l, of the
// splits of one launch.
type cachedCall struct {
	*attnCall
	attnCached
	keysOfSplit, parts int // keys per split, and splits for the longest sequence the cache can hold
	sums, stats        uint64
	bytes              bool // the cache is int8
}

// attendCached launches attention of single rows to a cache. Long prompts are processed in pieces, so that scratch
// memory stays small.
func (d *cachedAttention) attendCached(a *attnCall, cache *device.Cache, slot, pos tensor.Tensor) {
	a.mustFit()
	s := attnShape{a.maps, a.keys, a.D, a.DV}
	bytes, most := cache.K.Type == tensor.I8, splitBytes
	general := cachedGeneral[a.maps][flag(bytes)]
	c := cachedCall{attnCall: a, attnCached: general, bytes: bytes}
	if k, ok := cachedShapes[bytes][s]; ok {
		c.attnCached, most = k, splitBound(bytes)
	}
	c.keysOfSplit = s.splitKeys(bytes, most)
	// A GPU with less shared memory: shorter splits, of a size known at run time.
	if c.splitShared(true) > d.info.Shared {
		c.attnCached, c.keysOfSplit = general, c.keysOfSplit/2
	}
	own, byWarps := c.ownBytes(cache, d.info.Shared)
	if byWarps {
		c.keysOfSplit = byteSplit
	}
	c.parts = ceil(cache.Table.Cols*cache.PageSize, c.keysOfSplit)
	if c.q.Rows == 0 || c.parts == 0 {
		return
	}
	vectors := c.parts * c.Heads * c.maps
	perRow := vectors * (wide16(c.DV) + 2) * 4
	rows := min(c.q.Rows, max(1, splitRoom/perRow), 65535)
	c.sums = uint64(d.scratch(rows * perRow))
	c.stats = c.sums + uint64(rows*vectors*wide16(c.DV)*4)
	for from := 0; from < c.q.Rows; from += rows {
		to := min(from+rows, c.q.Rows)
		q, slot, pos := c.q.RowRange(from, to), slot.Columns(from, to), pos.Columns(from, to)
		if byWarps {
			d.splitBytes(own, &c, cache, q, slot, pos)
		} else {
			d.split(&c, cache, q, slot, pos)
		}
		d.join(&c, from, to, pos)
	}
}

// splitShared is the shared memory of a split in bytes: K, V, queries and scores; with several splits per block also
// sums of 64 keys each and the cache lines of two splits, which otherwise reuse the memory of K and the scores.
func (c *cachedCall) splitShared(more bool) int {
	vectors, wide := c.Heads/c.Groups*c.maps, wide16(c.DV)
	sums := ceil(c.keysOfSplit, 64) * min(vectors, 4) * wide * 4
	cell, pad := cellSize(c.bytes), 16 // padding between rows
	keys := max(c.keysOfSplit*(c.keys*wide16(c.D)*cell+pad), sums)
	all := keys + c.keysOfSplit*(wide*cell+pad) + vectors*(wide16(c.D)*2+pad) + 4*vectors*(c.keysOfSplit+8)
	if c.bytes {
		all += 2 * 16 * c.keysOfSplit // scales
	}
	if more {
		all += sums + 4*2*c.keysOfSplit
	}
	return all
}

// split launches the rows' partial sums. Blocks beyond a row's keys exit at once. If there are enough blocks, a block
// takes several splits, so that few exit at once and one split's copies overlap another's arithmetic. The cache's
// capacity and the number of rows decide this, never a position.
func (d *cachedAttention) split(c *cachedCall, cache *device.Cache, q, slot, pos tensor.Tensor) {
	atOnce := min(c.parts, max(1, splitBlocks*d.info.SMs/(c.Groups*q.Rows)))
	run, more := c.attnCached.split, atOnce < c.parts
	if more {
		run = c.attnCached.splits
	}
	d.launch(run, dim3(c.Groups, atOnce, q.Rows), dim1(splitThreads), c.splitShared(more),
		ptr(q), ptr(cache.K), ptr(cache.V), ptr(cache.Table), ptr(slot), ptr(pos), d.faultPtr(), c.sums, c.stats,
		i32(q.Ld), i32(cache.K.Ld), i32(cache.V.Ld), i32(cache.Table.Ld), i32(c.Heads), i32(c.Groups), i32(c.D),
		i32(c.DV), i32(c.keys),
		i32(c.keysOfSplit), i32(c.parts), flag(c.D%16 == 0 && c.DV%16 == 0 && vec(cache.K, cache.V)), f32(c.Scale),
		i32(cache.Table.Rows), i32(cache.Table.Cols), i32(cache.PageSize), i32(cache.K.Rows),
		flag(q.Rows == 1 && d.newest(cache, q, slot, pos)))
}

// newest reports whether of the cache at most the newest keys of these rows may still be in flight.
func (d *cachedAttention) newest(cache *device.Cache, q, slot, pos tensor.Tensor) bool {
	k := kept{ptr(slot), ptr(pos), q.Rows}
	return d.fresh.settled(cache.K, k) && d.fresh.settled(cache.V, k)
}

// join launches the sum over splits and the head norm.
func (d *cachedAttention) join(c *cachedCall, from, to int, pos tensor.Tensor) {
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
	d.launch(c.attnCached.join, dim2(c.Heads, to-from), dim1(joinThreads), 4*(4*joinThreads+c.maps*c.parts),
		c.sums, c.stats, ptr(pos), ptr(lam), c.weightPtr(), ptr(out), ptr(raw), ptr(rstd), i32(lam.Ld), i32(out.Ld),
		i32(raw.Ld), i32(rstd.Ld),
		i32(c.Heads), i32(c.DV), i32(c.keysOfSplit), i32(c.parts), flag(c.eachLam), flag(c.norm.On), f32(c.norm.Eps),
		f32(c.norm.Scale))
	d.fresh.wrote(out, raw, rstd)
}
