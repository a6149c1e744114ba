package optim

import (
	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Value is, beside First and Second, what a checkpoint keeps of a parameter: its most exact values.
const Value = 2

// Slice is a run of a parameter that this rank keeps in a checkpoint: no other rank does. Elements count row by row in what
// this rank holds of the parameter.
type Slice struct {
	Param    *layer.Param
	From, To int

	piece  *piece
	lo, hi int // in the piece's group
	at     int // where the parameter begins there
}

// Slices lists what this rank keeps: the parts that it updates. What others update alike is kept by the first of them.
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

// Read copies a slice's first or second moments, or its values, to the host. buf is room for what lies between rows too, and
// is returned, larger where it had to be.
func (o *AdamW) Read(s *Slice, which int, dst, buf []float32) []float32 {
	if n := s.hi - s.lo; len(buf) < n {
		buf = make([]float32, n)
	}
	flat := buf[:s.hi-s.lo]
	from, to := s.lo-s.piece.from, s.hi-s.piece.from
	switch {
	case which != Value:
		device.ReadFloats(o.dev, flat, s.piece.of(which).Columns(from, to))
	case s.piece.extra.Type == tensor.I16 && s.piece.extra.Ok():
		device.ReadSplit(o.dev, flat, s.piece.w.Columns(from, to), s.piece.extra.Columns(from, to))
	case s.piece.extra.Ok():
		device.ReadFloats(o.dev, flat, s.piece.extra.Columns(from, to))
	default:
		device.ReadFloats(o.dev, flat, s.piece.w.Columns(from, to))
	}
	s.Param.Pack(dst, flat, s.lo-s.at)
	return buf
}
