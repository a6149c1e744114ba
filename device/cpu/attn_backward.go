package cpu

import (
	"math"

	"antiphase/internal/simd"
)

// attnBackward computes dQ, dK and dV from the prepared query tiles: the logits are computed once more, the gradient
// of the probabilities once for both maps. A tile of the pool is one block of keys of one group, which owns its
// rows of dK and dV and sums them up transposed, so that P and dS are right-hand operands as they lie; its share of dQ goes to a
// partial sum of its own. These are added up in the order of blocks. So no two workers write to the same place and no sum
// depends on who was first.
//
// Multiply-adds per cell, in units of D with DV = 2D: logits 2, dP 2, dV 2, dQ 2, dK 2 (one map with DV = D: 1 each).
type attnBackward attnState

const (
	// maxBlocks bounds the partial sums of dQ: at most (maxBlocks+1)/2 times dQ.
	maxBlocks = 8
	// leastBlock is the number of key tiles below which a block is not worth a partial sum: heads and sequences make tiles enough.
	leastBlock = 4
	// leastGroups is the number of groups for each worker from which a group is one worker's from beginning to end.
	leastGroups = 4
)

// blockKeys is the number of keys in a block, a multiple of keyTile. It depends on T alone, as the bits do on it.
func (s *attnState) blockKeys() int {
	return max(leastBlock, (s.keyTiles()+maxBlocks-1)/maxBlocks) * keyTile
}

func (s *attnState) blocks() int { return (s.T + s.blockKeys() - 1) / s.blockKeys() }

// backward runs the whole backward op.
func (s *attnState) backward() {
	if s.B*s.T == 0 {
		return
	}
	s.keep.dnorm = append(s.keep.dnorm[:0], make([]float64, s.DV)...)
	s.rows = queryTile
	if s.half { // logits stay in the first cache whatever the size, and long sums are better
		s.rows = min(tallTile, (s.T+queryTile-1)/queryTile*queryTile)
	}
	s.queryFloats = s.queryPackSize()
	s.keep.posts = grown(&s.keep.posts, s.rows)
	for i := range s.keep.posts {
		s.keep.posts[i] = s.post
	}
	s.reserve(max(s.colsSize(), s.prepareSize(s.step(s.rows)), s.step(keyTile)*s.D), 0)
	if workers := len(s.d.workers); s.blocks() == 1 && s.B*s.Groups >= leastGroups*workers {
		s.slots = slots{n: workers, heads: s.perGroup(), groups: 1, own: true}
		s.slots.size = s.slotSize()
		s.first, s.seqs = 0, s.B
		s.packed = s.d.room(workers*s.slots.size + s.B*s.Heads*s.shareCount()*s.DV)
		s.d.run(s.B*s.Groups, (*attnBackward)(s))
		s.addNorm()
	} else {
		s.slots = slots{heads: s.Heads, groups: s.Groups}
		s.slots.size = s.slotSize()
		s.chunks(s.slots.size+s.Heads*s.shareCount()*s.DV, func(s *attnState) {
			s.slots.n = s.seqs
			s.d.run(s.seqs*s.keyTiles(), (*attnPrepare)(s))
			s.addNorm()
			s.d.run(s.seqs*s.Groups*s.blocks(), (*attnBackward)(s))
			if s.blocks() > 1 {
				s.d.run(s.seqs*s.queryTiles(), (*attnSum)(s))
			}
		})
	}
	for i := range s.dnorm {
		s.dnorm[i] += float32(s.keep.dnorm[i])
	}
}

// dqSize is the number of floats of a query tile's partial sum of dQ: [s.rows, whole(D)] for each map.
func (s *attnState) dqSize() int { return s.maps * s.rows * s.whole(s.D) }

// partialAt is where block kb's partial sums of dQ begin within a sequence's: they begin with the query tile on the diagonal.
func (s *attnState) partialAt(kb int) int {
	tiles := 0
	for i := range kb {
		tiles += s.queryTiles() - i*s.blockKeys()/s.rows
	}
	return tiles * s.slots.heads * s.dqSize()
}

// dqTile is block kb's partial sum of dQ for query tile qt of head h.
func (s *attnState) dqTile(at slot, kb, h, qt int) []float32 {
	base := at.i*s.slots.size + s.slots.heads*s.queryTiles()*s.queryFloats + s.partialAt(kb)
	first := kb * s.blockKeys() / s.rows
	return s.packed[base+((h-at.group*s.perGroup())*(s.queryTiles()-first)+qt-first)*s.dqSize():][:s.dqSize()]
}

