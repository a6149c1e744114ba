package optim

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// Ranks are the processes that train one model together, each on its own rows of a batch. See dist.Comm for the
// contract.
type Ranks interface {
	Rank() int
	Size() int
	AllReduce(x tensor.Tensor) error
	ReduceScatter(out, x tensor.Tensor) error
	AllGather(out, x tensor.Tensor) error
	Broadcast(x tensor.Tensor, root int) error
}

// bucket is a run of a group's flat gradients that is summed over ranks in one call, as soon as a part of the model
// (see model.Gradient) and all later ones are complete.
type bucket struct {
	group, from, to int
	part            int
}

// minBucket is the smallest number of elements worth a call during the backward pass.
var minBucket = 1 << 18

// padding is the multiple that each group is rounded up to, so that ranks own equal parts of every bucket in whole
// cache lines.
func padding(ranks int) int { return 128 * ranks }

// Team is a rank's place among all ranks: those with the same part of the model and other rows of the batch, and all of
// them.
type Team struct {
	Data  Ranks // sum gradients, and split the moments if they are sharded
	World Ranks // decide together
}

// Memory is m as ranks need it: with sharded moments, groups are rounded up to equal parts.
func Memory(m layer.Memory, r Ranks, shard bool) layer.Memory {
	if r != nil && shard {
		m.Multiple, m.Elsewhere = padding(r.Size()), true
	}
	return m
}

// buckets divides the groups of m in the order in which a backward pass completes them. Boundaries are multiples of
// unit.
func buckets(m *model.Model, unit int) (out []bucket) {
	for gi, g := range m.Params.Groups {
		to := g.G.Cols
		for part := m.Parts() - 1; part >= 0; part-- {
			from := to
			for _, p := range m.Part(part) {
				if p.G.Buf == g.G.Buf {
					from = min(from, (p.G.Off-g.G.Off)/g.G.Type.Size())
				}
			}
			from = (from + unit - 1) / unit * unit
			if part == 0 {
				from = 0
			}
			if to-from >= minBucket || part == 0 && to > from {
				out = append(out, bucket{gi, from, to, part})
				to = from
			}
		}
	}
	return out
}

// piece is a run of a group that this rank updates, with its moments.
type piece struct {
	group       *layer.Group
	from, to    int
	m, v        tensor.Tensor // [1, to-from]
	w, g, extra tensor.Tensor // of the group; extra is the master if there is one
}

func (o *AdamW) cut(gi, from, to int, at int) piece {
	g := o.groups[gi]
	p := piece{group: g, from: from, to: to, m: o.m[gi].Columns(at, at+to-from), v: o.v[gi].Columns(at, at+to-from),
		w: g.W.Columns(from, to), g: g.G.Columns(from, to)}
	switch {
	case g.Elsewhere:
		p.extra = o.masters[gi].Columns(at, at+to-from)
	case g.Master.Ok():
		p.extra = g.Master.Columns(from, to)
	}
	return p
}

// NewParallel is New for one of several ranks. With shard each rank holds the moments and masters of its own part of
// every bucket (ZeRO-1): gradients are reduced to the rank that owns them, and updated weights are gathered from it.
// The model's memory must come from Memory. In a split model each rank updates its own part.
func NewParallel(d device.Device, m *model.Model, c Config, team Team, shard bool) *AdamW {
	r := team.Data
	size := r.Size()
	unit, parts := 1, 1
	if shard {
		unit, parts = padding(size), size
	}
	o := allocate(d, m.Params, c, parts)
	o.ranks, o.world, o.split, o.shard, o.buckets = r, team.World, m.Split(), shard, buckets(m, unit)
	if !shard {
		o.whole()
	}
	o.allocateMasters(parts)
	at := make([]int, len(o.groups))
	for _, b := range o.buckets {
		if !shard {
			break
		}
		if (b.to-b.from)%unit != 0 {
			panic(fmt.Sprintf(
				"optim: a bucket of %d elements among %d ranks: the model's memory is not in multiples of %d",
				b.to-b.from, size, unit))
		}
		n := (b.to - b.from) / size
		from := b.from + r.Rank()*n
		o.pieces = append(o.pieces, o.cut(b.group, from, from+n, at[b.group]))
		at[b.group] += n
	}
	o.count()
	if shard {
		o.copyWeights()
		m.Params.Keep(o.keep)
	}
	// Passes of a split model issue collectives too; one goroutine issues all of them in one order. One rank sums
	// nothing.
	o.reduced = newBackground(d, r, len(o.buckets), o.reduce, o.split != nil || size == 1)
	o.ready = o.reduced.ready(o.buckets)
	return o
}

// allocateMasters allocates this rank's part of the masters that groups leave to the optimiser.
func (o *AdamW) allocateMasters(parts int) {
	o.masters = make([]tensor.Tensor, len(o.groups))
	for i, g := range o.groups {
		if g.Elsewhere {
			o.masters[i] = device.Empty(o.dev, g.MasterType, 1, g.W.Cols/parts)
		}
	}
}

// copyWeights initialises masters from the current weights; lower halves are already zero.
func (o *AdamW) copyWeights() {
	for i := range o.pieces {
		if x := &o.pieces[i]; x.group.Elsewhere && x.extra.Type != tensor.I16 {
			o.dev.Copy(x.extra, x.w)
		}
	}
}

// keep stores a parameter's exact values in this rank's part of the masters.
func (o *AdamW) keep(p *layer.Param, x []float32) {
	gi, at := o.place(p)
	flat := p.Spread(x)
	o.owners(gi, at, at+p.Span(), func(piece *piece, owner, from, to int) {
		if owner != o.ranks.Rank() {
			return
		}
		dst, src := piece.extra.Columns(from-piece.from, to-piece.from), flat[from-at:to-at]
		if dst.Type == tensor.I16 {
			device.WriteHalf(o.dev, dst, src)
		} else {
			device.WriteFloats(o.dev, dst, src)
		}
	})
}

// reduce sums one bucket over all ranks: to all of them, or to the rank that owns each part.
func (o *AdamW) reduce(i int) error {
	if o.ranks.Size() == 1 {
		return nil
	}
	b := &o.buckets[i]
	g := o.groups[b.group].G.Columns(b.from, b.to)
	if !o.shard {
		return o.ranks.AllReduce(g)
	}
	return o.ranks.ReduceScatter(o.pieces[i].g, g)
}

// fail keeps the first error of a collective until the end of the step.
func (o *AdamW) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// gather collects the updated weights from all ranks. Masters stay on the rank that updates them.
func (o *AdamW) gather() {
	for i, b := range o.buckets {
		w := o.groups[b.group].W
		o.fail(o.ranks.AllGather(w.Columns(b.from, b.to), w.Columns(o.pieces[i].from, o.pieces[i].to)))
		device.Wrote(o.dev, w.Columns(b.from, b.to))
	}
}
