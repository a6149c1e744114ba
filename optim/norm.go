package optim

import "antiphase/layer"

// count lists the gradients whose squares this rank adds to the norm: those that it updates. The first rank counts what
// all ranks of a split model replicate.
func (o *AdamW) count() {
	o.counted = o.counted[:0]
	for i := range o.pieces {
		x := &o.pieces[i]
		if o.split.Part() == 0 {
			o.counted = append(o.counted, x.g)
			continue
		}
		for _, r := range runs(x) {
			o.counted = append(o.counted, x.g.Columns(r.From-x.from, r.To-x.from))
		}
	}
}

// runs returns the longest runs of a piece's elements that no other rank of a split model holds.
func runs(x *piece) (out []layer.Run) {
	at := 0
	for _, p := range x.group.Params {
		from, to := max(at, x.from), min(at+p.Room(), x.to)
		at += p.Room()
		if !p.Split() || from >= to {
			continue
		}
		if n := len(out); n > 0 && out[n-1].To == from {
			out[n-1].To = to
			continue
		}
		out = append(out, layer.Run{From: from, To: to})
	}
	return out
}
