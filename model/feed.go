package model

import (
	"errors"
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Feed holds what passes exchange with the host: integers in, losses out. Its addresses do not change until it must
// grow, so the work in between can be recorded. The zero Feed is empty; Model.Put fills it.
type Feed struct {
	dev    device.Device
	ints   tensor.Tensor // I32 [feedRows, room]
	losses tensor.Tensor // Stat [1, room]
	host   []int32

	b, t, micro               int // the batch's sequences and tokens, and the sequences of one pass
	ids, targets, starts, pos tensor.Tensor
	laid                      struct{ n, t int } // the first n positions on the device are those of sequences of t
}

// Rows of ints. A batch uses the first ones. Rows over a cache use all but the first, which are copied in one transfer.
const (
	feedTargets = iota
	feedIDs
	feedPos
	feedSlot
	feedWant
	feedRows
	feedStarts = feedSlot // a pass has either documents or slots
)

// row copies src to row i of ints and returns it as [1,n].
func (f *Feed) row(i int, src []int32) tensor.Tensor {
	t := f.view(i, len(src))
	device.WriteI32(f.dev, t, src)
	return t
}

// rows copies rows over a cache, each list to its row of ints.
func (f *Feed) rows(r *Rows) {
	n := len(r.IDs)
	f.laid.n = 0
	for i, src := range [...][]int32{r.IDs, r.Pos, r.Slots, r.Want} {
		copy(f.host[i*n:(i+1)*n], src)
	}
	device.WriteI32(f.dev, f.ints.RowRange(feedIDs, feedRows).Columns(0, n), f.host[:(feedRows-feedIDs)*n])
}

// view is the first n elements of row i.
func (f *Feed) view(i, n int) tensor.Tensor { return f.ints.RowRange(i, i+1).Columns(0, n) }

// room grows the feed to n rows.
func (f *Feed) room(d device.Device, n int) {
	if f.ints.Cols >= n {
		return
	}
	f.Free()
	f.dev = d
	f.ints, f.losses = device.Empty(d, tensor.I32, feedRows, n), device.Empty(d, d.Types().Stat, 1, n)
	f.host = make([]int32, (feedRows-feedIDs)*n)
}

// Free releases the memory.
func (f *Feed) Free() {
	if f.ints.Ok() {
		f.dev.Free(f.ints.Buf)
		f.dev.Free(f.losses.Buf)
	}
	*f = Feed{}
}

// Put copies a batch to the device, to be run micro sequences at a time, and makes f the source of Losses.
func (m *Model) Put(f *Feed, b *Batch, micro int) error {
	if err := b.check(&m.Config); err != nil {
		return err
	}
	if micro < 1 || b.B%micro != 0 {
		return fmt.Errorf("model: %d sequences in micro-batches of %d", b.B, micro)
	}
	n := b.B * b.T
	m.settle()
	f.room(m.dev, n)
	f.b, f.t, f.micro = b.B, b.T, micro
	f.positions(n, b.T)
	f.ids = f.row(feedIDs, m.own(f.host, b.IDs))
	f.targets, f.starts = tensor.Tensor{}, tensor.Tensor{}
	if b.Targets != nil {
		f.targets = f.row(feedTargets, m.own(f.host, b.Targets))
	}
	if b.Starts != nil {
		f.starts = f.row(feedStarts, b.Starts)
	}
	m.losses, m.rows = f.losses.Columns(0, n), micro*b.T
	return nil
}

// positions makes pos those of n tokens in sequences of t. Steps of one shape find them on the device.
func (f *Feed) positions(n, t int) {
	if f.laid.t != t || f.laid.n < n {
		for i := range n {
			f.host[i] = int32(i % t)
		}
		f.row(feedPos, f.host[:n])
		f.laid.n, f.laid.t = n, t
	}
	f.pos = f.view(feedPos, n)
}

// put fills the model's own feed for a single pass.
func (m *Model) put(b *Batch, scored bool) error {
	if m.lead != nil {
		return ErrParts
	}
	if scored && b.Targets == nil {
		return errors.New("model: the batch has no targets to score")
	}
	return m.Put(&m.feed, b, b.B)
}

// input is one micro-batch as a pass reads it.
type input struct{ ids, targets, losses tensor.Tensor }

// begin starts a pass over micro-batch i of f, with an empty arena.
func (m *Model) begin(f *Feed, i int) (*layer.Pass, input) {
	n := f.micro * f.t
	part := func(t tensor.Tensor) tensor.Tensor {
		if !t.Ok() {
			return t
		}
		return t.Columns(i*n, (i+1)*n)
	}
	p := m.start(layer.Pass{Dev: m.dev, B: f.micro, T: f.t, Probe: m.pass.Probe, Pos: part(f.pos),
		Start: part(f.starts), Recompute: m.recompute})
	return p, input{part(f.ids), part(f.targets), part(f.losses.Columns(0, f.b*f.t))}
}
