package cpu

import (
	"cmp"
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// attnCache is a paged cache and the rows that address it.
type attnCache struct {
	ck, cv    mat
	table     []int32
	tableLd   int
	pageSize  int
	slot, pos []int32
	spans     int // stretches of keyTile positions that the longest row attends to
}

// cache fills in the cache and says whether every position that rows will touch has a page: those from 0 on when
// they attend, only their own when they write. One that has none is a fault, and the op is not run.
func (s *attnState) cache(d *Device, x *device.Cache, slot, pos tensor.Tensor, attend bool) bool {
	s.attnCache = attnCache{ck: matOf(x.K), cv: matOf(x.V), table: i32(x.Table), tableLd: x.Table.Ld, pageSize: x.PageSize,
		slot: i32(slot), pos: i32(pos)}
	from, last := 0, int32(-1) // in a prompt the pages that the row before has seen are good
	for n, p := range s.pos {
		page, slot := int(p)/x.PageSize, s.slot[n]
		switch {
		case !attend:
			from = page
		case slot == last:
			from = min(from, page)
		default:
			from = 0
		}
		last = slot
		ok := slot >= 0 && int(slot) < x.Table.Rows && p >= 0 && page < x.Table.Cols
		for ; ok && from <= page; from++ {
			row := s.place(int(slot), from*x.PageSize)
			ok = row >= 0 && row+min(x.PageSize, int(p)+1-from*x.PageSize) <= x.K.Rows
		}
		if !ok {
			d.fault = cmp.Or(d.fault, fmt.Errorf("cpu: cache: position %d of slot %d (row %d) is in no page: table %v, cache %v",
				p, slot, n, x.Table, x.K))
			return false
		}
	}
	return true
}

// place is the cache row of position p of a slot.
func (c *attnCache) place(slot, p int) int {
	return int(c.table[slot*c.tableLd+p/c.pageSize])*c.pageSize + p%c.pageSize
}

// cachedRows is the number of rows of one slot that go through a stretch of the cache together: those of a prompt.
const cachedRows = 128

// attnCached attends from single rows to the cache. A tile of the pool is a bundle of rows of one slot, keyTile
// positions and some groups: a group's heads and both maps of all these rows meet its keys and values, packed once, in two
// products. Each row keeps the softmax of each stretch apart; attnMerge joins them in the order of positions.
//
// An element of a product is one chain over k, whatever the number of rows, and a position that a row must not
// see adds an exact 0 to its end: so a row's bits are the same alone, in a batch or in a prompt, in pages of any size.
type attnCached attnState

// cached runs the op, as many rows at a time as there is room for; Raw, Rstd and LSE are of no use here.
func (s *attnState) cached() {
	s.raw, s.rstd, s.lse, s.out2 = mat{}, mat{}, mat{}, mat{}
	s.reserve(s.stretchSize(), s.most()*max(s.D, keyTile), s.most())
	s.spans = 0
	for _, p := range s.pos {
		s.spans = max(s.spans, int(p)/keyTile+1)
	}
	n := max(1, packBudget/max(1, s.spans*s.spanSize()))
	for s.first = 0; s.first < s.q.rows; s.first += n {
		s.seqs = min(n, s.q.rows-s.first)
		s.packed = s.d.room(s.seqs * s.spans * s.spanSize())
		s.bundle()
		s.d.run((len(s.keep.bundles)-1)*s.spans*groupParts, (*attnCached)(s))
		s.d.run(s.seqs, (*attnMerge)(s))
	}
}

// bundle cuts the chunk's rows into runs of up to cachedRows of one slot; bundle i is rows bundles[i] … bundles[i+1]−1.
func (s *attnState) bundle() {
	b := append(s.keep.bundles[:0], int32(s.first))
	for n := s.first + 1; n < s.first+s.seqs; n++ {
		if at := b[len(b)-1]; n-int(at) == cachedRows || s.slot[n] != s.slot[at] {
			b = append(b, int32(n))
		}
	}
	s.keep.bundles = append(b, int32(s.first+s.seqs))
}

// spanSize is the number of floats that a row keeps of a stretch, part where they lie: per query vector Σ p·v [DV], the
// largest logit and Σ p. Query vectors go head by head, the maps of a head side by side.
func (s *attnState) spanSize() int { return s.Heads * s.maps * (s.DV + 2) }
func (s *attnState) part(n, span int) (acc, top, sum []float32) {
	vecs, size := s.Heads*s.maps, s.spanSize()
	x := s.packed[((n-s.first)*s.spans+span)*size:][:size]
	return x[:vecs*s.DV], x[vecs*s.DV : vecs*(s.DV+1)], x[vecs*(s.DV+1):]
}

// stretch is one worker's state: a bundle's rows, and in each row the query vectors of one group.
type stretch struct {
	g, span, slot int
	first, rows   int
	nk            int       // positions that the longest row sees
	vecs          int       // query vectors of all rows: row by row, head by head, map by map
	q             []float32 // [rows·heads, D] of one map, scaled
	dense, panel  []float32 // keys or values gathered from their pages, and packed
	p             []float32 // [vecs, nk]
	acc           []float32 // [vecs, DV]
	touched       float32   // keeps reads alive
}

// most is the largest number of query vectors of a stretch, stretchSize the number of floats it works in.
func (s *attnState) most() int { return cachedRows * s.perGroup() * s.maps }
func (s *attnState) stretchSize() int {
	return s.most()*(s.D+keyTile+s.DV) + keyTile*max(s.D, s.DV) + max(s.sizeB(s.D, keyTile), s.sizeB(keyTile, s.DV))
}

// groupParts is the number of tiles that share the groups of a stretch. Their columns of a row are read one after the other, as
// memory likes it, and short contexts still have work for a few workers.
const groupParts = 2

// tile i is part i%groupParts of the groups of stretch i/groupParts%spans of bundle i/groupParts/spans.
func (t *attnCached) tile(i, worker int) {
	s := (*attnState)(t)
	part, i := i%groupParts, i/groupParts
	w := stretch{span: i % s.spans}
	from, to := s.keep.bundles[i/s.spans], s.keep.bundles[i/s.spans+1]
	w.first, w.rows, w.slot = int(from), int(to-from), int(s.slot[from])
	for r := range w.rows {
		w.nk = max(w.nk, s.length(w.first+r, w.span))
	}
	g0, g1 := part*s.Groups/groupParts, (part+1)*s.Groups/groupParts
	if w.nk == 0 || g0 == g1 {
		return
	}
	s.fetch(&w, &s.ck, s.keyCol(g0, 0), (g1-g0)*s.keys*s.D)
	s.fetch(&w, &s.cv, g0*s.DV, (g1-g0)*s.DV)
	w.vecs = w.rows * s.perGroup() * s.maps
	buf := s.d.buf(worker, s.stretchSize())
	w.q, w.p, w.acc = cut(&buf, w.vecs*s.D), cut(&buf, w.vecs*w.nk), cut(&buf, w.vecs*s.DV)
	w.dense = cut(&buf, keyTile*max(s.D, s.DV))
	w.panel = buf
	scratch := s.d.scratch(worker)
	for w.g = g0; w.g < g1; w.g++ {
		s.stretchLogits(&w, scratch)
		pa := s.stretchSoftmax(&w, scratch)
		v, ld := s.gather(&w, &s.cv, w.g*s.DV, s.DV)
		s.packB(w.panel, w.nk, s.DV, v, ld, false)
		s.multiply(w.vecs, s.DV, w.nk, pa, w.panel, 0, w.acc, s.DV, false, scratch)
		s.stretchKeep(&w)
	}
}

// fetch brings columns c … c+width−1 of the stretch's positions into the second cache: it reads an element of every line, along the
// rows, before the groups come back for their shares of them.
func (s *attnState) fetch(w *stretch, x *mat, c, width int) {
	const line = 16
	var sum float32
	for j := range w.nk {
		r := x.from(s.place(w.slot, w.span*keyTile+j), c)[:width]
		for i := 0; i < width; i += line {
			sum += r[i]
		}
	}
	w.touched += sum
}

// length is the number of positions of a stretch that row n attends to.
func (s *attnState) length(n, span int) int {
	return max(0, min(keyTile, int(s.pos[n])+1-span*keyTile))
}

// gather is columns c … c+width−1 of the stretch's positions and their row step: in place where the pages follow each
// other in memory, else copied together.
func (s *attnState) gather(w *stretch, x *mat, c, width int) ([]float32, int) {
	p0 := w.span * keyTile
	row := s.place(w.slot, p0)
	whole := true
	for j := s.pageSize - p0%s.pageSize; j < w.nk; j += s.pageSize {
		whole = whole && s.place(w.slot, p0+j) == row+j
	}
	if whole {
		return x.from(row, c), x.ld
	}
	for j := range w.nk {
		copy(w.dense[j*width:(j+1)*width], x.from(s.place(w.slot, p0+j), c))
	}
	return w.dense, width
}

// stretchLogits: p = Scale·q·k, a map at a time; the maps of a V2 pair share the packed keys.
func (s *attnState) stretchLogits(w *stretch, scratch *simd.Scratch) {
	heads := s.perGroup()
	for m := range s.maps {
		if m < s.keys {
			k, ld := s.gather(w, &s.ck, s.keyCol(w.g, m), s.D)
			s.packB(w.panel, s.D, w.nk, k, ld, true)
		}
		for v := range w.rows * heads {
			copy(w.q[v*s.D:(v+1)*s.D], s.q.from(w.first+v/heads, s.queryCol(w.g*heads+v%heads, m)))
		}
		n := w.rows * heads
		simd.Scale(w.q[:n*s.D], s.pre)
		pa := scratch.A(s.sizeA(n, s.D))
		s.packA(pa, n, s.D, w.q, s.D, false)
		s.multiply(n, w.nk, s.D, pa, w.panel, 0, w.p[m*w.nk:], s.maps*w.nk, false, scratch)
	}
}

// stretchSoftmax turns each vector's logits into exp(logit − top), 0 behind its row's position, keeps top and sum, and gives the
// result packed.
func (s *attnState) stretchSoftmax(w *stretch, scratch *simd.Scratch) (pa []float32) {
	pa = scratch.A(s.sizeA(w.vecs, w.nk))
	per := s.perGroup() * s.maps
	for r := range w.rows {
		size := s.length(w.first+r, w.span)
		_, top, sum := s.part(w.first+r, w.span)
		for i := range per {
			p, at := w.p[(r*per+i)*w.nk:(r*per+i+1)*w.nk], w.g*per+i
			if size > 0 {
				top[at] = simd.Max(p[:size]) * s.post
			}
			if s.half {
				x := simd.ExpPackBF16(halves(pa), r*per+i, p, size, s.post, top[at])
				if size > 0 {
					sum[at] = x
				}
				continue
			}
			clear(p[size:])
			if size > 0 {
				sum[at] = simd.ExpSum(p[:size], p[:size], s.post, top[at])
			}
		}
	}
	if !s.half {
		simd.PackA(pa, w.vecs, w.nk, w.p, w.nk, false)
	}
	return pa
}

// stretchKeep copies each row's Σ p·v to its place.
func (s *attnState) stretchKeep(w *stretch) {
	size := s.perGroup() * s.maps * s.DV
	for r := range w.rows {
		if s.length(w.first+r, w.span) > 0 {
			acc, _, _ := s.part(w.first+r, w.span)
			copy(acc[w.g*size:(w.g+1)*size], w.acc[r*size:])
		}
	}
}

// attnMerge joins a row's stretches and writes its output.
type attnMerge attnState

// tile i is one row: each stretch is weighed by exp(its top − the largest).
func (t *attnMerge) tile(i, worker int) {
	s := (*attnState)(t)
	n := s.first + i
	acc, top, sum := s.part(n, 0)
	for span := 1; span <= int(s.pos[n])/keyTile; span++ {
		acc2, top2, sum2 := s.part(n, span)
		for v := range top {
			a, b := acc[v*s.DV:(v+1)*s.DV], acc2[v*s.DV:(v+1)*s.DV]
			m := max(top[v], top2[v])
			c, d := float32(math.Exp(float64(top[v]-m))), float32(math.Exp(float64(top2[v]-m)))
			simd.Scale(a, c)
			simd.Axpy(a, d, b)
			top[v], sum[v] = m, sum[v]*c+sum2[v]*d
		}
	}
	for h := range s.Heads {
		v := h * s.maps
		s.finish(n, h, 1, 1, s.DV, acc[v*s.DV:], top[v:], sum[v:], &s.d.workers[worker])
	}
}
