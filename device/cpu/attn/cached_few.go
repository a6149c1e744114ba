package attn

import (
	"math"

	"antiphase/internal/simd"
)

// few reports whether a bundle's rows are faster without packing.
func (s *stretches) few(b *bundle) bool {
	const panel = simd.PanelBF16
	return s.half && s.groupRows(b.count) <= simd.FewAttn() && s.D%panel == 0 && s.DV%panel == 0
}

// groupRows is the number of rows that read a group's values: count positions of all its heads and maps.
func (s *stretches) groupRows(count int) int { return s.maps * s.perGroup() * count }

// fewSize is the number of floats of attendFew's working memory. Positions are copied into part of it if pages are not
// whole blocks.
func (s *stretches) fewSize(count, groups int) int {
	size := groups * s.groupRows(count) * (s.D/2 + keyTile + s.DV + 2)
	if !s.blocked() {
		size += keyTile * groups * (s.keys*s.D + s.DV) / 2
	}
	return ceil(size, 16) * 16
}

// attendFew attends from few rows to a piece, reading keys and values directly from the cache. Its bits are those of
// packed keys and values. The worker's next piece is the given one, unless its share ends before.
func (s *stretches) attendFew(p *piece, next int, on *worker) {
	groups := p.g1 - p.g0
	n := groups * s.groupRows(p.count)
	x, buf := &on.few, on.buf(s.fewSize(p.count, groups))
	*x = simd.AttnFew{Groups: groups, Keys: s.keys, Queries: s.groupRows(p.count) / s.keys, D: s.D, DV: s.DV,
		Scale: s.post * math.Log2E, Hi: on.hi[:n], Q: simd.Halves(simd.Cut(&buf, n*s.D/2)),
		Logits: simd.Cut(&buf, n*keyTile), Acc: simd.Cut(&buf, n*s.DV), Top: simd.Cut(&buf, n), Sum: simd.Cut(&buf, n)}
	all := sums{x.Acc, s.DV, x.Top, x.Sum}
	all.reset()
	clear(x.Acc)
	s.eachRow(p, func(i, h, m, r int) { x.SetQuery(i, s.Q.From(p.row+r, s.queryCol(h, m))) })
	for k0 := p.p0; k0 < p.end; k0 += keyTile {
		x.Cols = min(keyTile, p.end-k0)
		s.findBlocks(x, p, k0, next, buf)
		for i := range n {
			x.Hi[i] = int32(p.pos + i%p.count + 1 - k0)
		}
		on.tile.Few(x)
	}
	s.eachRow(p, func(i, h, m, r int) {
		to := s.sums(p.bundle, r, p.stretch)
		to.put(h*s.maps+m, &all, i, s.DV)
	})
}

// eachRow visits the rows of a piece in the order of simd.AttnFew: group by group, map by map, head by head.
func (s *stretches) eachRow(p *piece, f func(i, h, m, r int)) {
	i := 0
	for g := p.g0; g < p.g1; g++ {
		for m := range s.maps {
			for h, end := s.headsOf(g); h < end; h++ {
				for r := range p.count {
					f(i, h, m, r)
					i++
				}
			}
		}
	}
}

// findBlocks finds the blocks of a piece's positions starting at k0, and the first keys of what the worker will read
// next.
func (s *stretches) findBlocks(x *simd.AttnFew, p *piece, k0, next int, dense []float32) {
	const block = simd.BlockRows
	if !s.blocked() {
		s.copyBlocks(x, p, k0, dense)
		return
	}
	keys, values := &s.pages.K, &s.pages.V
	x.LdK, x.LdV = keys.Ld, values.Ld
	for i := 0; i*block < x.Cols; i++ {
		row := s.place(p.slot, k0+i*block)
		x.K[i], x.V[i] = keys.From(row, s.keyCol(p.g0, 0)).H, values.From(row, p.g0*s.DV).H
	}
	then, from := *p, k0+keyTile
	if from >= p.end && next < s.pieces() {
		then = s.piece(next)
		from = then.p0
	}
	for i := range x.Next {
		x.Next[i] = nil
		if at := from + i*block; at < then.end {
			x.Next[i] = keys.From(s.place(then.slot, at), s.keyCol(then.g0, 0)).H
		}
	}
}

// copyBlocks copies scattered positions into blocks.
func (s *stretches) copyBlocks(x *simd.AttnFew, p *piece, k0 int, dense []float32) {
	x.LdK, x.LdV = x.Groups*s.keys*s.D, x.Groups*s.DV
	keys, values := simd.Halves(dense)[:keyTile*x.LdK], simd.Halves(dense)[keyTile*x.LdK:]
	for i := range x.Cols {
		row := s.place(p.slot, k0+i)
		copy(keys[i*x.LdK:(i+1)*x.LdK], s.pages.K.From(row, s.keyCol(p.g0, 0)).H)
		copy(values[i*x.LdV:(i+1)*x.LdV], s.pages.V.From(row, p.g0*s.DV).H)
	}
	for i := 0; i*simd.BlockRows < x.Cols; i++ {
		x.K[i], x.V[i] = keys[i*simd.BlockRows*x.LdK:], values[i*simd.BlockRows*x.LdV:]
	}
}
