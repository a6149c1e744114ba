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
	s.reserve(s.maps*(s.sizeA(queryTile, s.D)+queryTile*(keyTile+s.DV+2))+queryTile*s.D, s.maps*queryTile*keyTile, 0)
	s.chunks(s.packSize(), func(s *attnState) {
		s.d.run(s.seqs*s.Groups*s.keyTiles(), (*attnPack)(s))
		s.d.run(s.seqs*s.Heads*s.queryTiles(), (*attnForward)(s))
	})
}

// rows is one worker's state of a query tile: nq rows of each map, the maps stacked.
type rows struct {
	b, h, q0, nq int
	row          int       // of query q0 in the batch
	q            []float32 // maps packed [nq,D], times the scale
	p            []float32 // [maps·nq, nk] logits, then probabilities
	acc          []float32 // [maps·nq, DV] Σ exp(logit − top)·v
	top, sum     []float32 // [maps·nq] largest logit so far, Σ exp(logit − top)
}

// tile i: the last query tile of a head, the longest, comes first.
func (f *attnForward) tile(i, worker int) {
	s := (*attnState)(f)
	tiles := s.queryTiles()
	qt, bh := tiles-1-i%tiles, i/tiles
	w := rows{b: bh / s.Heads, h: bh % s.Heads, q0: qt * queryTile}
	w.nq = min(queryTile, s.T-w.q0)
	w.row = (s.first+w.b)*s.T + w.q0
	s.loadQueries(&w, worker)
	for kt := s.begin(w.row) / keyTile; kt*keyTile < w.q0+w.nq; kt++ {
		s.forwardTile(&w, kt, worker)
	}
	for r := range w.nq {
		s.finish(w.row+r, w.h, w.nq, w.acc[r*s.DV:], w.top[r:], w.sum[r:])
	}
}

// loadQueries carves the worker's memory, scales and packs the queries and resets the softmax.
func (s *attnState) loadQueries(w *rows, worker int) {
	n := s.maps * w.nq
	size := s.sizeA(w.nq, s.D)
	buf := s.d.buf(worker, s.maps*size+n*(keyTile+s.DV+2)+w.nq*s.D)
	w.q, w.p, w.acc = cut(&buf, s.maps*size), cut(&buf, n*keyTile), cut(&buf, n*s.DV)
	w.top, w.sum = cut(&buf, n), cut(&buf, n)
	dense := cut(&buf, w.nq*s.D)
	for m := range s.maps {
		q, ld := s.scaled(dense, w.nq, s.D, s.q.from(w.row, s.queryCol(w.h, m)), s.q.ld)
		s.packA(w.q[m*size:], w.nq, s.D, q, ld, false)
	}
	clear(w.acc)
	clear(w.sum)
	for i := range w.top {
		w.top[i] = float32(math.Inf(-1))
	}
}

// forwardTile lets the query tile meet key tile kt.
func (s *attnState) forwardTile(w *rows, kt, worker int) {
	k0 := kt * keyTile
	nk := min(keyTile, s.T-k0)
	from, to := s.live(w.row, w.q0, w.nq, k0, nk)
	scratch := s.d.scratch(worker)
	keys, values := s.panels(w.b, w.h/s.perGroup(), kt)
	if s.stacks(w.nq) {
		s.multiply(s.maps*w.nq, to-from, s.D, w.q, keys, from, w.p[from:], nk, false, scratch)
	}
	for m := 0; m < s.maps && !s.stacks(w.nq); m++ {
		k := keys[min(m, s.keys-1)*s.keyPanel():]
		s.multiply(w.nq, to-from, s.D, w.q[m*s.sizeA(w.nq, s.D):], k, from, w.p[m*w.nq*nk+from:], nk, false, scratch)
	}
	if s.half {
		s.forwardHalf(w, k0, nk, from, to, values, scratch)
		return
	}
	for r := range w.nq {
		lo, hi := s.window(w.row+r, w.q0+r, k0, nk)
		for m := range s.maps {
			i := m*w.nq + r
			p := w.p[i*nk+from : i*nk+to]
			softmaxStep(p, lo-from, hi-from, w.acc[i*s.DV:(i+1)*s.DV], &w.top[i], &w.sum[i])
		}
	}
	s.product(s.maps*w.nq, s.DV, to-from, w.p[from:], nk, false, values, nk, from, w.acc, s.DV, true, scratch)
}

// forwardHalf is the rest of forwardTile with bfloat16 factors: the probabilities go straight into the packed operand.
func (s *attnState) forwardHalf(w *rows, k0, nk, from, to int, values []float32, scratch *simd.Scratch) {
	n, width := s.maps*w.nq, to-from
	pa := halves(scratch.A(packSize(n, width)))
	for r := range w.nq {
		lo, hi := s.window(w.row+r, w.q0+r, k0, nk)
		lo, hi = lo-from, hi-from
		for m := range s.maps {
			i := m*w.nq + r
			p := w.p[i*nk+from : i*nk+to]
			if lo >= hi { // the row's document begins behind this tile, or it ends before the diagonal
				simd.ExpPackBF16(pa, i, p, 0, 1, 0)
				continue
			}
			for c := range lo {
				p[c] = float32(math.Inf(-1))
			}
			raise(simd.Max(p[lo:hi])*s.post, w.acc[i*s.DV:(i+1)*s.DV], &w.top[i], &w.sum[i])
			w.sum[i] += simd.ExpPackBF16(pa, i, p, hi, s.post, w.top[i])
		}
	}
	simd.GemmBF16(n, s.DV, width, pa, halves(values)[simd.PanelBF16*from:], nk, w.acc, s.DV, true, false, scratch)
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

// finish writes row n of head h: raw = A1·V − λ·A2·V from acc, top and sum (map m's lie m·step rows further on; acc
// is overwritten), the head norm, and what backward will ask for.
func (s *attnState) finish(n, h, step int, acc, top, sum []float32) {
	raw := acc[:s.DV]
	simd.Scale(raw, 1/sum[0])
	if s.maps == 2 {
		o2 := acc[step*s.DV:][:s.DV]
		simd.Scale(o2, 1/sum[step])
		simd.Axpy(raw, -s.lambda(n, h), o2)
		if s.out2.x != nil {
			copy(s.out2.piece(n, h*s.DV, (h+1)*s.DV), o2)
		}
	}
	if s.lse.x != nil {
		for m := range s.maps {
			s.lse.x[n*s.lse.ld+h*s.maps+m] = top[m*step] + float32(math.Log(float64(sum[m*step])))
		}
	}
	s.normalise(n, h, raw)
}

// normalise writes out = Scale·w·raw·rstd, or raw itself without a norm.
func (s *attnState) normalise(n, h int, raw []float32) {
	out := s.out.piece(n, h*s.DV, (h+1)*s.DV)
	if !s.norm.On {
		copy(out, raw)
		return
	}
	rstd := float32(1 / math.Sqrt(simd.SumSquares(raw)/float64(s.DV)+s.norm.Eps))
	if s.raw.x != nil {
		copy(s.raw.piece(n, h*s.DV, (h+1)*s.DV), raw)
		s.rstd.x[n*s.rstd.ld+h] = rstd
	}
	alpha := rstd * float32(s.norm.Scale)
	if s.weight != nil {
		simd.ScaleMul(out, alpha, raw, s.weight)
		return
	}
	copy(out, raw)
	simd.Scale(out, alpha)
}
