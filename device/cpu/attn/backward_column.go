package attn

import (
	"math"

	"antiphase/internal/simd"
)

// column is one worker's key tile with its dK and dV, accumulated transposed, so that P and dS are right-hand operands
// without packing; and the query tile that it is currently combined with.
type column struct {
	*backward
	on                   *worker
	at                   area
	seq, g, band, k0, nk int
	keyPack
	dk [2][]float32 // [whole(D),keyTile] per key head; not transposed if left-hand operands are in place
	dv []float32    // [whole(DV),keyTile]

	h, qt, q0, row int // the query tile, its first query that sees these keys, and that query's row in the batch
	skip, all      int // queries before it, and in the whole tile
	nq, np         int // rows in use, whole panels
	from, width    int // columns that any row attends to
	queryPack
	p        [2][]float32 // float32 factors: [nq,keyTile] per map: logits, P, then dS
	dp, mix  []float32    // float32 factors: [nq,keyTile] dP; P1 − λP2
	mixB     []float32    // packed mix [nq,width]
	dsA, dsB [2][]float32 // per map dS: left-hand, packed with bfloat16 factors; right-hand, packed [nq,width]
}

// cells is the number of floats of a tile of logits of float32 factors; those of bfloat16 factors never leave the
// kernel.
func (b *backward) cells() int {
	if b.half {
		return 0
	}
	return b.tall * keyTile
}

// leftSize is the number of floats of a packed left-hand dS; float32 operands are read in place.
func (b *backward) leftSize() int {
	if b.half {
		return b.sizeA(b.tall, keyTile)
	}
	return 0
}

// columnSize is the number of floats of a column's working memory.
func (b *backward) columnSize() int {
	sums := (b.keys*b.whole(b.D) + b.whole(b.DV)) * keyTile
	dsA, dsB := b.leftSize(), b.sizeB(b.tall, keyTile)
	return b.maps*(b.cells()+dsA+dsB) + 2*b.cells() + dsB + sums
}

// open divides the worker's memory into the column's parts.
func (c *column) open() {
	dsA, dsB, cells := c.leftSize(), c.sizeB(c.tall, keyTile), c.cells()
	buf := c.on.buf(c.columnSize())
	for m := range c.keys {
		c.dk[m] = simd.Cut(&buf, c.whole(c.D)*keyTile)
	}
	for m := range c.maps {
		c.p[m], c.dsA[m], c.dsB[m] = simd.Cut(&buf, cells), simd.Cut(&buf, dsA), simd.Cut(&buf, dsB)
	}
	c.dp, c.mix = simd.Cut(&buf, cells), simd.Cut(&buf, cells)
	c.mixB, c.dv = simd.Cut(&buf, dsB), simd.Cut(&buf, c.whole(c.DV)*keyTile)
}

// rowOf is query t's row in the batch.
func (c *column) rowOf(t int) int { return (c.first+c.seq)*c.T + t }

// clearUnseen zeroes the band's partial sum of dQ where a query tile sees none of its keys, which end at end.
func (c *column) clearUnseen(end int) {
	for qt := c.band * c.bandKeys() / c.tall; qt < c.queryTiles(); qt++ {
		if c.begin(c.rowOf(qt*c.tall)) < end {
			continue
		}
		for h, last := c.headsOf(c.g); h < last; h++ {
			clear(c.partialQueries(c.at, c.band, h, qt))
		}
	}
}

// run does the key tile at k0: each head's query tiles from the diagonal down to the last document that reaches back to
// it.
func (c *column) run() {
	kt := c.k0 / keyTile
	c.nk = c.keysIn(kt)
	c.keyPack = c.backward.keyPack(c.at, c.g, kt)
	for m := range c.keys {
		clear(c.dk[m])
	}
	clear(c.dv)
	for h, end := c.headsOf(c.g); h < end; h++ {
		for qt := c.k0 / c.tall; qt < c.queryTiles() && c.begin(c.rowOf(qt*c.tall)) < c.k0+c.nk; qt++ {
			c.h, c.qt = h, qt
			c.tile()
		}
	}
	c.store()
}

