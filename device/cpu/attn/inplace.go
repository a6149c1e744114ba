package attn

import (
	"math"

	"antiphase/internal/simd"
)

// Attention on float32 factors whose left-hand operands are read where they lie (packer.inPlace). Queries and dO are
// rows of activations, probabilities and dS rows of a tile, which products read by rows or, for the sums over queries,
// by columns. Only right-hand operands are packed: K and V once for each key tile, Q and dO once for each query tile.
// So nothing is packed or transposed for a single pair of tiles.

// attendInPlace attends to columns from … to−1. Cells above the diagonal are skipped if the rows are of one head.
func (q *queries) attendInPlace(k0, nk, from, to int, x *kv) {
	width, diag := to-from, simd.NoDiag
	if q.heads == 1 {
		diag = q.q0 - k0 - from
	}
	w := &q.on.window
	w.ends(&q.shape, q.row, q.q0, q.count, k0, nk, from)
	w.repeatEnds(q.count, q.nq)
	for m := range q.maps {
		logits, keys := q.logits[m*q.nq*keyTile:], q.columnsAt(x.keys[q.keyHead(m)], q.D, from)
		simd.GemmPlainBelow(q.nq, width, q.D, q.left[m].X, q.left[m].Ld, keys, logits, keyTile, diag)
		w.hide(logits, q.nq, float32(math.Inf(-1)))
		s := &q.on.soft
		*s = simd.SoftTile{Rows: q.nq, Width: width, Hi: w.hi[:], X: logits, Scale: q.post * math.Log2E,
			Top: q.top[m*q.nq:], Sum: q.sum[m*q.nq:]}
		acc := q.acc[m*q.nq*q.ld:]
		if q.any {
			s.Acc, s.LdAcc, s.DV = acc, q.ld, q.DV
		}
		q.on.tile.Soften(s)
		simd.GemmPlain(q.nq, q.DV, width, logits, keyTile, q.rowsAt(x.values, from), nk, acc, q.ld, q.any,
			diag, q.on.scratch)
	}
}

// ends sets lo and hi of nq rows, which begin with row n, query t, relative to column from of the key tile at k0.
// masked means that some row begins later.
func (w *windows) ends(s *shape, n, t, nq, k0, nk, from int) {
	w.masked = false
	for r := range nq {
		lo, hi := s.window(n+r, t+r, k0, nk)
		if lo >= hi {
			lo, hi = from, from
		}
		w.lo[r], w.hi[r] = int32(lo-from), int32(hi-from)
		w.masked = w.masked || lo > from
	}
}

// repeatEnds gives rows count … n−1, those of further heads, the columns of the first count.
func (w *windows) repeatEnds(count, n int) {
	for r := count; r < n; r++ {
		w.lo[r], w.hi[r] = w.lo[r-count], w.hi[r-count]
	}
}

// hide sets the columns before the first of each row of a tile to x.
func (w *windows) hide(tile []float32, rows int, x float32) {
	for r := 0; r < rows && w.masked; r++ {
		row := tile[r*keyTile:][:w.lo[r]]
		for c := range row {
			row[c] = x
		}
	}
}

// rowsInPlace is prepare.rows for n queries of head h, a whole query tile.
func (p prepare) rowsInPlace(x *queryPack, s, row, n, h int, on *worker) {
	part := (row - (p.first+s)*p.T) / p.tall * p.DV
	do := p.gradRaw(x, 0, x.do, row, n, h, p.normSums(s, h)[part:][:p.DV], on)
	p.rowSums(x, 0, row, n, h)
	for m := range p.maps {
		p.packRows(p.queriesB(x, m, n), 0, n, p.D, p.Q.From(row, p.queryCol(h, m)), n)
	}
	p.packRows(x.doB, 0, n, p.DV, do, n)
	p.rowFactors(x, 0, n, row, h)
}

// queriesB is the right-hand operand of map m in a tile of nq queries.
func (r *backwardRoom) queriesB(p *queryPack, m, nq int) []float32 { return p.qB[m*r.sizeB(nq, r.D):] }

// gradInPlace is gradFull: logits and dP, then the softmax. mix and dS are rows of tiles.
func (c *column) gradInPlace() {
	for m := range c.maps {
		q, k := c.Q.From(c.row, c.queryCol(c.h, m)), c.columnsAt(c.kT[c.keyHead(m)], c.D, c.from)
		simd.GemmPlainBelow(c.nq, c.width, c.D, q.X, q.Ld, k, c.p[m], keyTile, c.diag())
	}
	do := c.gradOut()
	simd.GemmPlainBelow(c.nq, c.width, c.DV, do.X, do.Ld, c.columnsAt(c.vT, c.DV, c.from), c.dp, keyTile, c.diag())
	w, s := &c.on.window, &c.on.softBack
	w.ends(&c.shape, c.row, c.q0, c.nq, c.k0, c.nk, c.from)
	for m := range c.maps {
		w.hide(c.p[m], c.nq, float32(math.Inf(-1)))
	}
	w.hide(c.dp, c.nq, 0)
	*s = simd.SoftTileBack{Maps: c.maps, Rows: c.nq, Width: c.width, Hi: w.hi[:], P: c.p, DP: c.dp, Mix: c.mix,
		LSE: c.lse, Delta: c.delta, Lam: c.lam, Scale: c.post * math.Log2E}
	c.on.tile.SoftenBack(s)
}

// gradOut is dO of the tile's rows: what prepare made of it, or without a head norm the argument itself.
func (c *column) gradOut() simd.View {
	if c.norm.On {
		return simd.View{X: c.do, Ld: c.DV}
	}
	return c.grad.DOut.From(c.row, c.h*c.DV)
}

// sumInPlace is sumFull, with dK and dV not transposed.
func (c *column) sumInPlace() {
	mix, ds := c.mix, c.p
	if c.maps == 1 {
		mix, ds[0] = c.p[0], c.dp
	}
	simd.GemmTurnedLater(c.width, c.DV, c.nq, mix, keyTile, c.doB, c.dv[c.from*c.DV:], c.DV, c.diag())
	dq, first := c.partialQueries(c.at, c.band, c.h, c.qt), c.k0 == c.firstKeys()
	for m := range c.maps {
		key := c.keyHead(m)
		q := c.queriesB(&c.queryPack, m, c.nq)
		simd.GemmTurnedLater(c.width, c.D, c.nq, ds[m], keyTile, q, c.dk[key][c.from*c.D:], c.D, c.diag())
		k := c.rowsAt(c.k[key], c.from)
		simd.GemmPlain(c.nq, c.D, c.width, ds[m], keyTile, k, c.nk, dq[m*c.tall*c.D:], c.D, !first,
			c.diag(), c.on.scratch)
	}
}

// storeInPlace writes the key tile's dK and dV.
func (c *column) storeInPlace(row int) {
	for m := range c.keys {
		dk := c.grad.DK.From(row, c.keyCol(c.g, m))
		c.on.tile.ScaleRows(dk, c.dk[m], c.D, c.nk, c.D, c.posts, c.grad.DK.far())
	}
	c.on.tile.ScaleRows(c.grad.DV.From(row, c.g*c.DV), c.dv, c.DV, c.nk, c.DV, ones[:], c.grad.DV.far())
}
