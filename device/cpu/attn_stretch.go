package cpu

// attnStretch attends from few rows to the cache, whose cost is reading it once. A tile of the pool is a bundle's rows, one stretch of positions
// and some groups: it packs their keys and values in the second cache, where all heads of a group meet them together. Each row keeps what it
// has of each stretch; attnMerge joins them.
type attnStretch attnState

const (
	// stretchTiles is the number of key tiles in a stretch. Bits depend on it.
	stretchTiles = 4
	// stretchRoom is the number of floats of a stretch's packed keys and values that leave room in the second cache.
	stretchRoom = 128 << 10
	// leastTiles is the number of tiles for each worker that make them finish together.
	leastTiles = 2
)

func spansOf(keys int) int { return (keys + stretchTiles*keyTile - 1) / (stretchTiles * keyTile) }

// stretches runs the op for all bundles, as many at a time as there is room for.
func (s *attnState) stretches() {
	all := s.keep.bundles
	for s.from = 0; s.from < len(all); {
		to, size := s.from, 0
		s.spans = 0
		for ; to < len(all); to++ {
			b := &all[to]
			n := b.count * spansOf(b.keys()) * s.spanSize()
			if size > 0 && size+n > packBudget {
				break
			}
			b.at, size = size, size+n
			s.spans = max(s.spans, spansOf(b.keys()))
		}
		s.packed = s.d.room(size)
		s.divide(to - s.from)
		s.reserve(s.stretchSize(), s.maps*queryTile*keyTile)
		s.d.run((to-s.from)*s.spans*s.parts, (*attnStretch)(s))
		s.d.run(to-s.from, (*attnMerge)(s))
		s.from = to
	}
}

// divide picks the number of parts of the groups for n bundles: they fit in the cache, and every worker has some.
func (s *attnState) divide(n int) {
	most := leastTiles * len(s.d.workers)
	parts := max((s.Groups*stretchTiles*s.panelSize()+stretchRoom-1)/stretchRoom, (most+n*s.spans-1)/(n*s.spans))
	s.parts = min(parts, s.Groups)
}

// stretchSize is the number of floats that a tile of the pool works in.
func (s *attnState) stretchSize() int {
	return s.denseSize() + (s.Groups+s.parts-1)/s.parts*stretchTiles*s.panelSize() + s.cachedSize(queryTile)
}

// spanSize is the number of floats that a row keeps of a stretch, part where they lie. Vectors go head by head, the maps of a head
// side by side.
func (s *attnState) spanSize() int { return s.Heads * s.maps * (s.DV + 2) }
func (s *attnState) part(b *bundle, r, span int) sums {
	vecs, size := s.Heads*s.maps, s.spanSize()
	x := s.packed[b.at+(r*spansOf(b.keys())+span)*size:][:size]
	return sums{x[:vecs*s.DV], s.DV, x[vecs*s.DV : vecs*(s.DV+1)], x[vecs*(s.DV+1):]}
}

// tile i is part i%parts of the groups of one stretch of a bundle.
func (t *attnStretch) tile(i, worker int) {
	s := (*attnState)(t)
	part, i := i%s.parts, i/s.parts
	span, b := i%s.spans, &s.keep.bundles[s.from+i/s.spans]
	p0 := span * stretchTiles * keyTile
	end := min(p0+stretchTiles*keyTile, b.keys())
	g0, g1 := part*s.Groups/s.parts, (part+1)*s.Groups/s.parts
	if p0 >= end {
		return
	}
	buf, step := s.d.buf(worker, s.stretchSize()), stretchTiles*s.panelSize()
	dense, panels := cut(&buf, s.denseSize()), cut(&buf, (g1-g0)*step)
	for k0 := p0; k0 < end; k0 += keyTile {
		s.packCache(b.slot, k0, min(keyTile, end-k0), g0, g1, panels[(k0-p0)/keyTile*s.panelSize():], step, dense)
	}
	per := s.perGroup()
	heads := max(1, min(per, queryTile/b.count))
	for g := g0; g < g1; g++ {
		for h := g * per; h < (g+1)*per; h += heads {
			w, rest := rows{h: h, heads: min(heads, (g+1)*per-h), row: b.row, q0: b.pos, count: b.count}, buf
			s.carveRows(&w, &rest)
			s.openQueries(&w, dense)
			w.reset()
			for k0 := p0; k0 < end; k0 += keyTile {
				s.meetPanels(&w, k0, min(keyTile, end-k0), panels[(g-g0)*step+(k0-p0)/keyTile*s.panelSize():], &s.d.workers[worker])
			}
			s.keepPart(&w, b, span)
		}
	}
}

// keepPart copies each row's sums to their place.
func (s *attnState) keepPart(w *rows, b *bundle, span int) {
	ld := s.whole(s.DV)
	for r := range w.nq {
		part := s.part(b, r%w.count, span)
		for m := range s.maps {
			from, to := m*w.np+r, (w.h+r/w.count)*s.maps+m
			copy(part.acc[to*s.DV:(to+1)*s.DV], w.acc[from*ld:])
			part.top[to], part.sum[to] = w.top[from], w.sum[from]
		}
	}
}

// attnMerge joins the stretches of a bundle's rows and writes their output.
type attnMerge attnState

func (t *attnMerge) tile(i, worker int) {
	s := (*attnState)(t)
	b := &s.keep.bundles[s.from+i]
	for r := range b.count {
		all := s.part(b, r, 0)
		for span := 1; span < spansOf(b.pos+r+1); span++ {
			part := s.part(b, r, span)
			s.join(&all, &part, s.d.buf(worker, s.Heads*s.maps))
		}
		for h := range s.Heads {
			v := h * s.maps
			s.finish(b.row+r, h, 1, 1, s.DV, all.acc[v*s.DV:], all.top[v:], all.sum[v:], &s.d.workers[worker])
		}
	}
}
