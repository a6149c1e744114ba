package cpu

// attnPrompt attends from a prompt's rows to the cache: keys and values are packed once, then each tile of queries of a head goes through its
// stretches. cachePack is the first part.
type (
	attnPrompt attnState
	cachePack  attnState
)

// prompt runs the op for a bundle, as many groups at a time as there is room for.
func (s *attnState) prompt(b bundle) {
	s.prompted = b
	if s.half { // as in the forward pass
		s.rows = halfTile
	}
	s.reserve(s.denseSize()+s.cachedSize(s.rows)+s.promptSums(), s.maps*s.rows*keyTile)
	tiles := (b.keys() + keyTile - 1) / keyTile
	n := max(1, packBudget/(tiles*s.panelSize()))
	for s.group0 = 0; s.group0 < s.Groups; s.group0 += n {
		s.group1 = min(s.Groups, s.group0+n)
		s.packed = s.d.room((s.group1 - s.group0) * tiles * s.panelSize())
		s.d.run(tiles, (*cachePack)(s))
		s.d.run((s.group1-s.group0)*s.perGroup()*((b.count+s.rows-1)/s.rows), (*attnPrompt)(s))
	}
}

// promptSums is the number of floats of what a tile has of earlier stretches.
func (s *attnState) promptSums() int { return s.maps * s.rows * (s.whole(s.DV) + 4) }

// stride is the number of floats from a group's panels to the next one's.
func (s *attnState) stride() int { return (s.prompted.keys() + keyTile - 1) / keyTile * s.panelSize() }

// tile i is one key tile.
func (t *cachePack) tile(i, worker int) {
	s := (*attnState)(t)
	p0 := i * keyTile
	nk := min(keyTile, s.prompted.keys()-p0)
	s.packCache(s.prompted.slot, p0, nk, s.group0, s.group1, s.packed[i*s.panelSize():], s.stride(), s.d.buf(worker, s.denseSize()))
}

// tile i: the last tile of a head, the longest, comes first.
func (t *attnPrompt) tile(i, worker int) {
	s := (*attnState)(t)
	tiles := (s.prompted.count + s.rows - 1) / s.rows
	at := (tiles - 1 - i%tiles) * s.rows
	w := rows{h: s.group0*s.perGroup() + i/tiles, heads: 1, row: s.prompted.row + at, q0: s.prompted.pos + at, count: min(s.rows, s.prompted.count-at)}
	buf := s.d.buf(worker, s.denseSize()+s.cachedSize(s.rows)+s.promptSums())
	dense := cut(&buf, s.denseSize())
	s.carveRows(&w, &buf)
	s.openQueries(&w, dense)
	n, ld := s.maps*w.np, s.whole(s.DV)
	factors := cut(&buf, 2*n)
	all := sums{acc: cut(&buf, n*ld), ld: ld, top: cut(&buf, n), sum: cut(&buf, n)}
	panels, on := s.packed[(w.h/s.perGroup()-s.group0)*s.stride():], &s.d.workers[worker]
	for p0 := 0; p0 < w.q0+w.count; p0 += stretchKeys {
		w.reset()
		for k0 := p0; k0 < min(p0+stretchKeys, w.q0+w.count); k0 += keyTile {
			s.meetPanels(&w, k0, min(keyTile, s.prompted.keys()-k0), panels[k0/keyTile*s.panelSize():], on)
		}
		part := sums{acc: w.acc, ld: ld, top: w.top, sum: w.sum}
		if p0 == 0 {
			all, w.acc, w.top, w.sum = part, all.acc, all.top, all.sum
			continue
		}
		s.join(&all, &part, factors, on)
	}
	s.finish(w.row, w.h, w.count, w.np, ld, all.acc, all.top, all.sum, on)
}
