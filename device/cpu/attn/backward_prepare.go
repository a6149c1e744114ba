package attn

import (
	"math"

	"antiphase/internal/simd"
)

// prepare is the row-wise part of the backward pass: through the head norm to dO, the gradient of raw, the row sums Δ,
// dλ and parts of the norm weight's gradient. It packs Q (times the scale) and dO as left-hand operands, plain and
// transposed, and K and V as right-hand operands.
type prepare struct{ *backward }

// Tile does the rows of key tile i of the chunk.
func (p prepare) Tile(i, worker int) {
	p.groups(i/p.keyTiles(), i%p.keyTiles(), 0, p.Groups, &p.workers[worker])
}

// groups does the rows of key tile kt of the chunk's sequence s for groups g0 … g1−1: their keys and values, then their
// queries and dO. Rows are read in the order of forward.pack.
func (p prepare) groups(s, kt, g0, g1 int, on *worker) {
	at, nk, k0 := p.area(s, g0, on), p.keysIn(kt), kt*keyTile
	for t := 0; t < nk; t += p.step(keyTile) {
		n, row := min(p.step(keyTile), nk-t), (p.first+s)*p.T+k0+t
		for g := g0; g < g1; g++ {
			x := p.keyPack(at, g, kt)
			for m := range p.keys {
				k := p.K.From(row, p.keyCol(g, m))
				p.packB(p.columnsAt(x.kT[m], p.D, t), p.D, n, k, true)
				p.packRows(x.k[m], t, n, p.D, p.scaled(on.buf(n*p.D), n, p.D, k), nk)
			}
		}
		for g := g0; g < g1; g++ {
			p.packB(p.columnsAt(p.keyPack(at, g, kt).vT, p.DV, t), p.DV, n, p.V.From(row, g*p.DV), true)
		}
	}
	h0, _ := p.headsOf(g0)
	h1, _ := p.headsOf(g1)
	for t := 0; t < nk; t += p.step(p.tall) {
		p.rows(s, k0+t, min(p.step(p.tall), nk-t), h0, h1, at, on)
	}
}

// prepareSize is the number of floats of rows' working memory.
func (b *backward) prepareSize(n int) int { return n * (b.D + b.DV) }

// rows does n queries that begin at t, all in one query tile, of heads h0 … h1−1.
func (p prepare) rows(s, t, n, h0, h1 int, at area, on *worker) {
	row, qt, in := (p.first+s)*p.T+t, t/p.tall, t%p.tall
	all, part := p.queriesIn(qt), t/p.step(p.tall)*p.DV
	buf := on.buf(p.prepareSize(n))
	dense := simd.Cut(&buf, n*p.D)
	for h := h0; h < h1; h++ {
		x := p.queryPack(at, h, qt)
		if p.inPlace {
			p.rowsInPlace(&x, s, row, n, h, on)
			continue
		}
		do := p.gradRaw(&x, in, buf, row, n, h, p.normSums(s, h)[part:][:p.DV], on)
		p.rowSums(&x, in, row, n, h)
		for m := range p.maps {
			q := p.scaled(dense, n, p.D, p.Q.From(row, p.queryCol(h, m)))
			p.packA(p.leftAt(p.left(&x, m, all), p.D, in), n, p.D, q)
			p.packTurned(p.turned(&x, m, all), in, n, p.D, q, all)
		}
		p.packA(p.leftAt(x.do, p.DV, in), n, p.DV, do)
		p.packTurned(x.doT, in, n, p.DV, do, all)
		p.rowFactors(&x, in, n, row, h)
	}
}

// gradRaw is dO, the gradient of raw, of n rows of head h, which begin at row in of their tile; and dO·raw and dO·O2 in
// place of Δ. With a head norm dO is in buf, in the dtype of activations, and dnorm gets a part of the norm weight's
// gradient.
func (p prepare) gradRaw(q *queryPack, in int, buf []float32, row, n, h int, dnorm []float32, on *worker) simd.View {
	clear(dnorm)
	c, x := h*p.DV, &on.norm
	*x = simd.NormBack{Rows: n, Cols: p.DV, DO: likeView(&p.grad.DOut.View, buf, p.DV),
		DOut: p.grad.DOut.From(row, c), Raw: p.Raw.From(row, c),
		Weight: p.weight, Scale: float32(p.norm.Scale), DNorm: dnorm}
	x.Delta[0] = q.delta[0][in:]
	if p.maps == 2 {
		x.Out2, x.Delta[1] = p.Out2.From(row, c), q.delta[1][in:]
	}
	if p.norm.On {
		x.Rstd, x.LdRstd = p.Rstd.From(row, h).X, p.Rstd.Ld
		on.tile.NormBack(x)
		return x.DO
	}
	on.tile.Dots(x.Delta[0], x.DOut, x.Raw, n, p.DV)
	if p.maps == 2 {
		on.tile.Dots(x.Delta[1], x.DOut, x.Out2, n, p.DV)
	}
	return x.DOut
}

// rowSums: Δ1 = dO·O1 with O1 = raw + λ·O2, Δ2 = dO·O2, dλ = −Δ2, for the n rows that gradRaw has done.
func (p prepare) rowSums(q *queryPack, in, row, n, h int) {
	for r := 0; r < n && p.maps == 2; r++ {
		d := q.delta[1][in+r]
		q.delta[0][in+r] += p.lambda(row+r, h) * d
		p.grad.DLam.X[(row+r)*p.grad.DLam.Ld+h] = -d
	}
}

// rowFactors copies lse and λ of n rows, which begin at row in of their tile; after the last row of a sequence it pads
// these and Δ with zeros.
func (p prepare) rowFactors(q *queryPack, in, n, row, h int) {
	unit := float32(1)
	if p.log2() {
		unit = math.Log2E
	}
	last := (row+n)%p.T == 0
	for m := range p.maps {
		for r := range n {
			q.lse[m][in+r] = unit * p.LSE.X[(row+r)*p.LSE.Ld+h*p.maps+m]
		}
		if last {
			clear(q.lse[m][in+n:])
			clear(q.delta[m][in+n:])
		}
	}
	for r := 0; r < n && p.maps == 2; r++ {
		q.lam[in+r] = -p.lambda(row+r, h)
	}
	if last {
		clear(q.lam[in+n:])
	}
}
