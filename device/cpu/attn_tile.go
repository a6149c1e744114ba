package cpu

import (
	"math"

	"antiphase/internal/simd"
)

// attnForward is the flash-style forward pass: one query tile of one head meets its key tiles from left to right,
// with an online softmax per map. Per cell and map it costs D multiply-adds for the logit and DV for the value; both
// maps' probabilities, stacked, meet the packed values in one product, so V is read once.
type attnForward attnState

// ownPanels is the number of floats of a group's packed keys and values that leave room in a worker's second cache.
const ownPanels = 192 << 10

// forward runs the whole forward op. Where groups are many, one is a worker's from beginning to end, so that packed keys and values never leave its
// cache.
func (s *attnState) forward() {
	if s.B*s.T == 0 {
		return
	}
	s.rows = queryTile
	if s.half { // softmax and products of more rows overlap better
		s.rows = halfTile
	}
	s.reserve(s.rowsSize(), s.maps*s.rows*keyTile)
	group := s.keyTiles() * s.panelSize()
	if workers := len(s.d.workers); s.B*s.Groups >= leastGroups*workers && group <= ownPanels {
		s.slots = slots{n: workers, groups: 1, size: group, own: true}
		s.first, s.seqs = 0, s.B
		s.packed = s.d.room(workers * group)
		s.d.run(s.B*s.Groups, (*attnGroup)(s))
		return
	}
	s.slots = slots{groups: s.Groups, size: s.Groups * group}
	s.chunks(s.slots.size, func(s *attnState) {
		s.slots.n = s.seqs
		s.d.run(s.seqs*s.keyTiles(), (*attnPack)(s))
		s.d.run(s.seqs*s.Heads*s.queryTiles(), (*attnForward)(s))
	})
}

// fetchGroup lets kernels fetch what group i of all sequences will ask for, in that order: the worker's own next one, unless its share ends before.
func (s *attnState) fetchGroup(i int, back bool, on *worker) {
	t := &on.tile
	t.FetchNone()
	if !s.half || i >= s.seqs*s.Groups {
		return
	}
	row, g := (s.first+i/s.Groups)*s.T, i%s.Groups
	t.FetchRows(s.k.at(row, s.keyCol(g, 0)), s.T, s.keys*s.D)
	t.FetchRows(s.v.at(row, g*s.DV), s.T, s.DV)
	n := s.perGroup()
	if back {
		t.FetchRows(s.dout.at(row, g*n*s.DV), s.T, n*s.DV)
		t.FetchRows(s.raw.at(row, g*n*s.DV), s.T, n*s.DV)
		if s.maps == 2 {
			t.FetchRows(s.out2.at(row, g*n*s.DV), s.T, n*s.DV)
		}
	}
	t.FetchRows(s.q.at(row, s.queryCol(g*n, 0)), s.T, n*s.maps*s.D)
}

// attnGroup is the forward pass of one group of one sequence.
type attnGroup attnState

func (t *attnGroup) tile(i, worker int) {
	s := (*attnState)(t)
	b, g := i/s.Groups, i%s.Groups
	s.fetchGroup(i+1, false, &s.d.workers[worker])
	for kt := range s.keyTiles() {
		s.packPanels(b, kt, g, g+1, worker)
	}
	for h := g * s.perGroup(); h < (g+1)*s.perGroup(); h++ {
		for qt := range s.queryTiles() {
			s.forwardRows(b, h, qt, worker)
		}
	}
}

// rows is one worker's state of a query tile: np rows of each map, nq of them in use, the maps one behind the other.
type rows struct {
	h, q0, nq, np int
	row           int       // of query q0 in the batch
	heads, count  int       // nq is count queries of each of these heads, one head behind the other
	q             []float32 // maps packed [nq,D], times the scale
	p             []float32 // float32: [maps·np, keyTile] logits, then probabilities
	acc           []float32 // [maps·np, whole(DV)] Σ exp(logit − top)·v
	top, sum      []float32 // [maps·np] largest logit so far, Σ exp(logit − top)
	any           bool      // acc holds something
}

