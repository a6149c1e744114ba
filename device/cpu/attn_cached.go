package cpu

import (
	"cmp"
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// attnCache is a paged cache and the rows that address it. Keys and values are bfloat16 where factors of products are, else float32.
type attnCache struct {
	keys16    pages[uint16]
	values16  pages[uint16]
	keys32    pages[float32]
	values32  pages[float32]
	table     []int32
	tableLd   int
	pageSize  int
	blocked   bool // pages are whole blocks of positions
	slot, pos []int32

	prompted       bundle // the prompt at hand
	group0, group1 int    // its groups
	from, to       int    // the bundles at hand
	spans, parts   int    // stretches of the longest of them, parts of their groups
}

// pages is a cache's keys or values: rows of all heads, ld elements apart.
type pages[T float32 | uint16] struct {
	x  []T
	ld int
}

func pagesOf[T float32 | uint16](t tensor.Tensor) pages[T] { return pages[T]{tensor.Host[T](t), t.Ld} }

// from is the memory from element (r,c) on.
func (p *pages[T]) from(r, c int) []T { return p.x[r*p.ld+c:] }

// cache fills in the cache and says whether every position that rows will touch has a page: those from 0 on when
// they attend, only their own when they write. One that has none is a fault, and the op is not run.
func (s *attnState) cache(d *Device, x *device.Cache, slot, pos tensor.Tensor, attend bool) bool {
	s.attnCache = attnCache{table: i32(x.Table), tableLd: x.Table.Ld, pageSize: x.PageSize, slot: i32(slot), pos: i32(pos),
		blocked: x.PageSize%simd.BlockRows == 0 && x.K.Rows%x.PageSize == 0}
	if x.K.Type == tensor.BF16 {
		s.keys16, s.values16 = pagesOf[uint16](x.K), pagesOf[uint16](x.V)
	} else {
		s.keys32, s.values32 = pagesOf[float32](x.K), pagesOf[float32](x.V)
	}
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

// bundle is rows of one slot at consecutive positions: a prompt's, or a single one.
type bundle struct {
	row, count int
	slot, pos  int // of the first row
	at         int // where its parts begin, see part
}

// keys is the number of positions that the last row attends to.
func (b *bundle) keys() int { return b.pos + b.count }

// cached attends from rows to the cache; Raw, Rstd and LSE are of no use here.
//
// A row goes through its positions in stretches of two key tiles, counted from position 0: an online softmax within a stretch; stretches are
// joined in the order of positions. An element of a product is one chain over k, whatever the number of rows, and a position that a row must not
// see adds an exact 0 to its end: so a row's bits are the same alone, in a batch or in a prompt, in pages of any size. Prompts (attn_prompt.go)
// and few rows (attn_stretch.go) only differ in what is done by whom.
func (s *attnState) cached() {
	s.raw, s.rstd, s.lse, s.out2, s.start = mat{}, mat{}, mat{}, mat{}, nil
	s.rows = queryTile
	s.bundle()
	few := s.keep.bundles[:0]
	for _, b := range s.keep.bundles {
		if b.count > fewRows {
			s.prompt(b)
		} else {
			few = append(few, b)
		}
	}
	s.keep.bundles = few
	s.stretches()
}

// fewRows is the most rows of a slot that are not a prompt.
const fewRows = 32

// bundle cuts the rows into bundles.
func (s *attnState) bundle() {
	all := s.keep.bundles[:0]
	for n, slot := range s.slot {
		pos := int(s.pos[n])
		if last := len(all) - 1; last >= 0 && all[last].slot == int(slot) && all[last].keys() == pos {
			all[last].count++
			continue
		}
		all = append(all, bundle{row: n, count: 1, slot: int(slot), pos: pos})
	}
	s.keep.bundles = all
}

// denseSize is the number of floats that packCache and openRows copy rows together in.
func (s *attnState) denseSize() int { return keyTile * max(s.D, s.DV) }

// packCache packs nk positions from p0 on of a slot for groups g0 … g1−1, whose panels lie step floats apart: 32 positions after the other, as
// they lie in memory.
func (s *attnState) packCache(slot, p0, nk, g0, g1 int, panels []float32, step int, dense []float32) {
	for t := 0; t < nk; t += s.step(keyTile) {
		n := min(s.step(keyTile), nk-t)
		for g := g0; g < g1; g++ {
			for m := range s.keys {
				s.packKeys(s.columnsAt(panels[(g-g0)*step+m*s.keyPanel():], s.D, t), slot, p0+t, n, s.keyCol(g, m), dense)
			}
		}
		for g := g0; g < g1; g++ {
			s.packValues(panels[(g-g0)*step+s.keys*s.keyPanel():], slot, p0, t, n, nk, g*s.DV, dense)
		}
	}
}

// packKeys packs n positions from p on of the key head at column c.
func (s *attnState) packKeys(dst []float32, slot, p, n, c int, dense []float32) {
	if s.half {
		k, ld := gather(s, slot, p, n, &s.keys16, c, s.D, simd.Halves(dense))
		simd.PackBBF16(simd.Halves(dst), s.D, s.whole(n), simd.View{H: k, Ld: ld}, true, s.D)
		return
	}
	k, ld := gather(s, slot, p, n, &s.keys32, c, s.D, dense)
	simd.PackB(dst, s.D, n, k, ld, true)
}

// packValues packs n positions from p0+t on of the value head at column c, part of nk from p0 on.
func (s *attnState) packValues(dst []float32, slot, p0, t, n, nk, c int, dense []float32) {
	if s.half {
		v, ld := gather(s, slot, p0+t, n, &s.values16, c, s.DV, simd.Halves(dense))
		simd.PackBBF16(simd.Halves(s.rowsAt(dst, t)), s.whole(n), s.DV, simd.View{H: v, Ld: ld}, false, nk)
		return
	}
	v, ld := gather(s, slot, p0+t, n, &s.values32, c, s.DV, dense)
	simd.PackB(dst, n, s.DV, v, ld, false)
}

// gather is columns c … c+width−1 of n positions from p on, filled up with zeros to whole panels, and their row step: in place where they are
// whole panels in one piece of memory, else copied together.
func gather[T float32 | uint16](s *attnState, slot, p, n int, x *pages[T], c, width int, dense []T) ([]T, int) {
	row, end := s.place(slot, p), s.whole(n)
	whole := n == end
	for j := s.pageSize - p%s.pageSize; j < n && whole; j += s.pageSize {
		whole = s.place(slot, p+j) == row+j
	}
	if whole {
		return x.from(row, c), x.ld
	}
	for j := range n {
		copy(dense[j*width:(j+1)*width], x.from(s.place(slot, p+j), c))
	}
	clear(dense[n*width : end*width])
	return dense, width
}

// carveRows cuts room for the tile's queries and softmax off buf, cachedSize floats. The tile holds w.count positions of one head after the
// other.
func (s *attnState) carveRows(w *rows, buf *[]float32) {
	w.nq = w.heads * w.count
	w.np = s.whole(w.nq)
	n := s.maps * w.np
	w.q, w.acc, w.top, w.sum = cut(buf, s.maps*s.sizeA(w.np, s.D)), cut(buf, n*s.whole(s.DV)), cut(buf, n), cut(buf, n)
	if !s.half {
		w.p = cut(buf, n*keyTile)
	}
}

func (s *attnState) cachedSize(rows int) int {
	rows = s.whole(rows)
	size := s.maps * (s.sizeA(rows, s.D) + rows*(s.whole(s.DV)+2))
	if !s.half {
		size += s.maps * rows * keyTile
	}
	return (size + 15) / 16 * 16 // whole lines
}

// openQueries packs the tile's queries.
func (s *attnState) openQueries(w *rows, dense []float32) {
	for m := range s.maps {
		q := s.q.at(w.row, s.queryCol(w.h, m))
		if w.heads > 1 {
			q = s.together(w, m, dense)
		}
		q = s.scaled(dense, w.nq, s.D, q)
		s.packA(w.q[m*s.sizeA(w.nq, s.D):], w.nq, s.D, q, false)
	}
}

// together copies the tile's queries of several heads, map m, into dense.
func (s *attnState) together(w *rows, m int, dense []float32) simd.View {
	all := simd.View{X: dense, Ld: s.D}
	if s.q.h != nil {
		all = simd.View{H: simd.Halves(dense), Ld: s.D}
	}
	for r := range w.nq {
		q := s.q.at(w.row+r%w.count, s.queryCol(w.h+r/w.count, m))
		if q.H != nil {
			copy(all.H[r*s.D:(r+1)*s.D], q.H)
		} else {
			copy(all.X[r*s.D:(r+1)*s.D], q.X)
		}
	}
	return all
}

// meetPanels lets the tile meet nk keys and values from k0 on.
func (s *attnState) meetPanels(w *rows, k0, nk int, panels []float32, on *worker) {
	keys := s.keys * s.keyPanel()
	s.forwardTile(w, k0, nk, panels[:keys], panels[keys:s.panelSize()], on)
}

// sums is what a softmax has come to: of n vectors Σ exp(logit − top)·v, ld floats apart, the largest logit and Σ exp(logit − top).
type sums struct {
	acc      []float32
	ld       int
	top, sum []float32
}

// join adds a later stretch to x: what has the smaller top is scaled down to the other's. factors has room for two of each vector.
func (s *attnState) join(x, y *sums, factors []float32, on *worker) {
	n := len(x.top)
	fx, fy := factors[:n], factors[n:2*n]
	for v := range fx {
		fx[v] = -max(y.top[v]-x.top[v], x.top[v]-y.top[v])
	}
	unit := float32(1)
	if s.half {
		unit = math.Ln2
	}
	simd.ExpSum(fx, fx, unit, 0)
	for v, f := range fx {
		if fy[v] = f; y.top[v] > x.top[v] {
			fy[v] = 1
			x.top[v], x.sum[v] = y.top[v], float32(x.sum[v]*f)+y.sum[v]
			continue
		}
		fx[v] = 1
		x.sum[v] += float32(f * y.sum[v])
	}
	on.tile.JoinRows(x.acc, x.ld, y.acc, y.ld, n, s.DV, fx, fy)
}
