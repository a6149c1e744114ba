package model

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Cache is the KV cache of all layers: pages of PageSize positions, handed to slots through one page table.
// Which slot owns which pages is the caller's business; Assign writes it down.
type Cache struct {
	PageSize, Pages    int
	Slots, PagesOfSlot int

	dev    device.Device
	layers []device.Cache
	table  tensor.Tensor
	entry  [1]int32
}

// NewCache allocates pages × pageSize positions, shared by at most slots sequences of at most pagesOfSlot pages.
func (m *Model) NewCache(pages, pageSize, slots, pagesOfSlot int) *Cache {
	c := &Cache{PageSize: pageSize, Pages: pages, Slots: slots, PagesOfSlot: pagesOfSlot, dev: m.dev}
	c.table = device.Empty(m.dev, tensor.I32, slots, pagesOfSlot)
	act := m.dev.Types().Act
	for _, b := range m.blocks {
		k, v := b.Attn.CacheWidths()
		c.layers = append(c.layers, device.Cache{
			K: device.Empty(m.dev, act, pages*pageSize, k), V: device.Empty(m.dev, act, pages*pageSize, v),
			Table: c.table, PageSize: pageSize,
		})
	}
	return c
}

// Assign makes page the i-th of slot.
func (c *Cache) Assign(slot, i int, page int32) {
	c.entry[0] = page
	device.WriteI32(c.dev, c.table.RowRange(slot, slot+1).Columns(i, i+1), c.entry[:])
}

// Free gives the memory back.
func (c *Cache) Free() {
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

// Rows are tokens to run against a cache: row n is token IDs[n] at position Pos[n] of slot Slots[n].
// Rows of one slot come in order of position and all earlier positions are already cached. Want lists the rows
// whose logits are asked for.
type Rows struct {
	IDs, Slots, Pos, Want []int32
}

// Step runs rows through the network, writes their keys and values to the cache, and reads the logits of the
// wanted rows, [len(Want), V], to the host. Decoding is one row per sequence; a prompt is many rows of one slot.
func (m *Model) Step(c *Cache, r Rows, logits []float32) error {
	if err := m.checkRows(c, r, logits); err != nil {
		return err
	}
	n := len(r.IDs)
	f := &m.feed
	f.room(m.dev, n)
	m.arena.Release(tensor.Mark{})
	m.pass = layer.Pass{Dev: m.dev, Arena: m.arena, B: n, T: 1}
	p := &m.pass
	m.rows = n
	p.Slot, p.Pos = f.put(m.dev, feedSlot, r.Slots), f.put(m.dev, feedPos, r.Pos)
	h := m.forward(p, f.put(m.dev, feedIDs, r.IDs), c)
	if len(r.Want) == 0 {
		return nil
	}
	last := m.arena.New(h.Type, len(r.Want), h.Cols)
	m.dev.Embed(last, h, f.put(m.dev, feedWant, r.Want)) // gathers the wanted rows
	y := m.arena.New(m.dev.Types().Stat, len(r.Want), m.Config.Vocab)
	m.loss.Logits(p, y, last)
	device.ReadFloats(m.dev, logits, y)
	return nil
}

func (m *Model) checkRows(c *Cache, r Rows, logits []float32) error {
	n := len(r.IDs)
	if n == 0 || len(r.Slots) != n || len(r.Pos) != n || len(r.Want) > n || len(logits) != len(r.Want)*m.Config.Vocab {
		return fmt.Errorf("model: step of %d ids, %d slots, %d positions, %d wanted, room for %d logits of vocabulary %d",
			n, len(r.Slots), len(r.Pos), len(r.Want), len(logits), m.Config.Vocab)
	}
	for i, p := range r.Pos {
		if p < 0 || int(p) >= min(m.Config.Context, c.PageSize*c.PagesOfSlot) || r.Slots[i] < 0 || int(r.Slots[i]) >= c.Slots {
			return fmt.Errorf("model: row %d is position %d of slot %d; there are %d positions (context %d) in %d slots",
				i, p, r.Slots[i], c.PageSize*c.PagesOfSlot, m.Config.Context, c.Slots)
		}
	}
	for i, w := range r.Want {
		if w < 0 || int(w) >= n {
			return fmt.Errorf("model: wanted row %d (entry %d) of %d rows", w, i, n)
		}
	}
	return checkIDs(r.IDs, nil, m.Config.Vocab)
}
