package cpu

// attnPack lays out keys and values as right-hand operands, once for all query tiles and heads that read them.
type attnPack attnState

// tile i is one key tile of one group of one sequence.
func (p *attnPack) tile(i, _ int) {
	s := (*attnState)(p)
	tiles := s.keyTiles()
	kt, g, b := i%tiles, i/tiles%s.Groups, i/tiles/s.Groups
	k0 := kt * keyTile
	nk, row := min(keyTile, s.T-k0), (s.first+b)*s.T+k0
	keys, values := s.panels(b, g, kt)
	for m := range s.keys {
		s.packB(keys[m*s.keyPanel():], s.D, nk, s.k.from(row, s.keyCol(g, m)), s.k.ld, true)
	}
	s.packB(values, nk, s.DV, s.v.from(row, g*s.DV), s.v.ld, false)
}

// keyPanel is the room of one packed Kᵀ [D,keyTile], valuePanel of one packed V [keyTile,DV].
func (s *attnState) keyPanel() int   { return s.sizeB(s.D, keyTile) }
func (s *attnState) valuePanel() int { return s.sizeB(keyTile, s.DV) }

// packSize is the number of floats of one sequence's panels.
func (s *attnState) packSize() int {
	return s.Groups * s.keyTiles() * (s.keys*s.keyPanel() + s.valuePanel())
}

// panels are the packed keys (one panel per key head) and values of key tile kt of group g of the chunk's sequence b.
func (s *attnState) panels(b, g, kt int) (keys, values []float32) {
	nk, nv := s.keys*s.keyPanel(), s.valuePanel()
	at := ((b*s.Groups+g)*s.keyTiles() + kt) * (nk + nv)
	x := s.packed[at : at+nk+nv]
	return x[:nk], x[nk:]
}
