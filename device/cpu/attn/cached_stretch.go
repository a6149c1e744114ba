package attn

import "antiphase/internal/simd"

import "slices"

// stretches attends from few rows to the cache; the cost is reading it once. A task is a piece: very few rows read keys
// and values directly from the cache (cached_few.go), more rows after packing them in L2, for all heads of a group
// together. Each row keeps the sums of each stretch; stretchJoin joins them.
type stretches struct {
	*cached
	from, to int // bundles in progress
	most     int // stretches of the longest of them
	splits   int // ranges into which groups are split
	packed   []float32
}

const (
	// stretchRoom is the number of floats of a stretch's packed keys and values that fit in L2 with room to spare.
	stretchRoom = 128 << 10
	// leastPieces is the number of packed pieces per worker for balanced finishing times.
	leastPieces = 2
)

// run runs the op for all bundles, as many at a time as memory allows.
func (s *stretches) run() {
	all := s.bundles
	for s.from = 0; s.from < len(all); s.from = s.to {
		size := 0
		s.to, s.most = s.from, 0
		for ; s.to < len(all); s.to++ {
			b := &all[s.to]
			n := b.count * b.stretches() * s.sumsSize()
			if size > 0 && size+n > s.Budget {
				break
			}
			b.sumsAt, size = size, size+n
			s.most = max(s.most, b.stretches())
		}
		s.packed = s.pool.Room(size)
		s.split(all[s.from:s.to])
		s.reserveAll(all[s.from:s.to])
		s.pool.Run(s.pieces(), stretchPiece{s})
		s.pool.Run(s.to-s.from, stretchJoin{s})
	}
}

// split picks the number of splits: every worker has some, and packed groups fit in the cache. Groups that are not
// packed are best read together.
func (s *stretches) split(all []bundle) {
	n := len(all) * s.most
	splits := ceil(len(s.workers), n)
	if slices.ContainsFunc(all, func(b bundle) bool { return !s.few(&b) }) {
		splits = max(ceil(s.Groups*stretchTiles*s.kvSize(), stretchRoom), ceil(leastPieces*len(s.workers), n))
	}
	s.splits = min(splits, s.Groups)
}

// mostGroups is the number of groups in the largest split.
func (s *stretches) mostGroups() int { return ceil(s.Groups, s.splits) }

// reserveAll allocates memory for all these bundles.
func (s *stretches) reserveAll(all []bundle) {
	size, rows := 0, 0
	for i := range all {
		if count := all[i].count; s.few(&all[i]) {
			size, rows = max(size, s.fewSize(count, s.mostGroups())), max(rows, s.mostGroups()*s.groupRows(count))
		} else {
			size = max(size, s.packedSize())
		}
	}
	s.reserve(size, s.maps*queryTile*keyTile)
	for i := range s.workers {
		if w := &s.workers[i]; len(w.hi) < rows {
			w.hi = make([]int32, rows)
		}
	}
}

// sumsSize is the number of floats of the sums that a row keeps per stretch; sums locates them. Vectors are ordered by
// head, with the maps of a head adjacent.
func (s *stretches) sumsSize() int { return s.Heads * s.maps * (s.DV + 2) }
func (s *stretches) sums(b *bundle, r, stretch int) sums {
	n, size := s.Heads*s.maps, s.sumsSize()
	x := s.packed[b.sumsAt+(r*b.stretches()+stretch)*size:][:size]
	return sums{x[:n*s.DV], s.DV, x[n*s.DV : n*(s.DV+1)], x[n*(s.DV+1):]}
}

// piece is groups g0 … g1−1 of one stretch of a bundle, positions p0 … end−1. It may be empty.
type piece struct {
	*bundle
	stretch, p0, end, g0, g1 int
}

// pieces is the number of pieces of the bundles in progress.
func (s *stretches) pieces() int { return (s.to - s.from) * s.most * s.splits }

// piece is piece i.
func (s *stretches) piece(i int) piece {
	split, i := i%s.splits, i/s.splits
	p := piece{bundle: &s.bundles[s.from+i/s.most], stretch: i % s.most}
	p.g0, p.g1 = split*s.Groups/s.splits, (split+1)*s.Groups/s.splits
	p.p0 = p.stretch * stretchKeys
	p.end = min(p.p0+stretchKeys, p.keys())
	return p
}

// stretchPiece attends a bundle's rows to one piece.
type stretchPiece struct{ *stretches }

// Tile does piece i.
func (s stretchPiece) Tile(i, worker int) {
	p, on := s.piece(i), &s.workers[worker]
	switch {
	case p.p0 >= p.end:
	case s.few(p.bundle):
		s.attendFew(&p, i+1, on)
	default:
		s.attendPacked(&p, on)
	}
}

// packedSize is the number of floats of attendPacked's working memory.
func (s *stretches) packedSize() int {
	return s.denseSize() + s.mostGroups()*stretchTiles*s.kvSize() + s.queriesSize(queryTile)
}

// attendPacked packs a piece's keys and values in L2 and attends to them.
func (s *stretches) attendPacked(p *piece, on *worker) {
	buf, stride := on.buf(s.packedSize()), stretchTiles*s.kvSize()
	dense, packed := simd.Cut(&buf, s.denseSize()), simd.Cut(&buf, (p.g1-p.g0)*stride)
	for k0 := p.p0; k0 < p.end; k0 += keyTile {
		s.pack(p.slot, k0, min(keyTile, p.end-k0), p.g0, p.g1, packed[(k0-p.p0)/keyTile*s.kvSize():], stride, dense)
	}
	heads := max(1, min(s.perGroup(), queryTile/p.count))
	for g := p.g0; g < p.g1; g++ {
		for h, end := s.headsOf(g); h < end; h += heads {
			q := queries{op: &s.op, on: on, h: h, heads: min(heads, end-h), row: p.row, q0: p.pos, count: p.count}
			rest := buf
			q.open(&rest, dense)
			for k0 := p.p0; k0 < p.end; k0 += keyTile {
				x := s.kvOf(packed[(g-p.g0)*stride+(k0-p.p0)/keyTile*s.kvSize():])
				q.attend(k0, min(keyTile, p.end-k0), &x)
			}
			s.keep(&q, p)
		}
	}
}

// keep copies each row's sums to their place.
func (s *stretches) keep(q *queries, p *piece) {
	for r := range q.nq {
		x := s.sums(p.bundle, r%q.count, p.stretch)
		for m := range s.maps {
			x.put((q.h+r/q.count)*s.maps+m, &q.sums, m*q.np+r, s.DV)
		}
	}
}

// put copies another's vector from, of width elements, to vector v.
func (s *sums) put(v int, other *sums, from, width int) {
	copy(s.acc[v*s.ld:][:width], other.acc[from*other.ld:])
	s.top[v], s.sum[v] = other.top[from], other.sum[from]
}

// stretchJoin joins the stretches of a bundle's rows and writes their output.
type stretchJoin struct{ *stretches }

// Tile does bundle i.
func (s stretchJoin) Tile(i, worker int) {
	b, on := &s.bundles[s.from+i], &s.workers[worker]
	for r := range b.count {
		all := s.sums(b, r, 0)
		for stretch := 1; stretch < ceil(b.pos+r+1, stretchKeys); stretch++ {
			later := s.sums(b, r, stretch)
			s.join(&all, &later, on.buf(2*s.Heads*s.maps), on)
		}
		for h := range s.Heads {
			v := h * s.maps
			s.finish(b.row+r, h, 1, 1, sums{all.acc[v*s.DV:], s.DV, all.top[v:], all.sum[v:]}, on)
		}
	}
}