// storeQueries adds up the partial sums of a query tile and writes its dQ.
func (s *attnState) storeQueries(at slot, b, h, qt int, on *worker) {
	q0, d := qt*s.rows, s.whole(s.D)
	nq, sum := min(s.rows, s.T-q0), s.dqTile(at, 0, h, qt)
	for m := range s.maps {
		part := sum[m*s.rows*d:][:nq*d]
		for kb := 1; kb*s.blockKeys() <= q0; kb++ {
			simd.Add(part, part, s.dqTile(at, kb, h, qt)[m*s.rows*d:])
		}
		on.tile.ScaleRows(s.dq.at((s.first+b)*s.T+q0, s.queryCol(h, m)), part, d, nq, s.D, s.keep.posts, s.dq.far())
	}
}

// attnSum writes dQ where there are several blocks.
type attnSum attnState

// tile i is one query tile of all heads of one sequence.
func (t *attnSum) tile(i, worker int) {
	s := (*attnState)(t)
	for h := range s.Heads {
		s.storeQueries(slot{i: i / s.queryTiles()}, i/s.queryTiles(), h, i%s.queryTiles(), &s.d.workers[worker])
	}
}

// tile i: the first block of a group, the longest, comes first.
func (t *attnBackward) tile(i, worker int) {
	s := (*attnState)(t)
	n := s.blocks()
	kb, g, b := i%n, i/n%s.Groups, i/n/s.Groups
	end := min(s.T, (kb+1)*s.blockKeys())
	if s.slots.own {
		s.fetchGroup(i+1, true, &s.d.workers[worker])
	}
	for kt := 0; kt < s.keyTiles() && s.slots.own; kt++ {
		s.prepare(b, kt, g, g+1, worker)
	}
	w := cols{at: s.slotOf(b, g, worker), b: b, g: g, kb: kb, on: &s.d.workers[worker]}
	s.clearUnmet(&w, end)
	s.carve(&w, worker)
	for w.k0 = kb * s.blockKeys(); w.k0 < end; w.k0 += keyTile {
		w.nk = min(keyTile, s.T-w.k0)
		w.keyPack = s.keyPack(w.at, g, w.k0/keyTile)
		for m := range s.keys {
			clear(w.dk[m])
		}
		clear(w.dv)
		for h := g * s.perGroup(); h < (g+1)*s.perGroup(); h++ {
			s.backwardColumn(&w, h)
		}
		s.storeKeys(&w)
	}
	for h := g * s.perGroup(); h < (g+1)*s.perGroup() && n == 1; h++ {
		for qt := range s.queryTiles() {
			s.storeQueries(w.at, b, h, qt, w.on)
		}
	}
}

// firstKeys is the first key tile of block kb that the query tile whose first row is n meets: there dQ begins.
func (s *attnState) firstKeys(kb, n int) int {
	return max(kb*s.blockKeys(), s.begin(n)/keyTile*keyTile)
}

// clearUnmet zeroes the block's sum of dQ where a query tile meets none of its keys, which end at end.
func (s *attnState) clearUnmet(w *cols, end int) {
	for qt := w.kb * s.blockKeys() / s.rows; qt < s.queryTiles(); qt++ {
		for h := w.g * s.perGroup(); h < (w.g+1)*s.perGroup() && s.begin((s.first+w.b)*s.T+qt*s.rows) >= end; h++ {
			clear(s.dqTile(w.at, w.kb, h, qt))
		}
	}
}

// cols is one worker's state of a key tile, and of its present meeting with a query tile.
type cols struct {
	at               slot
	b, g, kb, k0, nk int
	h, q0, row       int // the query tile: head, first query that sees these keys in the sequence and in the batch
	skip, nq, np     int // rows before it, rows in use, whole rows
	from, width      int // columns that any of its rows attends to
	keyPack
	p        [2][]float32 // float32: [nq,keyTile] per map: logits, P, then dS
	dp, mix  []float32    // float32: [nq,keyTile] dP; P1 − λP2
	mixB     []float32    // packed mix [nq,width]
	dsA, dsB [2][]float32 // per map: dS packed as a left-hand and as a right-hand operand [nq,width]
	dk       [2][]float32 // [whole(D),keyTile] per key head
	dv       []float32    // [whole(DV),keyTile]
	on       *worker
}

