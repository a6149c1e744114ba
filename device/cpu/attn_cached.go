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
			row, _ := s.place(int(slot), from*x.PageSize)
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

// place is the cache row of position p of a slot, and how many positions from p on follow it in memory.
func (c *attnCache) place(slot, p int) (row, run int) {
	in := p % c.pageSize
	return int(c.table[slot*c.tableLd+p/c.pageSize])*c.pageSize + in, c.pageSize - in
}

// attnCached attends from single rows to the cache. A tile of the pool is one row and one group: the group's heads
// and both maps go through keys and values together, keyTile positions at a time, so that the cache is read once.
// Nothing in it depends on other rows or on the size of a page, hence the same bits alone, in a batch or in a prompt.
type attnCached attnState

// cached runs the op; Raw, Rstd and LSE are of no use here.
func (s *attnState) cached() {
	s.raw, s.rstd, s.lse, s.out2 = mat{}, mat{}, mat{}, mat{}
	s.reserve(s.cachedSize(), 0)
	s.d.run(s.q.rows*s.Groups, (*attnCached)(s))
}

// cachedSize is the number of floats that a tile works in.
func (s *attnState) cachedSize() int { return s.perGroup() * s.maps * (s.D + keyTile + s.DV + 2) }

// tile i is group i%G of row i/G.
func (t *attnCached) tile(i, worker int) {
	s := (*attnState)(t)
	n, g := i/s.Groups, i%s.Groups
	vecs := s.perGroup() * s.maps // query vectors: head by head, the maps of a head side by side
	buf := s.d.buf(worker, s.cachedSize())
	q, p, acc := cut(&buf, vecs*s.D), cut(&buf, vecs*keyTile), cut(&buf, vecs*s.DV)
	top, sum := cut(&buf, vecs), cut(&buf, vecs)
	copy(q, s.q.from(n, g*vecs*s.D))
	simd.Scale(q, s.scale)
	clear(acc)
	clear(sum)
	for v := range top {
		top[v] = float32(math.Inf(-1))
	}
	end := int(s.pos[n]) + 1
	for k0 := 0; k0 < end; k0 += keyTile {
		nk := min(keyTile, end-k0)
		s.cachedLogits(q, p, n, g, k0, nk)
		for v := range vecs {
			softmaxStep(p[v*keyTile:v*keyTile+nk], 0, nk, acc[v*s.DV:(v+1)*s.DV], &top[v], &sum[v])
		}
		s.cachedValues(acc, p, n, g, k0, nk)
	}
	for h := range s.perGroup() {
		v := h * s.maps
		s.finish(n, g*s.perGroup()+h, 1, acc[v*s.DV:], top[v:], sum[v:])
	}
}

// cachedLogits: p[v,j] = q[v]·k of position k0+j, for j < nk.
func (s *attnState) cachedLogits(q, p []float32, n, g, k0, nk int) {
	vecs := s.perGroup() * s.maps
	for j := 0; j < nk; {
		row, run := s.place(int(s.slot[n]), k0+j)
		run = min(run, nk-j)
		for v := range vecs {
			k := s.ck.from(row, s.keyCol(g, v%s.maps))
			dotRows(p[v*keyTile+j:][:run], q[v*s.D:(v+1)*s.D], k, s.ck.ld)
		}
		j += run
	}
}

// cachedValues: acc[v] += Σ_j p[v,j]·v of position k0+j, in the order of positions.
func (s *attnState) cachedValues(acc, p []float32, n, g, k0, nk int) {
	vecs := s.perGroup() * s.maps
	for j := 0; j < nk; {
		row, run := s.place(int(s.slot[n]), k0+j)
		run = min(run, nk-j)
		x := s.cv.from(row, g*s.DV)
		for v := range vecs {
			axpyRows(acc[v*s.DV:(v+1)*s.DV], p[v*keyTile+j:][:run], x, s.cv.ld)
		}
		j += run
	}
}

// dotRows: dst[j] = x·(row j), rows lying ld apart.
func dotRows(dst, x, rows []float32, ld int) {
	for j := range dst {
		dst[j] = simd.Dot(x, rows[j*ld:])
	}
}

// axpyRows: y += Σ_j alpha[j]·(row j), row after row.
func axpyRows(y, alpha, rows []float32, ld int) {
	for j, a := range alpha {
		simd.Axpy(y, a, rows[j*ld:])
	}
}
