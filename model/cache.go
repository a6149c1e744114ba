package model

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Cache is the KV cache of all layers: pages of PageSize positions, mapped to slots by one page table. The caller
// decides which slot owns which pages and records it with Assign. Its steps (Run, Follow) are passes of its model.
type Cache struct {
	PageSize, Pages    int
	Slots, PagesOfSlot int

	model  *Model
	dev    device.Device // of the model
	layers []device.Cache
	table  tensor.Tensor
	pages  []int32 // host copy of the page table
	lo, hi int     // range of entries not yet copied to the device

	feed   Feed     // of steady steps
	steady []steady // indexed by number of rows
	ahead  ahead
	chunks chunks
	ends   ends // of the last step
	known  int  // model version of the last step

	lead *lead // of the model
	id   int32 // number of this cache in the leader's messages
}

// NewCache allocates pages × pageSize positions, shared by at most slots sequences of at most pagesOfSlot pages. From
// its first step on the weights must stay as they are: its keys and values are theirs, and so is λ, which later steps
// do not evaluate again.
func (m *Model) NewCache(pages, pageSize, slots, pagesOfSlot int) *Cache {
	c := &Cache{PageSize: pageSize, Pages: pages, Slots: slots, PagesOfSlot: pagesOfSlot, model: m,
		dev: m.dev, lead: m.lead, steady: make([]steady, min(slots, maxSteady)+1), known: -1}
	if l := m.lead; l != nil {
		c.id = l.caches
		l.caches++
		l.tell(wordCache, int32(pages), int32(pageSize), int32(slots), int32(pagesOfSlot))
	}
	c.table, c.pages = device.Empty(m.dev, tensor.I32, slots, pagesOfSlot), make([]int32, slots*pagesOfSlot)
	kv := m.dev.Types().Cache
	for _, b := range m.blocks {
		keys, values, d, dv := b.Attn.CacheHeads()
		c.layers = append(c.layers, device.Cache{
			K:     device.Empty(m.dev, kv, pages*pageSize, device.CacheCols(kv, keys, d)),
			V:     device.Empty(m.dev, kv, pages*pageSize, device.CacheCols(kv, values, dv)),
			Table: c.table, PageSize: pageSize, KHeads: keys, VHeads: values, D: d, DV: dv,
		})
	}
	return c
}

// Commit touches all pages so that the system backs them with memory now, rather than running out when they are needed.
// Their contents are lost.
func (c *Cache) Commit() {
	if c.lead != nil {
		c.lead.tell(wordCommit, c.id)
	}
	for _, l := range c.layers {
		c.dev.Zero(l.K)
		c.dev.Zero(l.V)
	}
}

// Assign makes page the i-th page of slot, effective at the next step.
func (c *Cache) Assign(slot, i int, page int32) {
	at := slot*c.PagesOfSlot + i
	c.pages[at] = page
	if c.lo == c.hi {
		c.lo, c.hi = at, at
	}
	c.lo, c.hi = min(c.lo, at), max(c.hi, at+1)
}

// flush copies new assignments to the device in one transfer: sequences that grow together get new pages together.
func (c *Cache) flush() {
	if c.lo < c.hi {
		device.WriteI32(c.dev, c.table.Reshape(1, len(c.pages)).Columns(c.lo, c.hi), c.pages[c.lo:c.hi])
	}
	c.lo, c.hi = 0, 0
}

// Free releases the memory.
func (c *Cache) Free() {
	if c.lead != nil {
		c.lead.tell(wordFree, c.id)
	}
	for i := range c.steady {
		c.steady[i].repeat.Forget()
	}
	c.ahead.free()
	c.chunks.free(c.dev)
	c.feed.Free()
	for _, l := range c.layers {
		c.dev.Free(l.K.Buf)
		c.dev.Free(l.V.Buf)
	}
	c.dev.Free(c.table.Buf)
}

func (c *Cache) layer(l int) *device.Cache {
	if c == nil {
		return nil
	}
	return &c.layers[l]
}
