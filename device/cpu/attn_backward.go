package cpu

import "antiphase/internal/simd"

// attnBackward computes dQ, dK and dV from the prepared query tiles: the logits are computed once more, the gradient
// of the probabilities once for both maps. A tile of the pool is one block of keys of one group, which owns its
// rows of dK and dV; its share of dQ goes to dQ itself (block 0) or to a partial sum that attnSum adds up later, in the
// order of blocks. So no two workers write to the same place and no sum depends on who was first.
//
// Multiply-adds per cell, in units of D with DV = 2D: logits 2, dP 2, dV 2, dQ 2, dK 2 (one map with DV = D: 1 each).
type attnBackward attnState

const (
	// maxBlocks bounds the partial sums of dQ: at most (maxBlocks−1)/2 times dQ.
	maxBlocks = 8
	// leastBlock is the number of key tiles below which a block is not worth a partial sum: heads and sequences make tiles enough.
	leastBlock = 4
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
	s.reserve(max(s.colsSize(), queryTile*(s.D+s.DV)), queryTile*keyTile, 0)
	size := s.Heads*s.queryTiles()*s.queryPackSize() + s.partialAt(s.blocks())
	s.chunks(size, func(s *attnState) {
		s.d.run(s.seqs*s.Heads*s.queryTiles(), (*attnPrepare)(s))
		s.addNorm()
		s.d.run(s.seqs*s.Groups*s.blocks(), (*attnBackward)(s))
		if s.blocks() > 1 {
			s.d.run(s.seqs*s.queryTiles(), (*attnSum)(s))
		}
	})
	for i := range s.dnorm {
		s.dnorm[i] += float32(s.keep.dnorm[i])
	}
}

// partialAt is where block kb's partial sum of dQ begins within a sequence's: block kb > 0 keeps rows kb·blockKeys … T−1.
func (s *attnState) partialAt(kb int) int {
	rows := 0
	for i := 1; i < kb; i++ {
		rows += s.T - i*s.blockKeys()
	}
	return rows * s.q.cols
}

// dqRows is where block kb of the chunk's sequence b sums up dQ, from query t on: memory and row step.
func (s *attnState) dqRows(b, kb, t int) ([]float32, int) {
	if kb == 0 {
		return s.dq.from((s.first+b)*s.T+t, 0), s.dq.ld
	}
	base := s.seqs*s.Heads*s.queryTiles()*s.queryPackSize() + b*s.partialAt(s.blocks())
	return s.packed[base+s.partialAt(kb)+(t-kb*s.blockKeys())*s.q.cols:], s.q.cols
}

// attnSum adds the blocks' partial sums to dQ.
type attnSum attnState

// tile i is one query tile of all heads of one sequence.
func (t *attnSum) tile(i, _ int) {
	s := (*attnState)(t)
	b, q0 := i/s.queryTiles(), i%s.queryTiles()*queryTile
	for kb := 1; kb*s.blockKeys() <= q0; kb++ {
		part, ld := s.dqRows(b, kb, q0)
		for r := range min(queryTile, s.T-q0) {
			dq := s.dq.row((s.first+b)*s.T + q0 + r)
			simd.Add(dq, dq, part[r*ld:])
		}
	}
}

// tile i: the first block of a group, the longest, comes first.
func (t *attnBackward) tile(i, worker int) {
	s := (*attnState)(t)
	n := s.blocks()
	kb, g, b := i%n, i/n%s.Groups, i/n/s.Groups
	end := min(s.T, (kb+1)*s.blockKeys())
	s.clearUnmet(b, g, kb, end)
	w := cols{b: b, g: g, kb: kb, scratch: s.d.scratch(worker), factors: &s.d.workers[worker].softmax}
	s.carve(&w, worker)
	for w.k0 = kb * s.blockKeys(); w.k0 < end; w.k0 += keyTile {
		w.nk = min(keyTile, s.T-w.k0)
		s.loadKeys(&w)
		for h := g * s.perGroup(); h < (g+1)*s.perGroup(); h++ {
			s.backwardColumn(&w, h)
		}
		s.storeKeys(&w)
	}
}

// firstKeys is the first key tile of block kb that the query tile whose first row is n meets: there dQ begins.
func (s *attnState) firstKeys(kb, n int) int {
	return max(kb*s.blockKeys(), s.begin(n)/keyTile*keyTile)
}

