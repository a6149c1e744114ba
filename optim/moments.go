package optim

import (
	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// The two moments that AdamW keeps for every parameter.
const (
	First = iota
	Second
)

// MomentBytes is the device memory of this rank's moments.
func (o *AdamW) MomentBytes() (n int) {
	for i := range o.m {
		n += tensor.Bytes(o.m[i].Type, 1, o.m[i].Cols) + tensor.Bytes(o.v[i].Type, 1, o.v[i].Cols)
	}
	return n
}

// flat returns the memory of a moment, by group.
func (o *AdamW) flat(which int) []tensor.Tensor {
	if which == First {
		return o.m
	}
	return o.v
}

// of returns a piece's part of a moment.
func (x *piece) of(which int) tensor.Tensor {
	if which == First {
		return x.m
	}
	return x.v
}

// place finds p's group and where p begins in it.
func (o *AdamW) place(p *layer.Param) (group, at int) {
	for i, g := range o.groups {
		if p.G.Buf == g.G.Buf {
			return i, (p.G.Off - g.G.Off) / p.G.Type.Size()
		}
	}
	panic("optim: parameter " + p.Name + " is in no group")
}

// SetMoment sets a moment; a rank keeps only the part it holds.
func (o *AdamW) SetMoment(p *layer.Param, which int, src []float32) {
	gi, at := o.place(p)
	flat := o.flat(which)[gi]
	if !o.shard {
		device.WriteFloats(o.dev, p.In(flat, at), src)
		return
	}
	row := device.Empty(o.dev, flat.Type, 1, p.Span())
	defer o.dev.Free(row.Buf)
	device.WriteFloats(o.dev, p.In(row, 0), src)
	o.owners(gi, at, at+p.Span(), func(x *piece, owner, from, to int) {
		if owner == o.ranks.Rank() {
			o.dev.Copy(x.of(which).Columns(from-x.from, to-x.from), row.Columns(from-at, to-at))
		}
	})
}

// owners calls f for each run of a group's elements [from, to) that is held by one rank; x is this rank's piece of the
// same bucket.
func (o *AdamW) owners(group, from, to int, f func(x *piece, owner, from, to int)) {
	for i, b := range o.buckets {
		if b.group != group {
			continue
		}
		n := (b.to - b.from) / o.ranks.Size()
		for owner := range o.ranks.Size() {
			lo, hi := max(from, b.from+owner*n), min(to, b.from+(owner+1)*n)
			if lo < hi {
				f(&o.pieces[i], owner, lo, hi)
			}
		}
	}
}