// store writes the key tile's dK and dV.
func (c *column) store() {
	row := c.rowOf(c.k0)
	if c.inPlace {
		c.storeInPlace(row)
		return
	}
	for m := range c.keys {
		c.on.tile.TurnRows(c.grad.DK.From(row, c.keyCol(c.g, m)), c.dk[m], keyTile, c.nk, c.D, c.posts, c.grad.DK.far())
	}
	c.on.tile.TurnRows(c.grad.DV.From(row, c.g*c.DV), c.dv, keyTile, c.nk, c.DV, ones[:], c.grad.DV.far())
}

// tile combines the key tile with query tile qt of head h: logits and dP, the softmax, then the products into dV, dK
// and dQ.
func (c *column) tile() {
	c.aim()
	switch {
	case c.half:
		c.gradHalf()
		c.sumHalf()
	case c.inPlace:
		c.gradInPlace()
		c.sumInPlace()
	default:
		c.gradFull()
		c.sumFull()
	}
}

// sumHalf adds the products into dV, dK and dQ with bfloat16 factors.
func (c *column) sumHalf() {
	late, long := simd.Full, simd.Full
	if c.q0-c.k0 == c.from { // on the diagonal: queries do not see later keys
		late, long = simd.LaterColumns, simd.LongerRows
	}
	mix, doT := operand{c.mixB, c.nq}, operand{c.rowsAt(c.doT, c.skip), c.all}
	c.product(c.DV, c.width, c.nq, doT, mix, c.dv[c.from:], keyTile, true, late, c.on)
	dq, d := c.partialQueries(c.at, c.band, c.h, c.qt), c.whole(c.D)
	first := c.k0 == c.firstKeys()
	for m := range c.maps {
		key := c.keyHead(m)
		turned := operand{c.rowsAt(c.turned(&c.queryPack, m, c.all), c.skip), c.all}
		c.product(c.D, c.width, c.nq, turned, operand{c.dsB[m], c.nq}, c.dk[key][c.from:], keyTile, true, late, c.on)
		k := operand{c.rowsAt(c.k[key], c.from), c.nk}
		c.product(c.nq, c.D, c.width, operand{c.dsA[m], c.width}, k, dq[(m*c.tall+c.skip)*d:], d, !first, long, c.on)
	}
}

// diag is the column of row 0 that is on the diagonal: for row i it is column i + diag.
func (c *column) diag() int { return c.q0 - c.k0 - c.from }

// sumFull is sumHalf with float32 factors, whose query tiles divide key tiles: all rows of a tile see its first key or
// none does.
func (c *column) sumFull() {
	simd.GemmLater(c.DV, c.width, c.nq, c.doT, c.mixB, c.nq, c.dv[c.from:], keyTile, c.diag())
	dq, first := c.partialQueries(c.at, c.band, c.h, c.qt), c.k0 == c.firstKeys()
	for m := range c.maps {
		key := c.keyHead(m)
		turned := c.turned(&c.queryPack, m, c.nq)
		simd.GemmLater(c.D, c.width, c.nq, turned, c.dsB[m], c.nq, c.dk[key][c.from:], keyTile, c.diag())
		k := c.rowsAt(c.k[key], c.from)
		simd.GemmPlain(c.nq, c.D, c.width, c.dsA[m], keyTile, k, c.nk, dq[m*c.tall*c.D:], c.D, !first,
			c.diag(), c.on.scratch)
	}
}

// aim finds the rows and columns that query tile qt and the key tile have in common.
func (c *column) aim() {
	c.skip = max(0, c.k0-c.qt*c.tall)
	c.q0 = c.qt*c.tall + c.skip
	c.row = c.rowOf(c.q0)
	c.all = c.queriesIn(c.qt)
	c.nq = c.all - c.skip
	c.np = c.whole(c.nq)
	from, to := c.live(c.row, c.q0, c.nq, c.k0, c.nk, c.columns())
	c.from, c.width = from, to-from
	c.queryPack = c.backward.queryPack(c.at, c.h, c.qt)
}

// firstKeys is the first key tile of the band that the query tile sees: there its dQ begins.
func (c *column) firstKeys() int {
	return max(c.band*c.bandKeys(), c.begin(c.rowOf(c.qt*c.tall))/keyTile*keyTile)
}

