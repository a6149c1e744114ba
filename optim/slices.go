package optim

import (
	"antiphase/device"
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

// Read copies a slice's first or second moments, or its values, to the host. buf also has room for padding between
// rows; Read returns it, grown if necessary.
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
