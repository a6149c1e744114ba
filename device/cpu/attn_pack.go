package cpu

import "antiphase/internal/simd"

// attnPack lays out keys and values as right-hand operands, once for all query tiles and heads that read them, and queries as left-hand ones.
//
// A row of all heads lies in one piece of memory. It is read from end to end: with bfloat16 factors 32 rows of all heads come before
// the next 32, which is what the processor's own fetching can follow.
type attnPack attnState

// tile i is one key tile of one sequence, and the queries of the same rows.
func (p *attnPack) tile(i, worker int) {
	s := (*attnState)(p)
	kt, b := i%s.keyTiles(), i/s.keyTiles()
	k0 := kt * keyTile
	end := min(s.T, k0+keyTile)
	for t := k0; t < end; t += s.step(queryTile) {
		n := min(s.step(queryTile), end-t)
		for h := range s.Heads {
			s.packQueries(b, h, t, n, worker)
		}
	}
	for t := k0; t < end; t += s.step(keyTile) {
		n, row := min(s.step(keyTile), end-t), (s.first+b)*s.T+t
		for g := range s.Groups {
			keys, _ := s.panels(b, g, kt)
			for m := range s.keys {
				s.packB(s.columnsAt(keys[m*s.keyPanel():], s.D, t-k0), s.D, n, s.k.at(row, s.keyCol(g, m)), true)
			}
		}
		for g := range s.Groups {
			_, values := s.panels(b, g, kt)
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
		simd.PackBBF16(halves(s.rowsAt(dst, row)), n, cols, x, false, depth)
		return
	}
	simd.PackB(dst, n, cols, x.X, x.Ld, false)
}

// packQueries packs n queries from t on of head h.
func (s *attnState) packQueries(b, h, t, n, worker int) {
	qt := t / queryTile
	nq, row := min(queryTile, s.T-qt*queryTile), (s.first+b)*s.T+t
	dst := s.queries(b, h, qt)
	for m := range s.maps {
		q := s.scaled(s.d.buf(worker, n*s.D), n, s.D, s.q.at(row, s.queryCol(h, m)))
		s.packA(s.rowsOf(dst[m*s.sizeA(nq, s.D):], s.D, t%queryTile), n, s.D, q, false)
	}
}

// rowsOf is a packed left-hand operand of depth elements of k from a row on, a multiple of 32, or 0 with float32 factors.
func (s *attnState) rowsOf(pa []float32, depth, row int) []float32 {
	if row == 0 {
		return pa
	}
	return pa[packSize(row, depth):]
}

// keyPanel is the room of one packed Kᵀ [D,keyTile], valuePanel of one packed V [keyTile,DV], queryPanel of all maps' Q [queryTile,D].
func (s *attnState) keyPanel() int   { return s.sizeB(s.D, keyTile) }
func (s *attnState) valuePanel() int { return s.sizeB(keyTile, s.DV) }
func (s *attnState) queryPanel() int { return s.maps * s.sizeA(queryTile, s.D) }

// packSize is the number of floats of one sequence's panels.
func (s *attnState) packSize() int {
	return s.Groups*s.keyTiles()*(s.keys*s.keyPanel()+s.valuePanel()) + s.Heads*s.queryTiles()*s.queryPanel()
}

// panels are the packed keys (one panel per key head) and values of key tile kt of group g of the chunk's sequence b.
func (s *attnState) panels(b, g, kt int) (keys, values []float32) {
	nk, nv := s.keys*s.keyPanel(), s.valuePanel()
	at := b*s.packSize() + (g*s.keyTiles()+kt)*(nk+nv)
	x := s.packed[at : at+nk+nv]
	return x[:nk], x[nk:]
}

// queries are the packed queries of query tile qt of head h, map by map.
func (s *attnState) queries(b, h, qt int) []float32 {
	at := b*s.packSize() + s.Groups*s.keyTiles()*(s.keys*s.keyPanel()+s.valuePanel()) + (h*s.queryTiles()+qt)*s.queryPanel()
	return s.packed[at : at+s.queryPanel()]
}