// cells is the number of floats of a tile of logits of float32 factors; those of others never leave the kernel.
func (s *attnState) cells() int {
	if s.half {
		return 0
	}
	return s.rows * keyTile
}

// colsSize is the number of floats of a cols.
func (s *attnState) colsSize() int {
	sums := (s.keys*s.whole(s.D) + s.whole(s.DV)) * keyTile
	a, b := s.sizeA(s.rows, keyTile), s.sizeB(s.rows, keyTile)
	return s.maps*(s.cells()+a+b) + 2*s.cells() + b + sums
}

// carve cuts the worker's memory into w's parts.
func (s *attnState) carve(w *cols, worker int) {
	a, b := s.sizeA(s.rows, keyTile), s.sizeB(s.rows, keyTile)
	buf := s.d.buf(worker, s.colsSize())
	for m := range s.keys {
		w.dk[m] = cut(&buf, s.whole(s.D)*keyTile)
	}
	for m := range s.maps {
		w.p[m], w.dsA[m], w.dsB[m] = cut(&buf, s.cells()), cut(&buf, a), cut(&buf, b)
	}
	w.dp, w.mix, w.mixB, w.dv = cut(&buf, s.cells()), cut(&buf, s.cells()), cut(&buf, b), cut(&buf, s.whole(s.DV)*keyTile)
}

// storeKeys writes the tile's dK and dV.
func (s *attnState) storeKeys(w *cols) {
	row := (s.first+w.b)*s.T + w.k0
	for m := range s.keys {
		w.on.tile.TurnRows(s.dk.at(row, s.keyCol(w.g, m)), w.dk[m], keyTile, w.nk, s.D, s.keep.posts, s.dk.far())
	}
	w.on.tile.TurnRows(s.dv.at(row, w.g*s.DV), w.dv, keyTile, w.nk, s.DV, ones[:], s.dv.far())
}

// backwardColumn lets the key tile meet head h's query tiles, from the diagonal down to the last document that
// reaches back to it.
func (s *attnState) backwardColumn(w *cols, h int) {
	for qt := w.k0 / s.rows; qt < s.queryTiles(); qt++ {
		if s.begin((s.first+w.b)*s.T+qt*s.rows) >= w.k0+w.nk {
			return
		}
		s.backwardTile(w, h, qt)
	}
}

// backwardTile is one meeting: logits and dP, the softmax, then the products into dV, dK and dQ.
func (s *attnState) backwardTile(w *cols, h, qt int) {
	w.skip = max(0, w.k0-qt*s.rows)
	w.h, w.q0 = h, qt*s.rows+w.skip
	w.row = (s.first+w.b)*s.T + w.q0
	all := min(s.rows, s.T-qt*s.rows)
	w.nq = all - w.skip
	w.np = s.whole(w.nq)
	from, to := s.live(w.row, w.q0, w.nq, w.k0, w.nk)
	w.from, w.width = from, to-from
	q := s.queryPack(w.at, h, qt)
	if s.half {
		s.gradHalf(w, &q, all)
	} else {
		s.gradRows(w, &q)
	}
	late, long := simd.Full, simd.Full
	if w.q0-w.k0 == from { // on the diagonal: queries do not see later keys
		late, long = simd.LaterColumns, simd.LongerRows
	}
	s.meet(s.DV, w.width, w.nq, s.rowsAt(q.dot, w.skip), all, w.mixB, w.nq, w.dv[from:], keyTile, true, late, w.on)
	dq, d := s.dqTile(w.at, w.kb, h, qt), s.whole(s.D)
	first := w.k0 == s.firstKeys(w.kb, (s.first+w.b)*s.T+qt*s.rows)
	for m := range s.maps {
		key := min(m, s.keys-1)
		s.meet(s.D, w.width, w.nq, s.rowsAt(s.turned(&q, m, all), w.skip), all, w.dsB[m], w.nq, w.dk[key][from:], keyTile, true, late, w.on)
		s.meet(w.nq, s.D, w.width, w.dsA[m], w.width, s.rowsAt(w.kn[key], from), w.nk, dq[(m*s.rows+w.skip)*d:], d, !first, long, w.on)
	}
}

