package cpu

import "antiphase/internal/simd"

// attnPack lays out keys and values as right-hand operands, once for all query tiles and heads that read them.
//
// A row of all heads lies in one piece of memory. It is read from end to end: with bfloat16 factors 32 rows of all heads come before
// the next 32, which is what the processor's own fetching can follow.
type attnPack attnState

// tile i is one key tile of one sequence.
func (p *attnPack) tile(i, worker int) {
	s := (*attnState)(p)
	s.packPanels(i/s.keyTiles(), i%s.keyTiles(), 0, s.Groups, worker)
}

// packPanels packs key tile kt of the chunk's sequence b for groups g0 … g1−1.
func (s *attnState) packPanels(b, kt, g0, g1, worker int) {
	k0, at := kt*keyTile, s.slotOf(b, g0, worker)
	end := min(s.T, k0+keyTile)
	for t := k0; t < end; t += s.step(keyTile) {
		n, row := min(s.step(keyTile), end-t), (s.first+b)*s.T+t
		for g := g0; g < g1; g++ {
			keys := s.panels(at, g, kt)
			for m := range s.keys {
				s.packB(s.columnsAt(keys[m*s.keyPanel():], s.D, t-k0), s.D, n, s.k.at(row, s.keyCol(g, m)), true)
			}
		}
		for g := g0; g < g1; g++ {
			values := s.panels(at, g, kt)[s.keys*s.keyPanel():]
			s.packRows(values, t-k0, n, s.DV, s.v.at(row, g*s.DV), end-k0)
		}
	}
}

// step is the number of rows that are packed in one go: a panel of bfloat16 operands, or all n that belong together.
func (s *attnState) step(n int) int {
	if s.half {
		return simd.PanelBF16
	}
	return n
}

// packRows packs rows row … row+n−1 of a right-hand operand [depth,cols]; all of them with float32 factors.
func (s *attnState) packRows(dst []float32, row, n, cols int, x simd.View, depth int) {
	if s.half {
		simd.PackBBF16(simd.Halves(s.rowsAt(dst, row)), n, cols, x, false, depth)
		return
	}
	simd.PackB(dst, n, cols, x.X, x.Ld, false)
}

// rowsOf is a packed left-hand operand of depth elements of k from a row on, a multiple of 32, or 0 with float32 factors.
func (s *attnState) rowsOf(pa []float32, depth, row int) []float32 {
	if row == 0 {
		return pa
	}
	return pa[simd.FloatsBF16(row, depth):]
}

// keyPanel is the room of one packed Kᵀ [D,keyTile], valuePanel of one packed V [keyTile,DV], panelSize of a key tile's of one group.
func (s *attnState) keyPanel() int   { return s.sizeB(s.D, keyTile) }
func (s *attnState) valuePanel() int { return s.sizeB(keyTile, s.DV) }
func (s *attnState) panelSize() int  { return s.keys*s.keyPanel() + s.valuePanel() }

// panels are the packed keys, one panel per key head, and values of key tile kt of group g.
func (s *attnState) panels(at slot, g, kt int) []float32 {
	return s.packed[at.i*s.slots.size+((g-at.group)*s.keyTiles()+kt)*s.panelSize():][:s.panelSize()]
}