// rowsSize is the number of floats of a rows, and of its queries times the scale.
func (s *attnState) rowsSize() int { return s.cachedSize(s.rows) + s.rows*s.D }

// tile i: the last query tile of a head, the longest, comes first.
func (f *attnForward) tile(i, worker int) {
	s := (*attnState)(f)
	tiles := s.queryTiles()
	s.forwardRows(i/tiles/s.Heads, i/tiles%s.Heads, tiles-1-i%tiles, worker)
}

// forwardRows does query tile qt of head h of the chunk's sequence b.
func (s *attnState) forwardRows(b, h, qt, worker int) {
	q0 := qt * s.rows
	w := rows{h: h, heads: 1, q0: q0, count: min(s.rows, s.T-q0), row: (s.first+b)*s.T + q0}
	buf := s.d.buf(worker, s.rowsSize())
	dense, on, g := cut(&buf, s.rows*s.D), &s.d.workers[worker], h/s.perGroup()
	s.carveRows(&w, &buf)
	s.openQueries(&w, dense)
	w.reset()
	at := s.slotOf(b, g, worker)
	for kt := s.begin(w.row) / keyTile; kt*keyTile < q0+w.count; kt++ {
		s.meetPanels(&w, kt*keyTile, min(keyTile, s.T-kt*keyTile), s.panels(at, g, kt), on)
	}
	if s.half {
		simd.Scale(w.top, math.Ln2) // back from units of log 2
	}
	s.finish(w.row, h, w.nq, w.np, s.whole(s.DV), w.acc, w.top, w.sum, on)
}

// reset begins a softmax.
func (w *rows) reset() {
	w.any = false
	clear(w.sum)
	for i := range w.top {
		w.top[i] = float32(math.Inf(-1))
	}
}

// forwardTile lets the query tile meet the nk keys and values from k0 on.
func (s *attnState) forwardTile(w *rows, k0, nk int, keys, values []float32, on *worker) {
	from, to := s.live(w.row, w.q0, w.count, k0, nk)
	width := to - from
	if s.half {
		s.forwardHalf(w, k0, nk, from, s.whole(width), keys, values, on)
		w.any = true
		return
	}
	for m := range s.maps {
		k := keys[min(m, s.keys-1)*s.keyPanel():]
		simd.GemmPacked(w.nq, width, s.D, w.q[m*s.sizeA(w.nq, s.D):], k[from*s.D:], w.p[m*w.nq*keyTile:], keyTile, false)
	}
	s.softmaxRows(w, k0, nk, from, to)
	pa := on.scratch.A(s.sizeA(s.maps*w.nq, width))
	simd.PackA(pa, s.maps*w.nq, width, w.p, keyTile, false)
	s.meet(s.maps*w.nq, s.DV, width, pa, width, s.rowsAt(values, from), nk, w.acc, s.DV, w.any, simd.Full, on)
	w.any = true
}

// forwardHalf is forwardTile with bfloat16 factors: one kernel does it all.
func (s *attnState) forwardHalf(w *rows, k0, nk, from, width int, keys, values []float32, on *worker) {
	x := &on.rows
	*x = simd.AttnRows{Maps: s.maps, Rows: w.np, Used: w.nq, Cols: width, D: s.D, DV: s.whole(s.DV), Q: simd.Halves(w.q), V: simd.Halves(s.rowsAt(values, from)),
		StrideV: simd.SizeBF16(simd.PanelBF16, nk), Scale: s.post * math.Log2E, Top: w.top, Sum: w.sum, Acc: w.acc, First: !w.any}
	for m := range s.maps {
		x.K[m] = simd.Halves(s.columnsAt(keys[min(m, s.keys-1)*s.keyPanel():], s.D, from))
	}
	on.window.find(s, w.row, w.q0, w.count, k0, nk, from, width)
	if w.heads > 1 {
		on.window.repeat(w.count, w.np, width)
	}
	x.Lo, x.Hi, x.Live = on.window.lo[:], on.window.hi[:], on.window.live[:]
	on.tile.Forward(x, &on.scratch)
}