// gradHalf is the way from Q, K, V and dO to mix and dS with bfloat16 factors: one kernel does it all. The query tile has all rows.
func (s *attnState) gradHalf(w *cols, q *queryPack, all int) {
	g, win := &w.on.grad, &w.on.window
	win.find(s, w.row, w.q0, w.nq, w.k0, w.nk, w.from, s.whole(w.width))
	*g = simd.AttnGrad{Maps: s.maps, Rows: w.np, Cols: s.whole(w.width), D: s.D, DV: s.DV, DO: simd.Halves(q.doa[simd.FloatsBF16(w.skip, s.DV):]),
		V: simd.Halves(s.columnsAt(w.vt, s.DV, w.from)), Lo: win.lo[:], Hi: win.hi[:], Live: win.live[:], Scale: s.post * math.Log2E,
		Lam: q.lam[w.skip:], Mix: simd.Halves(w.mixB), StridePairs: simd.SizeBF16(simd.PanelBF16, w.np)}
	for m := range s.maps {
		g.Q[m], g.K[m] = simd.Halves(s.left(q, m, all)[simd.FloatsBF16(w.skip, s.D):]), simd.Halves(s.columnsAt(w.kt[min(m, s.keys-1)], s.D, w.from))
		g.LSE[m], g.Delta[m] = q.lse[m][w.skip:], q.delta[m][w.skip:]
		g.Lines[m], g.Pairs[m] = simd.Halves(w.dsA[m]), simd.Halves(w.dsB[m])
	}
	w.on.tile.Grad(g, &w.on.scratch)
}

// gradRows is the same with float32 factors, row by row: P_m = exp(logit − lse), mix = P1 − λP2, dS1 = P1∘(dP − Δ1),
// dS2 = −λ·P2∘(dP − Δ2), with dS in place of P. With one map mix is P itself and dS replaces dP.
func (s *attnState) gradRows(w *cols, q *queryPack) {
	for m := range s.maps {
		k := s.columnsAt(w.kt[min(m, s.keys-1)], s.D, w.from)
		simd.GemmPacked(w.nq, w.width, s.D, s.left(q, m, w.nq), k, w.p[m], keyTile, false)
	}
	simd.GemmPacked(w.nq, w.width, s.DV, q.doa, s.columnsAt(w.vt, s.DV, w.from), w.dp, keyTile, false)
	for r := range w.nq {
		s.softmaxGrad(w, q, r)
	}
	mix, ds := w.mix, w.p
	if s.maps == 1 {
		mix, ds[0] = w.p[0], w.dp
	}
	simd.PackB(w.mixB, w.nq, w.width, mix, keyTile, false)
	for m := range s.maps {
		simd.PackA(w.dsA[m], w.nq, w.width, ds[m], keyTile, false)
		simd.PackB(w.dsB[m], w.nq, w.width, ds[m], keyTile, false)
	}
}

// softmaxGrad goes through row r of a meeting.
func (s *attnState) softmaxGrad(w *cols, q *queryPack, r int) {
	lo, hi := s.window(w.row+r, w.q0+r, w.k0, w.nk)
	lo, hi = lo-w.from, hi-w.from
	if lo >= hi {
		lo, hi = 0, 0
	}
	first := r * keyTile
	at, end, last := first+lo, first+hi, first+w.width
	p1, dp, f := w.p[0][at:end], w.dp[at:end], &w.on.softmax
	f.Scale, f.LSE[0], f.Delta[0], f.Alpha[0] = s.post, q.lse[0][r], q.delta[0][r], s.post
	if s.maps == 1 {
		simd.SoftmaxBackward(p1, dp, f)
		clearAround(w.dp, first, at, end, last)
	} else {
		lam := q.lam[r]
		f.LSE[1], f.Delta[1], f.Alpha[1], f.Lam = q.lse[1][r], q.delta[1][r], lam*s.post, lam
		simd.SoftmaxBackward2(p1, w.p[1][at:end], w.mix[at:end], dp, f)
		clearAround(w.mix, first, at, end, last)
		clearAround(w.p[1], first, at, end, last)
	}
	clearAround(w.p[0], first, at, end, last)
}

// clearAround zeroes x[from:to] except x[lo:hi].
func clearAround(x []float32, from, lo, hi, to int) {
	clear(x[from:lo])
	clear(x[hi:to])
}
