package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Constants of kernels/diffattention_bytes.cu: keys of a split, warps of a block, stages of a warp's ring. Splits of
// 64 keys and rings of three or four stages were slower (H200).
const (
	byteSplit  = 128
	byteWarps  = 4
	byteStages = 2
)

// byteKernel are the kernels of a shape, whose splits are taken by warps or, if there are few, by blocks with a warp
// for each stage (kernels/attn_bytes_few.cuh), and how many blocks share an SM.
type byteKernel struct {
	many, few kernel
	blocks    int
}

// byteKernels are the shapes whose splits over an int8 cache are taken by single warps, or by blocks.
var byteKernels = func() map[attnShape]byteKernel {
	all := map[attnShape]byteKernel{}
	for _, d := range []int{64, 96, 128} {
		s, blocks := attnShape{2, 2, d, 2 * d}, 3
		if d == 128 { // registers
			blocks = 2
		}
		options := fmt.Sprintf("-DHEAD=%d -DVALUE=%d -DSPLIT=%d -DBLOCKS=%d -DSTAGES=%d -DSHARED=%d", s.d, s.dv,
			byteSplit, blocks, byteStages, s.byteShared())
		all[s] = byteKernel{earlyOf("diffattention_bytes", "diffattention_bytes", options),
			earlyOf("diffattention_bytes", "diffattention_bytes_few", options), blocks}
	}
	return all
}()

// byteShared is the shared memory of a block's rings: 32 rows of keys, an odd number of 64 bytes apart, with 16 bytes
// of scales each, or of values, an odd number of 32 bytes apart.
func (s attnShape) byteShared() int {
	const rows, scales = 32, 16
	keys, values := s.keys*s.d, s.dv+32 // d is a multiple of 32, so keys of both maps are of 64
	if keys%128 == 0 {
		keys += 64
	}
	return byteWarps * byteStages * rows * max(keys+scales, values)
}

// mostBytes bounds K and V of a layer: the kernel counts 16 bytes in 32 bits.
const mostBytes = 16 << 32

// byteRoom bounds what else a block has in shared memory.
const byteRoom = 16 << 10

// ownBytes is the call's kernel if single warps take its splits: heads have their own keys, the cache is int8, and its
// blocks fit in shared memory.
func (c *cachedCall) ownBytes(cache *device.Cache, shared int) (byteKernel, bool) {
	s := attnShape{c.maps, c.keys, c.D, c.DV}
	k, ok := byteKernels[s]
	return k, ok && c.bytes && c.Heads == c.Groups && vec(cache.K, cache.V) && s.byteShared()+byteRoom <= shared &&
		max(cache.K.Rows*cache.K.Ld, cache.V.Rows*cache.V.Ld) <= mostBytes
}

// splitBytes launches the rows' partial sums. If a block for each split fits on the GPU in two rounds, there is one.
// Else blocks stay, and their warps take one split after the other. The cache's capacity and the number of rows decide
// this, and the bits do not depend on it.
func (d *cachedAttention) splitBytes(k byteKernel, c *cachedCall, cache *device.Cache, q, slot, pos tensor.Tensor) {
	splits, most := c.Heads*c.parts*q.Rows, d.info.SMs*k.blocks
	run, blocks := k.many, min(ceil(splits, byteWarps), most)
	if splits <= 2*most {
		run, blocks = k.few, splits
	}
	d.launch(run, dim1(blocks), dim1(32*byteWarps), attnShape{c.maps, c.keys, c.D, c.DV}.byteShared(),
		ptr(q), ptr(cache.K), ptr(cache.V), ptr(cache.Table), ptr(slot), ptr(pos), d.faultPtr(), c.sums, c.stats,
		i32(q.Ld), i32(cache.K.Ld), i32(cache.V.Ld), i32(cache.Table.Ld), i32(c.Heads), i32(q.Rows), i32(c.parts),
		f32(c.Scale), i32(cache.Table.Rows), i32(cache.Table.Cols), i32(cache.PageSize), i32(cache.K.Rows),
		flag(q.Rows <= fewRows && d.newest(cache, q, slot, pos)))
}
