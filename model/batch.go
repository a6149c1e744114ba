package model

import (
	"errors"
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Batch is B sequences of T tokens in host memory, row b·T+t. Targets is nil when no loss is asked for;
// −1 there means "not scored". Starts (see data.Loader) keeps documents apart; nil lets all tokens see all before them.
type Batch struct {
	B, T                 int
	IDs, Targets, Starts []int32
}

// checkScored is check for a batch whose losses are asked for.
func (b *Batch) checkScored(c *Config) error {
	if b.Targets == nil {
		return errors.New("model: the batch has no targets to score")
	}
	return b.check(c)
}

func (b *Batch) check(c *Config) error {
	n := b.B * b.T
	if n <= 0 || len(b.IDs) != n || b.Targets != nil && len(b.Targets) != n || b.Starts != nil && len(b.Starts) != n {
		return fmt.Errorf("model: batch of %d×%d has %d ids, %d targets, %d starts", b.B, b.T, len(b.IDs), len(b.Targets), len(b.Starts))
	}
	if b.T > c.Context {
		return fmt.Errorf("model: sequence of %d tokens, context is %d", b.T, c.Context)
	}
	return checkIDs(b.IDs, b.Targets, c.Vocab)
}

func checkIDs(ids, targets []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("model: id %d at row %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	for i, id := range targets {
		if id < -1 || int(id) >= vocab {
			return fmt.Errorf("model: target %d at row %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	return nil
}

// feed is the device's copy of a pass's integers, grown to the largest seen.
type feed struct {
	mem  tensor.Tensor // I32 [6, room]
	host []int32
}

const (
	feedIDs = iota
	feedTargets
	feedStarts
	feedPos
	feedSlot
	feedWant
	feedRows
)

// put copies src to row i of the feed and returns it as [1,n].
func (f *feed) put(d device.Device, i int, src []int32) tensor.Tensor {
	t := f.mem.RowRange(i, i+1).Columns(0, len(src))
	device.WriteI32(d, t, src)
	return t
}

func (f *feed) room(d device.Device, n int) {
	if f.mem.Cols < n {
		if f.mem.Ok() {
			d.Free(f.mem.Buf)
		}
		f.mem = device.Empty(d, tensor.I32, feedRows, n)
		f.host = make([]int32, n)
	}
}

// begin starts a pass over a batch: integers to the device, arena empty.
func (m *Model) begin(b *Batch) (p *layer.Pass, ids, targets tensor.Tensor) {
	n := b.B * b.T
	f := &m.feed
	f.room(m.dev, n)
	m.arena.Release(tensor.Mark{})
	m.pass = layer.Pass{Dev: m.dev, Arena: m.arena, B: b.B, T: b.T, Probe: m.pass.Probe}
	p = &m.pass
	m.rows = n
	for i := range n {
		f.host[i] = int32(i % b.T)
	}
	p.Pos = f.put(m.dev, feedPos, f.host[:n])
	ids = f.put(m.dev, feedIDs, b.IDs)
	if b.Targets != nil {
		targets = f.put(m.dev, feedTargets, b.Targets)
	}
	if b.Starts != nil {
		p.Start = f.put(m.dev, feedStarts, b.Starts)
	}
	return p, ids, targets
}
