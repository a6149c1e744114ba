package optim

import (
	"antiphase/device"
	"antiphase/internal/fault"
	"antiphase/layer"
	"antiphase/tensor"
)

// Value is, next to First and Second, a part of a parameter that a checkpoint keeps: its most exact values.
const Value = 2

// Slice is a run of a parameter that only this rank stores in a checkpoint. Elements are counted row by row in this
// rank's part of the parameter.
type Slice struct {
	Param    *layer.Param
	From, To int

	piece  *piece
	lo, hi int // in the piece's group
	at     int // start of the parameter there
}

// Slices lists what this rank stores: the parts it updates. If several ranks update the same part, the first stores it.
func (o *AdamW) Slices() (out []Slice) {
	if o.ranks != nil && !o.shard && o.ranks.Rank() > 0 {
		return nil
	}
	for i := range o.pieces {
		x, at := &o.pieces[i], 0
		for _, p := range x.group.Params {
			lo, hi := max(x.from, at), min(x.to, at+p.Span())
			if lo < hi && (p.Split() || o.split.Part() == 0) {
				s := Slice{Param: p, From: p.Packed(lo - at), To: p.Packed(hi - at), piece: x, lo: lo, hi: hi, at: at}
				if s.From < s.To {
					out = append(out, s)
				}
			}
			at += p.Room()
		}
	}
	return out
}

// A reader takes this many elements at a time, in this many buffers: while one is filled from the device, the others go
// to their destinations, whose pages may be new.
const (
	readChunk   = 1 << 19
	readBuffers = 4
)

// readBuffer is one chunk on its way to the host: floats, or the two halves of them.
type readBuffer struct {
	flat    []float32
	up, low []uint16
}

// Reader copies slices to the host.
type Reader struct {
	o    *AdamW
	free chan *readBuffer
}

// NewReader allocates the buffers of a Reader.
func (o *AdamW) NewReader() *Reader {
	r := &Reader{o, make(chan *readBuffer, readBuffers)}
	for range readBuffers {
		r.free <- &readBuffer{make([]float32, readChunk), make([]uint16, readChunk), make([]uint16, readChunk)}
	}
	return r
}

// Read copies a slice's first or second moments, or its values, to the host.
func (r *Reader) Read(s *Slice, which int, dst []float32) {
	for at := s.lo; at < s.hi; at += readChunk {
		end, b := min(at+readChunk, s.hi), <-r.free
		halves := r.fetch(s, which, b, at-s.piece.from, end-s.piece.from)
		to := dst[s.Param.Packed(at-s.at)-s.From:]
		go func() {
			defer fault.Guard()()
			flat := b.flat[:end-at]
			if halves {
				device.JoinHalves(flat, b.up, b.low)
			}
			s.Param.Pack(to, flat, at-s.at)
			r.free <- b
		}()
	}
	r.wait()
}

// wait returns when all buffers are free.
func (r *Reader) wait() {
	var all [readBuffers]*readBuffer
	for i := range all {
		all[i] = <-r.free
	}
	for _, b := range all {
		r.free <- b
	}
}

// fetch fills b with elements from … to of the slice's piece and reports whether they came as halves.
func (r *Reader) fetch(s *Slice, which int, b *readBuffer, from, to int) (halves bool) {
	dev, x, n := r.o.dev, s.piece.w, to-from
	switch {
	case which != Value:
		x = s.piece.of(which)
	case s.piece.extra.Ok() && s.piece.extra.Type == tensor.I16:
		device.ReadBits(dev, b.up[:n], x.Columns(from, to))
		device.ReadBits(dev, b.low[:n], s.piece.extra.Columns(from, to))
		return true
	case s.piece.extra.Ok():
		x = s.piece.extra
	}
	device.ReadFloats(dev, b.flat[:n], x.Columns(from, to))
	return false
}
