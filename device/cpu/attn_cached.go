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
const cachedRows = 4

// attnCached attends from single rows to the cache. A tile of the pool is a few rows and keyTile positions: every head
// and map of these rows goes through keys and values together, so that the cache is read once, from front to back. Each
// row keeps the softmax of each stretch apart; attnMerge joins them in the order of positions. Nothing in a
// row's sums depends on other rows or on the size of a page, hence the same bits alone, in a batch or in a prompt.
type attnCached attnState

// cached runs the op, as many rows at a time as there is room for; Raw, Rstd and LSE are of no use here.
func (s *attnState) cached() {
	s.raw, s.rstd, s.lse, s.out2 = mat{}, mat{}, mat{}, mat{}
	vecs := s.Heads * s.maps
	s.reserve(cachedRows*vecs*(s.D+keyTile), 0)
	s.spans = 0
	for _, p := range s.pos {
		s.spans = max(s.spans, int(p)/keyTile+1)
	}
	n := max(1, packBudget/max(1, s.spans*s.spanSize()))
	for s.first = 0; s.first < s.q.rows; s.first += n {
		s.seqs = min(n, s.q.rows-s.first)
		s.packed = s.d.room(s.seqs * s.spans * s.spanSize())
		s.bundle()
		s.d.run((len(s.keep.bundles)-1)*s.spans, (*attnCached)(s))
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

// spanSize is the number of floats that a row keeps of a stretch, span where they lie: per query vector Σ p·v [DV], the
// largest logit and Σ p. Query vectors go head by head, the maps of a head side by side.
func (s *attnState) spanSize() int { return s.Heads * s.maps * (s.DV + 2) }
func (s *attnState) span(n, span int) (acc, top, sum []float32) {
	vecs, size := s.Heads*s.maps, s.spanSize()
	x := s.packed[((n-s.first)*s.spans+span)*size:][:size]
	return x[:vecs*s.DV], x[vecs*s.DV : vecs*(s.DV+1)], x[vecs*(s.DV+1):]
}

// tile i is stretch i%spans of bundle i/spans.
func (t *attnCached) tile(i, worker int) {
	s := (*attnState)(t)
	first, last, span := int(s.keep.bundles[i/s.spans]), int(s.keep.bundles[i/s.spans+1]), i%s.spans
	vecs := s.Heads * s.maps
	buf := s.d.buf(worker, cachedRows*vecs*(s.D+keyTile))
	q, p := cut(&buf, cachedRows*vecs*s.D), cut(&buf, cachedRows*vecs*keyTile)
	longest := 0
	for n := first; n < last; n++ {
		longest = max(longest, s.length(n, span))
		copy(q[(n-first)*vecs*s.D:], s.q.row(n))
	}
	simd.Scale(q[:(last-first)*vecs*s.D], s.scale)
	for j := range longest {
		row := s.place(int(s.slot[first]), span*keyTile+j)
		for n := first; n < last; n++ {
			if j < s.length(n, span) {
				s.logits(p[(n-first)*vecs*keyTile+j:], q[(n-first)*vecs*s.D:], s.ck.row(row))
			}
		}
	}
	for n := first; n < last; n++ {
		s.spanSoftmax(p[(n-first)*vecs*keyTile:], n, span)
	}
	for j := range longest {
		row := s.place(int(s.slot[first]), span*keyTile+j)
		for n := first; n < last; n++ {
			if j < s.length(n, span) {
				acc, _, _ := s.span(n, span)
				s.weigh(acc, p[(n-first)*vecs*keyTile+j:], s.cv.row(row))
			}
		}
	}
}

// length is the number of positions of a stretch that row n attends to.
func (s *attnState) length(n, span int) int {
	return max(0, min(keyTile, int(s.pos[n])+1-span*keyTile))
}

// logits: p[v·keyTile] = q[v]·k for one position's keys.
func (s *attnState) logits(p, q, k []float32) {
	for h := range s.Heads {
		for m := range s.maps {
			v, c := h*s.maps+m, s.keyCol(h/s.perGroup(), m)
			p[v*keyTile] = simd.Dot(q[v*s.D:(v+1)*s.D], k[c:])
		}
	}
}

// spanSoftmax turns a row's logits into exp(logit − top), and keeps top and the sum.
func (s *attnState) spanSoftmax(p []float32, n, span int) {
	size := s.length(n, span)
	if size == 0 {
		return
	}
	acc, top, sum := s.span(n, span)
	clear(acc)
	for v := range top {
		x := p[v*keyTile : v*keyTile+size]
		top[v] = simd.Max(x)
		sum[v] = simd.ExpSum(x, x, 1, top[v])
	}
}

// weigh: acc[v] += p[v·keyTile]·(the group's value) for one position's values.
func (s *attnState) weigh(acc, p, values []float32) {
	for h := range s.Heads {
		x := values[h/s.perGroup()*s.DV:]
		for v := h * s.maps; v < (h+1)*s.maps; v++ {
			simd.Axpy(acc[v*s.DV:(v+1)*s.DV], p[v*keyTile], x)
		}
	}
}

// attnMerge joins a row's stretches and writes its output.
type attnMerge attnState

// tile i is one row: each stretch is weighed by exp(its top − the largest).
func (t *attnMerge) tile(i, _ int) {
	s := (*attnState)(t)
	n := s.first + i
	acc, top, sum := s.span(n, 0)
	for span := 1; span <= int(s.pos[n])/keyTile; span++ {
		acc2, top2, sum2 := s.span(n, span)
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
		s.finish(n, h, 1, acc[v*s.DV:], top[v:], sum[v:])
	}
}
