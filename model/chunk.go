package model

import (
	"slices"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// chunks finds runs of a step's rows that should attend together on this device, and holds the cache rows of their
// keys.
type chunks struct {
	list   []layer.Chunk
	places []int32       // four numbers per chunk, see device.Pager; then the cache rows of each chunk in turn
	mem    tensor.Tensor // the same on the device, I32 [1, room]
	table  tensor.Tensor // I32 [n,4], its first part
}

// chunkWork bounds the work of a chunk. Tiled attention also computes the queries before the chunk, so a few rows after
// a long past are cheaper one by one. A single row costs as much as a hundred or more in a tile; 64 leaves a margin.
const chunkWork = 64

// find returns the runs of consecutive positions of one slot that are long enough.
func (k *chunks) find(c *Cache, r *Rows) []layer.Chunk {
	k.list, k.places = k.list[:0], k.places[:0]
	dev, ok := c.dev.(device.Chunker)
	if !ok {
		return nil
	}
	least := dev.ChunkRows()
	for from, n := 0, len(r.IDs); from < n; {
		to := from + 1
		for to < n && r.Slots[to] == r.Slots[from] && r.Pos[to] == r.Pos[to-1]+1 {
			to++
		}
		past := int(r.Pos[from])
		if rows := to - from; rows >= least && past+rows <= chunkWork*rows {
			k.list = append(k.list, layer.Chunk{From: from, To: to, Past: past})
			k.places = append(k.places, int32(from), int32(to), int32(past), r.Slots[from])
		}
		from = to
	}
	for i := range k.list {
		ch := &k.list[i]
		k.place(c, int(r.Slots[ch.From]), ch.Past+ch.To-ch.From)
	}
	k.upload(c.dev)
	return k.list
}

// place lists the cache rows of the first n positions of a slot.
func (k *chunks) place(c *Cache, slot, n int) {
	k.places = slices.Grow(k.places, n)
	pages := c.pages[slot*c.PagesOfSlot:]
	for i := range n {
		k.places = append(k.places, pages[i/c.PageSize]*int32(c.PageSize)+int32(i%c.PageSize))
	}
}

// upload copies the cache rows to the device and gives each chunk its own.
func (k *chunks) upload(d device.Device) {
	n := len(k.places)
	if n == 0 {
		return
	}
	if k.mem.Cols < n {
		k.free(d)
		k.mem = device.Empty(d, tensor.I32, 1, n)
	}
	device.WriteI32(d, k.mem.Columns(0, n), k.places)
	at := 4 * len(k.list)
	k.table = k.mem.Columns(0, at).Reshape(len(k.list), 4)
	for i := range k.list {
		ch := &k.list[i]
		keys := ch.Past + ch.To - ch.From
		ch.Keys = k.mem.Columns(at, at+keys)
		at += keys
	}
}

func (k *chunks) free(d device.Device) {
	if k.mem.Ok() {
		d.Free(k.mem.Buf)
	}
}

// PromptRows is that of the model's device.
func (n *network) PromptRows() int { return PromptRows(n.dev) }

// PromptRows is the number of prompt rows a step should take on a device: enough for large products and for blocks of
// attention that fill a GPU several times, few enough that decoding sequences do not wait long.
func PromptRows(d device.Device) int {
	if _, ok := d.(device.Chunker); ok {
		return 8192
	}
	return 512
}
