package cpu

import (
	"math"

	"antiphase/internal/simd"
)

// attnForward is the flash-style forward pass: one query tile of one head meets its key tiles from left to right,
// with an online softmax per map. Per cell and map it costs D multiply-adds for the logit and DV for the value; both
// maps' probabilities, stacked, meet the packed values in one product, so V is read once.
type attnForward attnState

// forward runs the whole forward op.
func (s *attnState) forward() {
	s.rows = queryTile
	s.reserve(s.rowsSize(), s.maps*queryTile*keyTile)
	s.chunks(s.packSize(), func(s *attnState) {
		s.d.run(s.seqs*s.keyTiles(), (*attnPack)(s))
		s.d.run(s.seqs*s.Heads*s.queryTiles(), (*attnForward)(s))
	})
}

// rows is one worker's state of a query tile: np rows of each map, nq of them in use, the maps one behind the other.
type rows struct {
	b, h, q0, nq, np int
	row              int       // of query q0 in the batch
	heads, count     int       // nq is count queries of each of these heads, one head behind the other
	q                []float32 // maps packed [nq,D], times the scale
	p                []float32 // float32: [maps·np, keyTile] logits, then probabilities
	acc              []float32 // [maps·np, whole(DV)] Σ exp(logit − top)·v
	top, sum         []float32 // [maps·np] largest logit so far, Σ exp(logit − top)
	any              bool      // acc holds something
}

// rowsSize is the number of floats of a rows.
func (s *attnState) rowsSize() int {
	return max(s.maps*queryTile*(keyTile+s.whole(s.DV)+2), queryTile*s.D)
}

// tile i: the last query tile of a head, the longest, comes first.
func (f *attnForward) tile(i, worker int) {
	s := (*attnState)(f)
	tiles := s.queryTiles()
	qt, bh := tiles-1-i%tiles, i/tiles
	w := rows{b: bh / s.Heads, h: bh % s.Heads, heads: 1, q0: qt * queryTile}
	w.nq = min(queryTile, s.T-w.q0)
	w.count = w.nq
	w.np = s.whole(w.nq)
	w.row = (s.first+w.b)*s.T + w.q0
	s.loadQueries(&w, worker)
	for kt := s.begin(w.row) / keyTile; kt*keyTile < w.q0+w.nq; kt++ {
		keys, values := s.panels(w.b, w.h/s.perGroup(), kt)
		s.forwardTile(&w, kt*keyTile, min(keyTile, s.T-kt*keyTile), keys, values, &s.d.workers[worker])
	}
	if s.half {
		simd.Scale(w.top, math.Ln2) // back from units of log 2
	}
	s.finish(w.row, w.h, w.nq, w.np, s.whole(s.DV), w.acc, w.top, w.sum, &s.d.workers[worker])
}

// loadQueries carves the worker's memory and resets the softmax.
func (s *attnState) loadQueries(w *rows, worker int) {
	n := s.maps * w.np
	buf := s.d.buf(worker, s.rowsSize())
	w.q, w.acc, w.p = s.queries(w.b, w.h, w.q0/queryTile), cut(&buf, n*s.whole(s.DV)), nil
	if !s.half {
		w.p = cut(&buf, n*keyTile)
	}
	w.top, w.sum = cut(&buf, n), cut(&buf, n)
	w.reset()
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
	*x = simd.AttnRows{Maps: s.maps, Rows: w.np, Live: w.nq, Cols: width, D: s.D, DV: s.whole(s.DV), Q: halves(w.q), V: halves(s.rowsAt(values, from)),
		StrideV: simd.SizeBF16(simd.PanelBF16, nk), Scale: s.post * math.Log2E, Top: w.top, Sum: w.sum, Acc: w.acc, First: !w.any}
	for m := range s.maps {
		x.K[m] = halves(s.columnsAt(keys[min(m, s.keys-1)*s.keyPanel():], s.D, from))
	}
	if on.window.find(s, w.row, w.q0, w.count, k0, nk, from, width); on.window.masked {
		on.window.repeat(w.count, w.nq)
		x.Lo, x.Hi = on.window.lo[:], on.window.hi[:]
	}
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

// finish writes rows n … n+count−1 of head h: raw = A1·V − λ·A2·V from acc, top and sum (map m's lie m·step rows further on; rows of acc, which
// is overwritten, are ld apart), the head norm, and what backward will ask for.
func (s *attnState) finish(n, h, count, step, ld int, acc, top, sum []float32, on *worker) {
	c := h * s.DV
	for r := range count {
		for m := range s.maps {
			i := m*step + r
			if s.lse.x != nil {
				s.lse.x[(n+r)*s.lse.ld+h*s.maps+m] = top[i] + float32(math.Log(float64(sum[i])))
			}
			sum[i] = 1 / sum[i]
		}
	}
	if s.maps == 1 && !s.norm.On {
		on.tile.ScaleRows(s.out.at(n, c), acc, ld, count, s.DV, sum, s.out.far())
		return
	}
	for r := range count {
		raw := acc[r*ld:][:s.DV]
		simd.Scale(raw, sum[r])
		if s.maps == 2 {
			o2 := acc[(step+r)*ld:][:s.DV]
			simd.Scale(o2, sum[step+r])
			simd.Axpy(raw, -s.lambda(n+r, h), o2)
		}
	}
	if s.maps == 2 && s.out2.ok() {
		on.tile.ScaleRows(s.out2.at(n, c), acc[step*ld:], ld, count, s.DV, ones[:], s.out2.far())
	}
	if s.norm.On {
		if s.raw.ok() {
			on.tile.ScaleRows(s.raw.at(n, c), acc, ld, count, s.DV, ones[:], s.raw.far())
		}
		for r := range count {
			s.normalise(n+r, h, acc[r*ld:][:s.DV])
		}
	}
	on.tile.ScaleRows(s.out.at(n, c), acc, ld, count, s.DV, ones[:], s.out.far())
}

// normalise turns raw into Scale·w·raw·rstd.
func (s *attnState) normalise(n, h int, raw []float32) {
	rstd := float32(1 / math.Sqrt(simd.SumSquares(raw)/float64(s.DV)+s.norm.Eps))
	if s.rstd.x != nil {
		s.rstd.x[n*s.rstd.ld+h] = rstd
	}
	alpha := rstd * float32(s.norm.Scale)
	if s.weight != nil {
		simd.ScaleMul(raw, alpha, raw, s.weight)
		return
	}
	simd.Scale(raw, alpha)
}