// clearUnmet zeroes block kb's sum of dQ where a query tile meets none of its keys, which end at end.
func (s *attnState) clearUnmet(b, g, kb, end int) {
	width := s.perGroup() * s.maps * s.D
	for q0 := kb * s.blockKeys(); q0 < s.T; q0 += queryTile {
		if s.begin((s.first+b)*s.T+q0) < end {
			continue
		}
		dq, ld := s.dqRows(b, kb, q0)
		for r := range min(queryTile, s.T-q0) {
			clear(dq[r*ld+g*width : r*ld+(g+1)*width])
		}
	}
}

// cols is one worker's state of a key tile, and of its present meeting with a query tile.
type cols struct {
	b, g, kb, k0, nk int
	h, q0, row       int          // the query tile: head, first query in the sequence and in the batch
	from, to         int          // columns that any of its rows attends to
	kt, kn           [2][]float32 // per key head: packed Kᵀ [D,nk], packed K [nk,D] times the scale
	vt               []float32    // packed Vᵀ [DV,nk]
	p                [2][]float32 // [nq,nk] per map: logits, P, then dS
	both             []float32    // their memory
	dp, mix          []float32    // [nq,nk] dP; P1 − λP2
	dk               [2][]float32 // [nk,D] per key head
	dv               []float32    // [nk,DV]
	dense            []float32    // [nk,D] scaled K on its way to a panel
	scratch          *simd.Scratch
	factors          *simd.SoftmaxBack
}

// colsSize is the number of floats of a cols.
func (s *attnState) colsSize() int {
	kt, kn, vt := s.sizeB(s.D, keyTile), s.sizeB(keyTile, s.D), s.sizeB(s.DV, keyTile)
	return s.keys*(kt+kn+keyTile*s.D) + vt + (s.maps+2)*queryTile*keyTile + keyTile*(s.DV+s.D)
}

// carve cuts the worker's memory into w's parts.
func (s *attnState) carve(w *cols, worker int) {
	kt, kn, vt := s.sizeB(s.D, keyTile), s.sizeB(keyTile, s.D), s.sizeB(s.DV, keyTile)
	const cell = queryTile * keyTile
	buf := s.d.buf(worker, s.colsSize())
	for m := range s.keys {
		w.kt[m], w.kn[m], w.dk[m] = cut(&buf, kt), cut(&buf, kn), cut(&buf, keyTile*s.D)
	}
	w.both = cut(&buf, s.maps*cell)
	for m := range s.maps {
		w.p[m] = w.both[m*cell : (m+1)*cell]
	}
	w.vt, w.dp, w.mix = cut(&buf, vt), cut(&buf, cell), cut(&buf, cell)
	w.dv, w.dense = cut(&buf, keyTile*s.DV), cut(&buf, keyTile*s.D)
}

// loadKeys packs the tile's keys and values and clears their gradients.
func (s *attnState) loadKeys(w *cols) {
	row := (s.first+w.b)*s.T + w.k0
	for m := range s.keys {
		k := s.k.from(row, s.keyCol(w.g, m))
		s.packB(w.kt[m], s.D, w.nk, k, s.k.ld, true)
		x, ld := s.scaled(w.dense, w.nk, s.D, k, s.k.ld)
		s.packB(w.kn[m], w.nk, s.D, x, ld, false)
		clear(w.dk[m])
	}
	s.packB(w.vt, s.DV, w.nk, s.v.from(row, w.g*s.DV), s.v.ld, true)
	clear(w.dv)
}

// storeKeys writes the tile's dK and dV.
func (s *attnState) storeKeys(w *cols) {
	row := (s.first+w.b)*s.T + w.k0
	for r := range w.nk {
		for m := range s.keys {
			c := s.keyCol(w.g, m)
			copy(s.dk.piece(row+r, c, c+s.D), w.dk[m][r*s.D:])
		}
		copy(s.dv.piece(row+r, w.g*s.DV, (w.g+1)*s.DV), w.dv[r*s.DV:])
	}
}