// gradHalf computes mix and dS from Q, K, V and dO with bfloat16 factors: one kernel does it all.
func (c *column) gradHalf() {
	g, w, width := &c.on.grad, &c.on.window, c.whole(c.width)
	w.find(&c.shape, c.row, c.q0, c.nq, c.np, c.k0, c.nk, c.from, width)
	*g = simd.AttnGrad{Maps: c.maps, Rows: c.np, Cols: width, D: c.D, DV: c.DV,
		DO: simd.Halves(c.leftAt(c.do, c.DV, c.skip)), V: simd.Halves(c.columnsAt(c.vT, c.DV, c.from)),
		Lo: w.lo[:], Hi: w.hi[:], Live: w.live[:], Scale: c.post * math.Log2E, Lam: c.lam[c.skip:],
		Mix: simd.Halves(c.mixB), StridePairs: simd.SizeBF16(simd.PanelBF16, c.np)}
	for m := range c.maps {
		g.Q[m] = simd.Halves(c.leftAt(c.left(&c.queryPack, m, c.all), c.D, c.skip))
		g.K[m] = simd.Halves(c.columnsAt(c.kT[c.keyHead(m)], c.D, c.from))
		g.LSE[m], g.Delta[m] = c.lse[m][c.skip:], c.delta[m][c.skip:]
		g.Lines[m], g.Pairs[m] = simd.Halves(c.dsA[m]), simd.Halves(c.dsB[m])
	}
	c.on.tile.Grad(g, c.on.scratch)
}

// gradFull is the same with float32 factors, row by row: P_m = exp(logit − lse), mix = P1 − λP2, dS1 = P1∘(dP − Δ1),
// dS2 = −λ·P2∘(dP − Δ2), with dS in place of P. With one map mix is P itself and dS replaces dP.
func (c *column) gradFull() {
	for m := range c.maps {
		k := c.columnsAt(c.kT[c.keyHead(m)], c.D, c.from)
		simd.GemmBelow(c.nq, c.width, c.D, c.left(&c.queryPack, m, c.nq), k, c.p[m], keyTile, c.diag())
	}
	simd.GemmBelow(c.nq, c.width, c.DV, c.do, c.columnsAt(c.vT, c.DV, c.from), c.dp, keyTile, c.diag())
	for r := range c.nq {
		c.softmaxGrad(r)
	}
	mix := c.mix
	c.dsA = c.p
	if c.maps == 1 {
		mix, c.dsA[0] = c.p[0], c.dp
	}
	simd.PackB(c.mixB, c.nq, c.width, mix, keyTile, false)
	for m := range c.maps {
		simd.PackB(c.dsB[m], c.nq, c.width, c.dsA[m], keyTile, false)
	}
}

// softmaxGrad does row r of gradFull.
func (c *column) softmaxGrad(r int) {
	lo, hi := c.window(c.row+r, c.q0+r, c.k0, c.nk)
	lo, hi = lo-c.from, hi-c.from
	if lo >= hi {
		lo, hi = 0, 0
	}
	first := r * keyTile
	at, end, last := first+lo, first+hi, first+c.width
	p1, dp, f := c.p[0][at:end], c.dp[at:end], &c.on.softmax
	f.Scale, f.LSE[0], f.Delta[0], f.Alpha[0] = c.post, c.lse[0][r], c.delta[0][r], c.post
	if c.maps == 1 {
		simd.SoftmaxBackward(p1, dp, f)
		clearAround(c.dp, first, at, end, last)
	} else {
		lam := c.lam[r]
		f.LSE[1], f.Delta[1], f.Alpha[1], f.Lam = c.lse[1][r], c.delta[1][r], lam*c.post, lam
		simd.SoftmaxBackward2(p1, c.p[1][at:end], c.mix[at:end], dp, f)
		clearAround(c.mix, first, at, end, last)
		clearAround(c.p[1], first, at, end, last)
	}
	clearAround(c.p[0], first, at, end, last)
}

// clearAround zeroes x[from:to] except x[lo:hi].
func clearAround(x []float32, from, lo, hi, to int) {
	clear(x[from:lo])
	clear(x[hi:to])
}
