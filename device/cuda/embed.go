package cuda

import (
	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

var (
	embedRows    = earlyOf("embed", "embed")
	embedRank    = kernelOf("embed", "embed_rank")
	embedOffsets = kernelOf("embed", "embed_offsets")
	embedPlace   = kernelOf("embed", "embed_place")
	embedGather  = kernelOf("embed", "embed_gather")
)

// Embed: out[n,:] = table[ids[n],:].
func (d *rowOps) Embed(out, table, ids tensor.Tensor) {
	device.CheckEmbed(out, table, ids, d.types)
	if out.Len() == 0 {
		return
	}
	grid, block := each(out.Rows, out.Cols)
	d.launch(embedRows, grid, block, 0, ptr(out), i32(out.Ld), ptr(table), i32(table.Ld), ptr(ids),
		i32(out.Rows), i32(out.Cols), i32(table.Rows), flag(vec(out, table)), d.faultPtr())
	d.fresh.wrote(out)
}

// embedChunk is the number of rows that one block ranks.
const embedChunk = 1024

// embedRoom is EmbedBackward's scratch memory, see kernels/embed.cu.
type embedRoom struct{ count, cursor, rank, base, used, list uint64 }

func carveEmbed(c *carver, rows, vocab int) (r embedRoom) {
	r.count = c.take(ceil(rows, embedChunk) * vocab * 4)
	r.cursor = c.take(8)
	r.rank = c.take(rows * 4)
	r.base = c.take(vocab * 4)
	r.used = c.take(min(rows, vocab) * 16)
	r.list = c.take(rows * 4)
	return r
}

// EmbedBackward: dtable[ids[n],:] += dout[n,:], rows in order of n.
func (d *rowOps) EmbedBackward(dtable, dout, ids tensor.Tensor) {
	device.CheckEmbedBackward(dtable, dout, ids, d.types)
	if dout.Len() == 0 || dtable.Rows == 0 {
		return
	}
	rows, cols, vocab := dout.Rows, dout.Cols, dtable.Rows
	var size carver
	carveEmbed(&size, rows, vocab)
	at := carver{d.scratch(int(size.at))}
	r := carveEmbed(&at, rows, vocab)
	chunks := ceil(rows, embedChunk)
	zero := int(r.rank - r.count) // counts and cursor come first
	d.fail(d.now().Clear(cu.Block{Addr: uintptr(r.count), Rows: 1, Width: zero, Pitch: zero}))
	d.launch(embedRank, dim1(chunks), dim1(embedChunk), 0, r.rank, r.count, ptr(ids), i32(rows),
		i32(vocab), d.faultPtr())
	d.launch(embedOffsets, dim1(ceil(vocab, 256)), dim1(256), 0, r.used, r.base, r.count, r.cursor,
		i32(chunks), i32(vocab))
	d.launch(embedPlace, dim1(ceil(rows, 256)), dim1(256), 0, r.list, r.base, r.count, r.rank, ptr(ids),
		i32(rows), i32(vocab))
	d.launch(embedGather, dim2(min(rows, vocab), ceil(cols, 1024)), dim1(128), 0,
		ptr(dtable), i32(dtable.Ld), ptr(dout), i32(dout.Ld), r.used, r.list, r.cursor, i32(cols),
		flag(vec(dtable, dout)))
}
