package cuda

import (
	"unsafe"

	"antiphase/device"
	"antiphase/tensor"
)

// AttentionChunks attends from chunks of prompts to the cache's pages, if the shape has a kernel for that.
func (d *attention) AttentionChunks(a *device.Attn, cache *device.Cache, chunks tensor.Tensor, longest int) bool {
	c := plainCall(a, nil)
	return d.attendChunks(&c, cache, chunks, longest)
}

// DiffAttentionChunks is AttentionChunks with two maps.
func (d *attention) DiffAttentionChunks(a *device.DiffAttn, cache *device.Cache, chunks tensor.Tensor,
	longest int) bool {
	c := diffCall(a, nil)
	return d.attendChunks(&c, cache, chunks, longest)
}

// attendChunks launches one kernel for all chunks. A page must be whole rows of the tiles' swizzle pattern, and a tile
// whole pages.
func (d *forwardAttention) attendChunks(c *attnCall, cache *device.Cache, chunks tensor.Tensor, longest int) bool {
	s, _, ok := c.hopper(d.machine)
	k, page := hopperShapes[s], cache.PageSize
	if !ok || page%8 != 0 || k.tile.keys%page != 0 || !vec(cache.K, cache.V) || cache.K.Type != tensor.BF16 {
		return false
	}
	device.CheckChunks(chunks)
	c.raw, c.rstd, c.lse, c.out2 = tensor.Tensor{}, tensor.Tensor{}, tensor.Tensor{}, tensor.Tensor{}
	t, a := &k.tile, &d.forward
	rows := t.rows(s)
	d.tileMap(&a.Q, viewOf(c.q), 1, c.q.Rows, rows, s.d, panel(s.d))
	d.tileMap(&a.K, viewOf(cache.K), 1, cache.K.Rows, t.keys, s.d, panel(s.d))
	d.tileMap(&a.V, viewOf(cache.V), 1, cache.V.Rows, t.keys, s.dv, panel(s.dv))
	d.tileMap(&a.PageK, viewOf(cache.K), 1, cache.K.Rows, page, panel(s.d), panel(s.d))
	d.tileMap(&a.PageV, viewOf(cache.V), 1, cache.V.Rows, page, panel(s.dv), panel(s.dv))
	a.fill(c)
	a.Start = 0
	a.Chunks, a.Table, a.LdTable, a.Page = ptr(chunks), ptr(cache.Table), int64(cache.Table.Ld), int32(page)
	a.Items = int32(chunks.Rows * c.Heads)
	d.launchStruct(k.paged, dim3(ceil(longest, rows), c.Heads, chunks.Rows), dim1(t.threads()), t.shared(s, true),
		unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)))
	return true
}
