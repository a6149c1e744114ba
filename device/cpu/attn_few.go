package cpu

import (
	"math"

	"antiphase/internal/simd"
)

// meetFew attends from few rows to a piece, reading keys and values as they lie in the cache. Its bits are those of packed keys and values.
// The worker's next piece is the given one, unless its share ends before.
func (s *attnState) meetFew(p *piece, next, worker int) {
	on, b, groups := &s.d.workers[worker], p.bundle, p.g1-p.g0
	x, buf := &on.few, s.d.buf(worker, s.fewSize(b.count, groups))
	n := groups * s.groupRows(b.count)
	*x = simd.AttnFew{Groups: groups, Keys: s.keys, Queries: s.groupRows(b.count) / s.keys, D: s.D, DV: s.DV, Scale: s.post * math.Log2E, Hi: on.hi[:n],
		Q: simd.Halves(cut(&buf, n*s.D/2)), Logits: cut(&buf, n*keyTile), Acc: cut(&buf, n*s.DV), Top: cut(&buf, n), Sum: cut(&buf, n)}
	w := rows{top: x.Top, sum: x.Sum}
	w.reset()
	clear(x.Acc)
	s.eachRow(p, func(i, h, m, r int) { x.SetQuery(i, s.q.at(b.row+r, s.queryCol(h, m))) })
	for k0 := p.p0; k0 < p.end; k0 += keyTile {
		x.Cols = min(keyTile, p.end-k0)
		s.blocksOf(x, p, k0, next, buf)
		for i := range n {
			x.Hi[i] = int32(b.pos + i%b.count + 1 - k0)
		}
		on.tile.Few(x)
	}
	s.eachRow(p, func(i, h, m, r int) {
		part, to := s.part(b, r, p.span), h*s.maps+m
		copy(part.acc[to*s.DV:(to+1)*s.DV], x.Acc[i*s.DV:])
		part.top[to], part.sum[to] = x.Top[i], x.Sum[i]
	})
}

// few says that a bundle's rows are better off without packing.
func (s *attnState) few(b *bundle) bool {
	const panel = simd.PanelBF16
	return s.half && s.groupRows(b.count) <= simd.FewAttn() && s.D%panel == 0 && s.DV%panel == 0
}

// groupRows is the number of rows that meet a group's values, count positions of all its heads and maps.
func (s *attnState) groupRows(count int) int { return s.maps * s.perGroup() * count }

// eachRow visits the rows of a piece in the order of simd.AttnFew: group by group, map by map, head by head.
func (s *attnState) eachRow(p *piece, f func(i, h, m, r int)) {
	i := 0
	for g := p.g0; g < p.g1; g++ {
		for m := range s.maps {
			for h := g * s.perGroup(); h < (g+1)*s.perGroup(); h++ {
				for r := range p.count {
					f(i, h, m, r)
					i++
				}
			}
		}
	}
}

// fewSize is the number of floats that meetFew works in. A cache whose pages are no whole blocks is copied into some of them.
func (s *attnState) fewSize(count, groups int) int {
	size := groups * s.groupRows(count) * (s.D/2 + keyTile + s.DV + 2)
	if !s.blocked {
		size += keyTile * groups * (s.keys*s.D + s.DV) / 2
	}
	return (size + 15) / 16 * 16
}

// blocksOf finds the blocks of a piece's positions from k0 on, and the first keys of what the worker will read then.
func (s *attnState) blocksOf(x *simd.AttnFew, p *piece, k0, next int, dense []float32) {
	const block = simd.BlockRows
	if !s.blocked {
		s.copyBlocks(x, p, k0, dense)
		return
	}
	x.LdK, x.LdV = s.keys16.ld, s.values16.ld
	for i := 0; i*block < x.Cols; i++ {
		row := s.place(p.slot, k0+i*block)
		x.K[i], x.V[i] = s.keys16.from(row, s.keyCol(p.g0, 0)), s.values16.from(row, p.g0*s.DV)
	}
	then, from := *p, k0+keyTile
	if from >= p.end && next < (s.to-s.from)*s.spans*s.parts {
		then = s.piece(next)
		from = then.p0
	}
	for i := range x.Next {
		x.Next[i] = nil
		if at := from + i*block; at < then.end {
			x.Next[i] = s.keys16.from(s.place(then.slot, at), s.keyCol(then.g0, 0))
		}
	}
}

// copyBlocks makes blocks of positions that lie scattered.
func (s *attnState) copyBlocks(x *simd.AttnFew, p *piece, k0 int, dense []float32) {
	x.LdK, x.LdV = x.Groups*s.keys*s.D, x.Groups*s.DV
	keys, values := simd.Halves(dense)[:keyTile*x.LdK], simd.Halves(dense)[keyTile*x.LdK:]
	for i := range x.Cols {
		row := s.place(p.slot, k0+i)
		copy(keys[i*x.LdK:(i+1)*x.LdK], s.keys16.from(row, s.keyCol(p.g0, 0)))
		copy(values[i*x.LdV:(i+1)*x.LdV], s.values16.from(row, p.g0*s.DV))
	}
	for i := 0; i*simd.BlockRows < x.Cols; i++ {
		x.K[i], x.V[i] = keys[i*simd.BlockRows*x.LdK:], values[i*simd.BlockRows*x.LdV:]
	}
}