// backwardColumn lets the key tile meet head h's query tiles, from the diagonal down to the last document that
// reaches back to it.
func (s *attnState) backwardColumn(w *cols, h int) {
	for qt := w.k0 / queryTile; qt < s.queryTiles(); qt++ {
		if s.begin((s.first+w.b)*s.T+qt*queryTile) >= w.k0+w.nk {
			return
		}
		s.backwardTile(w, h, qt)
	}
}

// backwardTile is one meeting: logits and dP, the row-wise part, then the products into dV, dK and dQ.
func (s *attnState) backwardTile(w *cols, h, qt int) {
	w.h, w.q0, w.row = h, qt*queryTile, (s.first+w.b)*s.T+qt*queryTile
	nq, nk := min(queryTile, s.T-w.q0), w.nk
	w.from, w.to = s.live(w.row, w.q0, nq, w.k0, nk)
	from, width := w.from, w.to-w.from
	q := s.queryPack(w.b, h, qt)
	stack := s.stacks(nq) && nk == keyTile // both maps' logits lie one behind the other too
	if stack {
		s.multiply(s.maps*nq, width, s.D, q.qa, w.kt[0], from, w.both[from:], nk, false, w.scratch)
	}
	for m := 0; m < s.maps && !stack; m++ {
		s.multiply(nq, width, s.D, s.left(&q, m), w.kt[min(m, s.keys-1)], from, w.p[m][from:], nk, false, w.scratch)
	}
	s.multiply(nq, width, s.DV, q.doa, w.vt, from, w.dp[from:], nk, false, w.scratch)
	for r := range nq {
		s.softmaxGrad(w, &q, r)
	}
	mix, ds := w.mix, w.p
	if s.maps == 1 {
		mix, ds[0] = w.p[0], w.dp
	}
	s.product(width, s.DV, nq, mix[from:], nk, true, q.dob, nq, 0, w.dv[from*s.DV:], s.DV, true, w.scratch)
	dq, ld := s.dqRows(w.b, w.kb, w.q0)
	first := w.k0 == s.firstKeys(w.kb, w.row)
	if stack {
		s.product(width, s.D, s.maps*nq, w.both[from:], nk, true, q.qb, s.maps*nq, 0, w.dk[0][from*s.D:], s.D, true, w.scratch)
	}
	for m := range s.maps {
		key := min(m, s.keys-1)
		if !stack {
			s.keyGrad(w, &q, m, nq, ds[m])
		}
		s.product(nq, s.D, width, ds[m][from:], nk, false, w.kn[key], nk, from, dq[s.queryCol(h, m):], ld, !first, w.scratch)
	}
}

// keyGrad adds map m's share of dK.
func (s *attnState) keyGrad(w *cols, q *queryPack, m, nq int, ds []float32) {
	qb, depth, row := s.right(q, m), nq, 0
	if s.stacks(nq) {
		qb, depth, row = q.qb, s.maps*nq, m*nq
	}
	dk := w.dk[min(m, s.keys-1)][w.from*s.D:]
	s.product(w.to-w.from, s.D, nq, ds[w.from:], w.nk, true, qb, depth, row, dk, s.D, true, w.scratch)
}

// softmaxGrad goes through row r of a meeting: P_m = exp(logit − lse), mix = P1 − λP2, dS1 = P1∘(dP − Δ1),
// dS2 = −λ·P2∘(dP − Δ2), with dS in place of P. With one map mix is P itself and dS replaces dP.
func (s *attnState) softmaxGrad(w *cols, q *queryPack, r int) {
	n := w.row + r
	lo, hi := s.window(n, w.q0+r, w.k0, w.nk)
	if lo >= hi {
		lo, hi = w.from, w.from
	}
	at, end, first, last := r*w.nk+lo, r*w.nk+hi, r*w.nk+w.from, r*w.nk+w.to
	lse := s.lse.x[n*s.lse.ld+w.h*s.maps:]
	p1, dp, f := w.p[0][at:end], w.dp[at:end], w.factors
	f.Scale, f.LSE[0], f.Delta[0], f.Alpha[0] = s.post, lse[0], q.delta[0][r], s.post
	if s.maps == 1 {
		simd.SoftmaxBackward(p1, dp, f)
		clearAround(w.dp, first, at, end, last)
	} else {
		lam := s.lambda(n, w.h)
		f.LSE[1], f.Delta[1], f.Alpha[1], f.Lam = lse[1], q.delta[1][r], -lam*s.post, -lam
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
