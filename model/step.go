package model

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Rows are tokens to run against a cache: row n is token IDs[n] at position Pos[n] of slot Slots[n]. Rows of one slot
// are in order of position, and all earlier positions are already cached. Want lists the rows whose logits are needed.
type Rows struct {
	IDs, Slots, Pos, Want []int32
}

// Step runs rows (see Run) and reads the logits of the wanted ones, [len(Want), V], to the host.
func (c *Cache) Step(r Rows, logits []float32) error {
	if err := c.Run(r); err != nil {
		return err
	}
	return c.ReadLogits(logits)
}

// Run runs rows through the network and writes their keys and values to the cache. Decoding is one row per sequence; a
// prompt is many rows of one slot. ReadLogits and ReadBest return results of the wanted rows, until the model's next
// pass. If the device can record work, repeated decoding steps of the same size are one call.
func (c *Cache) Run(r Rows) error {
	if err := c.check(r); err != nil {
		return err
	}
	if c.lead != nil {
		if err := c.lead.tellStep(c, &r); err != nil {
			return err
		}
	}
	m, n := c.model, len(r.IDs)
	c.flush()
	m.settle()
	m.rows, c.ahead.rows = n, 0
	chunks := c.chunks.find(c, &r)
	if n < len(c.steady) && wantsAll(&r) && len(chunks) == 0 {
		c.feed.room(c.dev, len(c.steady)-1)
		r.IDs = m.own(c.feed.host, r.IDs)
		c.feed.rows(&r)
		c.ahead.rows = n
		c.ends = c.steady[n].run(c, n)
		return m.Split().Err()
	}
	m.feed.room(c.dev, n)
	r.IDs = m.own(m.feed.host, r.IDs)
	m.feed.rows(&r)
	h := c.forward(&m.feed, n, chunks)
	c.ends = ends{}
	if want := len(r.Want); want > 0 {
		last := m.arena.New(h.Type, want, h.Cols)
		c.dev.Embed(last, h, m.feed.view(feedWant, want)) // gathers the wanted rows
		c.ends = c.end(last)
	}
	return m.Split().Err()
}

// ends holds the outputs of a step's wanted rows.
type ends struct {
	logits tensor.Tensor // Stat [·,V]
	best   tensor.Tensor // I32 [1,·]: their most likely tokens
}

// ReadLogits reads the logits of the last Run's wanted rows, [len(Want), V].
func (c *Cache) ReadLogits(dst []float32) error {
	if len(dst) != c.ends.logits.Len() {
		return fmt.Errorf("model: room for %d logits, the step has %d rows of vocabulary %d", len(dst),
			c.ends.logits.Rows, c.model.Config.Vocab)
	}
	if len(dst) > 0 {
		device.ReadFloats(c.dev, dst, c.ends.logits)
	}
	return nil
}

// ReadBest reads the most likely token of each of the last Run's wanted rows; −1 if its logits are not finite (see
// device.ArgMax). It avoids copying logits to the host.
func (c *Cache) ReadBest(dst []int32) error {
	if len(dst) != c.ends.best.Len() {
		return fmt.Errorf("model: room for %d tokens, the step has %d", len(dst), c.ends.best.Len())
	}
	if len(dst) > 0 {
		device.ReadI32(c.dev, dst, c.ends.best)
	}
	return nil
}

// wantsAll reports whether every row is wanted, in order.
func wantsAll(r *Rows) bool {
	for i, w := range r.Want {
		if int(w) != i {
			return false
		}
	}
	return len(r.Want) == len(r.IDs)
}

// forward runs the n rows in f to the last norm's output.
func (c *Cache) forward(f *Feed, n int, chunks []layer.Chunk) tensor.Tensor {
	m := c.model
	p := m.start(layer.Pass{Dev: c.dev, B: n, T: 1, Slot: f.view(feedSlot, n), Pos: f.view(feedPos, n),
		Known: c.known == m.version, Chunks: chunks, ChunkList: c.chunks.table})
	c.known = m.version
	return m.forward(p, f.view(feedIDs, n), c)
}

// end pushes the outputs of the wanted rows h.
func (c *Cache) end(h tensor.Tensor) ends {
	m := c.model
	e := ends{m.logits(&m.pass, h), m.arena.New(tensor.I32, 1, h.Rows)}
	c.dev.ArgMax(e.best, e.logits)
	return e
}

func (c *Cache) check(r Rows) error {
	n, context := len(r.IDs), c.model.Config.Context
	if n == 0 || len(r.Slots) != n || len(r.Pos) != n || len(r.Want) > n {
		return fmt.Errorf("model: step of %d ids, %d slots, %d positions, %d wanted", n, len(r.Slots),
			len(r.Pos), len(r.Want))
	}
	for i, p := range r.Pos {
		if p < 0 || int(p) >= min(context, c.PageSize*c.PagesOfSlot) || r.Slots[i] < 0 || int(r.Slots[i]) >= c.Slots {
			return fmt.Errorf(
				"model: row %d is position %d of slot %d; there are %d positions (context %d) in %d slots",
				i, p, r.Slots[i], c.PageSize*c.PagesOfSlot, context, c.Slots)
		}
	}
	for i, w := range r.Want {
		if w < 0 || int(w) >= n {
			return fmt.Errorf("model: wanted row %d (entry %d) of %d rows", w, i, n)
		}
	}
	return checkIDs(r.IDs, nil, c.model.Config.Vocab)
}