// softmaxRows turns the logits into probabilities in place, with float32 factors.
func (s *attnState) softmaxRows(w *rows, k0, nk, from, to int) {
	for r := range w.nq {
		lo, hi := s.window(w.row+r%w.count, w.q0+r%w.count, k0, nk)
		for m := range s.maps {
			i := m*w.nq + r
			acc := w.acc[i*s.DV : (i+1)*s.DV]
			if !w.any {
				acc = nil
			}
			softmaxStep(w.p[i*keyTile:i*keyTile+to-from], lo-from, hi-from, acc, &w.top[i], &w.sum[i])
		}
	}
}

// raise makes m the largest logit so far, if it is, and scales down what was summed under a smaller one.
func raise(m float32, acc []float32, top, sum *float32) {
	if m > *top {
		c := float32(math.Exp(float64(*top - m)))
		simd.Scale(acc, c)
		*sum *= c
		*top = m
	}
}

// softmaxStep turns columns [lo,hi) of p from logits into exp(logit − top) and the others into 0, where top is the
// largest logit so far; what was summed under a smaller top is scaled down first.
func softmaxStep(p []float32, lo, hi int, acc []float32, top, sum *float32) {
	if lo >= hi { // the row's document begins behind this tile, or it ends before the diagonal
		clear(p)
		return
	}
	clear(p[:lo])
	clear(p[hi:])
	x := p[lo:hi]
	raise(simd.Max(x), acc, top, sum)
	*sum += simd.ExpSum(x, x, 1, *top)
}

// finish writes rows n … n+count−1 of head h: raw = A1·V − λ·A2·V from acc, top and sum (map m's lie m·step rows further on; rows of acc are
// ld apart; all are overwritten), the head norm, and what backward will ask for.
func (s *attnState) finish(n, h, count, step, ld int, acc, top, sum []float32, on *worker) {
	c := h * s.DV
	for m := range s.maps {
		lse := top[m*step:][:count]
		simd.LogSums(lse, sum[m*step:])
		for r := 0; r < count && s.lse.x != nil; r++ {
			s.lse.x[(n+r)*s.lse.ld+h*s.maps+m] = lse[r]
		}
	}
	if s.maps == 1 && !s.norm.On {
		on.tile.ScaleRows(s.out.at(n, c), acc, ld, count, s.DV, sum, s.out.far())
		return
	}
	if s.maps == 1 {
		on.tile.ScaleRows(simd.View{X: acc, Ld: ld}, acc, ld, count, s.DV, sum, false)
	} else { // raw = A1·V − λ·A2·V
		for r := range count {
			top[r] = -s.lambda(n+r, h) * sum[step+r]
		}
		on.tile.JoinRows(acc, ld, acc[step*ld:], ld, count, s.DV, sum, top)
		if s.out2.ok() {
			on.tile.ScaleRows(s.out2.at(n, c), acc[step*ld:], ld, count, s.DV, sum[step:], s.out2.far())
		}
	}
	if s.norm.On {
		if s.raw.ok() {
			on.tile.ScaleRows(s.raw.at(n, c), acc, ld, count, s.DV, ones[:], s.raw.far())
		}
		rstd, step := sum, 1 // nobody will ask
		if s.rstd.ok() {
			rstd, step = s.rstd.from(n, h), s.rstd.ld
		}
		on.tile.NormRows(acc, ld, count, s.DV, s.weight, rstd, step, float32(s.norm.Eps), float32(s.norm.Scale))
	}
	on.tile.ScaleRows(s.out.at(n, c), acc, ld, count, s.DV, ones[:], s.out.far())
}
