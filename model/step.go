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
func (m *Model) Step(c *Cache, r Rows, logits []float32) error {
	if err := m.Run(c, r); err != nil {
		return err
	}
	return m.ReadLogits(logits)
}

// Run runs rows through the network and writes their keys and values to the cache. Decoding is one row per sequence; a
// prompt is many rows of one slot. ReadLogits and ReadBest return results of the wanted rows, until the next pass. If
// the device can record work, repeated decoding steps of the same size are one call.
func (m *Model) Run(c *Cache, r Rows) error {
	if err := m.checkRows(c, r); err != nil {
		return err
	}
	if m.lead != nil {
		if err := m.lead.tellStep(c, &r); err != nil {
			return err
		}
	}
	c.flush()
	m.settle()
	n := len(r.IDs)
	m.rows, c.ahead.rows = n, 0
	chunks := m.chunks.find(m.dev, c, &r)
	if n < len(c.steady) && wantsAll(&r) && len(chunks) == 0 {
		c.feed.room(m.dev, len(c.steady)-1)
		r.IDs = m.own(c.feed.host, r.IDs)
		c.feed.rows(&r)
		c.ahead.rows = n
		m.ends = c.steady[n].run(m, c, n)
		return m.Split().Err()
	}
	m.feed.room(m.dev, n)
	r.IDs = m.own(m.feed.host, r.IDs)
	m.feed.rows(&r)
	h := m.stepRows(c, &m.feed, n, chunks)
	m.ends = ends{}
	if want := len(r.Want); want > 0 {
		last := m.arena.New(h.Type, want, h.Cols)
		m.dev.Embed(last, h, m.feed.view(feedWant, want)) // gathers the wanted rows
		m.ends = m.end(last)
	}
	return m.Split().Err()
}

// run runs a repeated step.
func (s *steady) run(m *Model, c *Cache, n int) ends {
	if s.version != m.version {
		s.repeat.Forget()
		s.version = m.version
	}
	if s.work == nil {
		s.work = func() {
			s.ends = m.end(m.stepRows(c, &c.feed, n, nil))
			if a, ok := m.dev.(device.Ahead); ok && !c.split {
				a.Advance(c.feed.view(feedIDs, n), c.feed.view(feedPos, n), s.ends.best)
			}
		}
	}
	if m.ByHost() {
		s.work()
	} else {
		s.repeat.Run(m.dev, s.work)
	}
	return s.ends
}

// ends holds the outputs of a step's wanted rows.
type ends struct {
	logits tensor.Tensor // Stat [·,V]
	best   tensor.Tensor // I32 [1,·]: their most likely tokens
}

// ReadLogits reads the logits of the last Run's wanted rows, [len(Want), V].
func (m *Model) ReadLogits(dst []float32) error {
	if len(dst) != m.ends.logits.Len() {
		return fmt.Errorf("model: room for %d logits, the step has %d rows of vocabulary %d", len(dst), m.ends.logits.Rows, m.Config.Vocab)
	}
	if len(dst) > 0 {
		device.ReadFloats(m.dev, dst, m.ends.logits)
	}
	return nil
}

// ReadBest reads the most likely token of each of the last Run's wanted rows; −1 if its logits are not finite (see
// device.ArgMax). It avoids copying logits to the host.
func (m *Model) ReadBest(dst []int32) error {
	if len(dst) != m.ends.best.Len() {
		return fmt.Errorf("model: room for %d tokens, the step has %d", len(dst), m.ends.best.Len())
	}
	if len(dst) > 0 {
		device.ReadI32(m.dev, dst, m.ends.best)
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

// stepRows runs the n rows in f to the last norm's output.
func (m *Model) stepRows(c *Cache, f *Feed, n int, chunks []layer.Chunk) tensor.Tensor {
	m.arena.Release(tensor.Mark{})
	m.pass = layer.Pass{Dev: m.dev, Arena: m.arena, B: n, T: 1, Slot: f.view(feedSlot, n), Pos: f.view(feedPos, n), Chunks: chunks, ChunkList: m.chunks.table}
	return m.forward(&m.pass, f.view(feedIDs, n), c)
}

// logits pushes the logits of the rows of h, [·,V] in Stat.
func (m *Model) logits(h tensor.Tensor) tensor.Tensor {
	y := m.arena.New(m.dev.Types().Stat, h.Rows, m.Config.Vocab)
	m.loss.Logits(&m.pass, y, h)
	return y
}

// end pushes the outputs of the wanted rows h.
func (m *Model) end(h tensor.Tensor) ends {
	e := ends{m.logits(h), m.arena.New(tensor.I32, 1, h.Rows)}
	m.dev.ArgMax(e.best, e.logits)
	return e
}

func (m *Model) checkRows(c *Cache, r Rows) error {
	n := len(r.IDs)
	if n == 0 || len(r.Slots) != n || len(r.Pos) != n || len(r.Want) > n {
		return fmt.Errorf("model: step of %d ids, %d slots, %d positions, %d wanted", n, len(r.Slots), len(r.Pos), len(r.Want))
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
