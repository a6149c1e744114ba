package lab

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"antiphase/layer"
	"antiphase/tensor"
)

// Floats is encoded as base64 of little-endian float32: a third of the digits, and exact.
type Floats []float32

// MarshalText implements encoding.TextMarshaler.
func (f Floats) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 4*len(f))
	for _, x := range f {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Floats) UnmarshalText(b []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, b)
	if err != nil {
		return err
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("lab: %d bytes are not a list of 4-byte numbers", len(raw))
	}
	*f = make(Floats, len(raw)/4)
	for i := range *f {
		(*f)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// probe reads the heads of a query during the pass.
type probe struct {
	ctx   context.Context
	q     *Query
	tiles tiling
	maps  int
	shown []Head
	rest  func() // between pieces
	spent int    // entries since the last one
}

// pieceEntries is the number of map entries read in one piece: a few milliseconds of work.
const pieceEntries = 1 << 18

func newProbe(ctx context.Context, q *Query, rest func()) *probe {
	return &probe{ctx: ctx, q: q, tiles: tiles(len(q.IDs), q.Size), rest: rest}
}

// spend counts entries, and rests when a piece is complete.
func (p *probe) spend(entries int) {
	if p.spent += entries; p.spent >= pieceEntries {
		p.pause()
	}
}

func (p *probe) pause() {
	p.spent = 0
	if p.rest != nil {
		p.rest()
	}
}

// Attention implements layer.Probe.
func (p *probe) Attention(v layer.View) {
	p.maps = v.Maps
	if !slices.Contains(p.q.Layers, v.Layer) {
		return
	}
	r := v.TileReader()
	defer r.Free()
	heads := slices.Clone(p.q.Heads)
	slices.Sort(heads)
	for _, h := range heads {
		if p.ctx.Err() != nil {
			return
		}
		x := Head{Layer: v.Layer, Head: h}
		p.lambda(&x, v, r)
		p.read(&x, r)
		p.shown = append(p.shown, x)
	}
}

// Hidden implements layer.Probe.
func (p *probe) Hidden(int, tensor.Tensor) { p.pause() }

// lambda is λ of a head: one number, or one per token.
func (p *probe) lambda(x *Head, v layer.View, r *layer.TileReader) {
	if v.Lam.Len() == 0 {
		return
	}
	T := len(p.q.IDs)
	all := make(Floats, T)
	same := true
	for t := range all {
		lam := r.Lambda(t, x.Head)
		all[t] = float32(lam)
		x.Lambda += lam / float64(T)
		same = same && all[t] == all[0]
	}
	if same {
		x.Lambda = r.Lambda(0, x.Head) // without the rounding of a sum
		return
	}
	x.Lambdas = all
}

// read fills a head's maps and rows.
func (p *probe) read(x *Head, r *layer.TileReader) {
	if len(p.q.Maps) == 0 {
		return
	}
	x.Maps = map[string]Floats{}
	for _, t := range p.q.Rows {
		x.Rows = append(x.Rows, Row{Token: t, Maps: map[string]Floats{}})
	}
	for _, name := range p.q.Maps {
		sum, cost := p.tiles.summer(), 1
		if name == Diff {
			cost = 2 // both maps are read
		}
		take := func(t int, row []float64) {
			sum.add(t, row)
			if i := slices.Index(p.q.Rows, t); i >= 0 {
				x.Rows[i].Maps[name] = narrow(row)
			}
			p.spend(cost * len(p.q.IDs))
		}
		switch name {
		case A1, A2:
			r.Map(x.Head, int(name[1]-'1'), 0, false, take)
		case Diff:
			r.Scores(x.Head, 0, func(t int, row []float64, _ float64) { take(t, row) })
		}
		x.Maps[name] = sum.out
	}
}

func narrow(row []float64) Floats {
	out := make(Floats, len(row))
	for i, v := range row {
		out[i] = float32(v)
	}
	return out
}
