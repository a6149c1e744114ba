package cpu

import "slices"

// attnStretch attends from few rows to the cache, whose cost is reading it once. A tile of the pool is a bundle's rows, one stretch of positions
// and some groups: very few rows meet their keys and values as they lie (attn_few.go), more of them after packing in the second cache, where all
// heads of a group meet them together. Each row keeps what it has of each stretch; attnMerge joins them.
type attnStretch attnState

const (
	// stretchTiles is the number of key tiles in a stretch. Bits depend on it.
	stretchTiles = 2
	stretchKeys  = stretchTiles * keyTile
	// stretchRoom is the number of floats of a stretch's packed keys and values that leave room in the second cache.
	stretchRoom = 128 << 10
	// leastTiles is the number of tiles of packed keys and values for each worker that make them finish together.
	leastTiles = 2
)

func spansOf(keys int) int { return (keys + stretchKeys - 1) / stretchKeys }

// stretches runs the op for all bundles, as many at a time as there is room for.
func (s *attnState) stretches() {
	all := s.keep.bundles
	for s.from = 0; s.from < len(all); s.from = s.to {
		size := 0
		s.to, s.spans = s.from, 0
		for ; s.to < len(all); s.to++ {
			b := &all[s.to]
			n := b.count * spansOf(b.keys()) * s.spanSize()
			if size > 0 && size+n > packBudget {
				break
			}
			b.at, size = size, size+n
			s.spans = max(s.spans, spansOf(b.keys()))
		}
		s.packed = s.d.room(size)
		s.divide(all[s.from:s.to])
		s.reserveStretch(all[s.from:s.to])
		s.d.run((s.to-s.from)*s.spans*s.parts, (*attnStretch)(s))
		s.d.run(s.to-s.from, (*attnMerge)(s))
	}
}

// reserveStretch makes room for all these bundles.
func (s *attnState) reserveStretch(all []bundle) {
	size, rows := 0, 0
	for i := range all {
		if groups := (s.Groups + s.parts - 1) / s.parts; s.few(&all[i]) {
			size, rows = max(size, s.fewSize(all[i].count, groups)), max(rows, groups*s.groupRows(all[i].count))
		} else {
			size = max(size, s.stretchSize())
		}
	}
	s.reserve(size, s.maps*queryTile*keyTile)
	for w := range s.d.workers {
		if x := &s.d.workers[w]; len(x.hi) < rows {
			x.hi = make([]int32, rows)
		}
	}
}

// divide picks the number of parts of the groups: every worker has some, and they fit in the cache where they are packed. What is read as it lies
// is best read whole.
func (s *attnState) divide(all []bundle) {
	n := len(all) * s.spans
	parts := (len(s.d.workers) + n - 1) / n
	if slices.ContainsFunc(all, func(b bundle) bool { return !s.few(&b) }) {
		parts = max((s.Groups*stretchTiles*s.panelSize()+stretchRoom-1)/stretchRoom, (leastTiles*len(s.d.workers)+n-1)/n)
	}
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

// piece is what a tile of the pool does: groups g0 … g1−1 of one stretch of a bundle, positions p0 … end−1. It may be empty.
type piece struct {
	*bundle
	span, p0, end, g0, g1 int
}

// piece i is part i%parts of the groups.
func (s *attnState) piece(i int) piece {
	part, i := i%s.parts, i/s.parts
	p := piece{bundle: &s.keep.bundles[s.from+i/s.spans], span: i % s.spans, g0: part * s.Groups / s.parts, g1: (part + 1) * s.Groups / s.parts}
	p.p0 = p.span * stretchKeys
	p.end = min(p.p0+stretchKeys, p.keys())
	return p
}

// tile i is piece i.
func (t *attnStretch) tile(i, worker int) {
	s := (*attnState)(t)
	p := s.piece(i)
	switch {
	case p.p0 >= p.end:
	case s.few(p.bundle):
		s.meetFew(&p, i+1, worker)
	default:
		s.meetPacked(&p, worker)
	}
}

// meetPacked packs a piece's keys and values in the second cache and attends to them.
func (s *attnState) meetPacked(p *piece, worker int) {
	b, p0, end, g0, g1 := p.bundle, p.p0, p.end, p.g0, p.g1
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
			s.keepPart(&w, b, p.span)
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
			s.join(&all, &part, s.d.buf(worker, 2*s.Heads*s.maps), &s.d.workers[worker])
		}
		for h := range s.Heads {
			v := h * s.maps
			s.finish(b.row+r, h, 1, 1, s.DV, all.acc[v*s.DV:], all.top[v:], all.sum[v:], &s.d.workers[worker])
		}
	}
}
