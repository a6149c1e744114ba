package cpu

import (
	"math"

	"antiphase/internal/simd"
)

// attnGrad is what the backward pass has on top of attnState.
type attnGrad struct {
	dout, dq, dk, dv, dlam mat
	dnorm                  []float32
}

// attnPrepare is the part of the backward pass that goes row by row: through the head norm to dO, the gradient of
// raw, the row sums Δ, dλ and each query tile's share of the norm weight's gradient. It leaves Q (times the scale)
// and dO packed as left-hand operands, as they lie and transposed.
type attnPrepare attnState

// queryPack is the packed operands of one query tile of one head.
type queryPack struct {
	qa, qt     []float32    // of all maps, scaled: [nq,D], and [D,nq]; see attnState.left and turned
	doa, dot   []float32    // dO: [nq,DV], and [DV,nq]
	lse, delta [2][]float32 // of each row; lse in the unit of the softmax
	lam        []float32    // −λ of each row
}

// grad fills in the gradients' places.
func (s *attnState) grad(dout, dq, dk, dv mat) {
	s.dout, s.dq, s.dk, s.dv = dout, dq, dk, dv
	if !s.raw.ok() {
		s.raw = s.out // without a norm raw is the output itself
	}
}

// queryPackSize is the number of floats of a queryPack.
func (s *attnState) queryPackSize() int {
	q := s.sizeA(s.rows, s.D) + s.sizeA(s.D, s.rows)
	o := s.sizeA(s.rows, s.DV) + s.sizeA(s.DV, s.rows)
	return s.maps*(q+2*s.rows) + o + s.rows
}

// slots are where packed operands and partial sums of dQ lie. A slot has room for all heads of a sequence of the chunk; or, when the slots are
// the workers' own, for the heads of the group that a worker is at, so that they never leave its cache.
type slots struct {
	n, heads, groups int
	size             int // floats of each
	own              bool
}

// slot is one of them, and the first group in it.
type slot struct{ i, group int }

// slotOf is where the operands of group g of the chunk's sequence b lie for a worker.
func (s *attnState) slotOf(b, g, worker int) slot {
	if s.slots.own {
		return slot{worker, g}
	}
	return slot{b, 0}
}

// slotSize is the number of floats of a slot: queryPacks, partial sums of dQ, keyPacks.
func (s *attnState) slotSize() int {
	return s.slots.heads*s.queryTiles()*s.queryFloats + s.partialAt(s.blocks()) + s.slots.groups*s.keyTiles()*s.keyPackSize()
}

// queryPackAt is where the queryPack of query tile qt of head h begins: with the factors of its rows.
func (s *attnState) queryPackAt(at slot, h, qt int) int {
	return at.i*s.slots.size + ((h-at.group*s.perGroup())*s.queryTiles()+qt)*s.queryFloats
}

func (s *attnState) queryPack(at slot, h, qt int) (p queryPack) {
	i := s.queryPackAt(at, h, qt)
	buf := s.packed[i : i+s.queryFloats]
	for m := range s.maps {
		p.lse[m] = cut(&buf, s.rows)
	}
	for m := range s.maps {
		p.delta[m] = cut(&buf, s.rows)
	}
	p.lam = cut(&buf, s.rows)
	p.qa, p.qt = cut(&buf, s.maps*s.sizeA(s.rows, s.D)), cut(&buf, s.maps*s.sizeA(s.D, s.rows))
	p.doa, p.dot = cut(&buf, s.sizeA(s.rows, s.DV)), buf
	return p
}

// shares are the parts of the norm weight's gradient, [·,DV] for every step rows of each head, behind the slots: Σ Scale·dout·raw·rstd.
func (s *attnState) shareCount() int { return (s.T + s.step(s.rows) - 1) / s.step(s.rows) }
func (s *attnState) shares(b, h int) []float32 {
	n := s.shareCount() * s.DV
	return s.packed[s.slots.n*s.slots.size+(b*s.Heads+h)*n:][:n]
}

// left and turned are the operands of map m in a tile of nq queries.
func (s *attnState) left(p *queryPack, m, nq int) []float32   { return p.qa[m*s.sizeA(nq, s.D):] }
func (s *attnState) turned(p *queryPack, m, nq int) []float32 { return p.qt[m*s.sizeA(s.D, nq):] }

// tile i is the rows of one key tile of one sequence.
func (t *attnPrepare) tile(i, worker int) {
	s := (*attnState)(t)
	s.prepare(i/s.keyTiles(), i%s.keyTiles(), 0, s.Groups, worker)
}

// prepare does the rows of key tile kt of the chunk's sequence b for groups g0 … g1−1: their keys and values as in attnPack, then their
// queries and dO.
func (s *attnState) prepare(b, kt, g0, g1, worker int) {
	k0, at := kt*keyTile, s.slotOf(b, g0, worker)
	end := min(s.T, k0+keyTile)
	for t := k0; t < end; t += s.step(keyTile) {
		n, row := min(s.step(keyTile), end-t), (s.first+b)*s.T+t
		for g := g0; g < g1; g++ {
			p := s.keyPack(at, g, kt)
			for m := range s.keys {
				k := s.k.at(row, s.keyCol(g, m))
				s.packB(s.columnsAt(p.kt[m], s.D, t-k0), s.D, n, k, true)
				s.packRows(p.kn[m], t-k0, n, s.D, s.scaled(s.d.buf(worker, n*s.D), n, s.D, k), end-k0)
			}
		}
		for g := g0; g < g1; g++ {
			s.packB(s.columnsAt(s.keyPack(at, g, kt).vt, s.DV, t-k0), s.DV, n, s.v.at(row, g*s.DV), true)
		}
	}
	for t := k0; t < end; t += s.step(s.rows) {
		s.prepareRows(b, t, min(s.step(s.rows), end-t), g0*s.perGroup(), g1*s.perGroup(), at, worker)
	}
}

// keyPack is the packed operands of one key tile of one group.
type keyPack struct {
	kt, kn [2][]float32 // per key head: Kᵀ [D,nk], K [nk,D] times the scale
	vt     []float32    // Vᵀ [DV,nk]
}

func (s *attnState) keyPackSize() int {
	return s.keys*(s.sizeB(s.D, keyTile)+s.sizeB(keyTile, s.D)) + s.sizeB(s.DV, keyTile)
}

// keyPack is that of key tile kt of group g, behind the queryPacks and partial sums of dQ.
func (s *attnState) keyPack(at slot, g, kt int) (p keyPack) {
	base := at.i*s.slots.size + s.slots.heads*s.queryTiles()*s.queryFloats + s.partialAt(s.blocks())
	buf := s.packed[base+((g-at.group)*s.keyTiles()+kt)*s.keyPackSize():][:s.keyPackSize()]
	for m := range s.keys {
		p.kt[m], p.kn[m] = cut(&buf, s.sizeB(s.D, keyTile)), cut(&buf, s.sizeB(keyTile, s.D))
	}
	p.vt = buf
	return p
}

// prepareRows does n queries from t on, all in one query tile, of heads h0 … h1−1.
func (s *attnState) prepareRows(b, t, n, h0, h1 int, at slot, worker int) {
	row, qt, in := (s.first+b)*s.T+t, t/s.rows, t%s.rows
	all, share := min(s.rows, s.T-qt*s.rows), t/s.step(s.rows)*s.DV
	buf := s.d.buf(worker, s.prepareSize(n))
	dense, on := cut(&buf, n*s.D), &s.d.workers[worker]
	for h := h0; h < h1; h++ {
		p := s.queryPack(at, h, qt)
		do := s.gradRaw(&p, in, buf, row, n, h, s.shares(b, h)[share:][:s.DV], on)
		s.rowSums(&p, in, row, n, h)
		for m := range s.maps {
			x := s.scaled(dense, n, s.D, s.q.at(row, s.queryCol(h, m)))
			s.packA(s.rowsOf(s.left(&p, m, all), s.D, in), n, s.D, x, false)
			s.packTurned(s.turned(&p, m, all), in, n, s.D, x, all)
		}
		s.packA(s.rowsOf(p.doa, s.DV, in), n, s.DV, do, false)
		s.packTurned(p.dot, in, n, s.DV, do, all)
		s.rowFactors(&p, in, n, row, h)
	}
}

// prepareSize is the number of floats that prepareRows works in.
func (s *attnState) prepareSize(n int) int { return n * (s.D + s.DV) }

// packTurned packs the transpose of rows row … row+n−1 of x [depth,cols] as a left-hand operand [cols,depth]; all of them with float32 factors.
func (s *attnState) packTurned(dst []float32, row, n, cols int, x simd.View, depth int) {
	if s.half {
		simd.PackPartBF16(simd.Halves(s.rowsAt(dst, row)), cols, n, x, true, depth)
		return
	}
	simd.PackA(dst, cols, n, x.X, x.Ld, true)
}

// rowFactors copies lse and λ of n rows from row on, which are those from at on of their tile; behind the last one it fills these and Δ
// up with zeros.
func (s *attnState) rowFactors(p *queryPack, at, n, row, h int) {
	unit := float32(1)
	if s.half {
		unit = math.Log2E
	}
	last := (row+n)%s.T == 0
	for m := range s.maps {
		for r := range n {
			p.lse[m][at+r] = unit * s.lse.x[(row+r)*s.lse.ld+h*s.maps+m]
		}
		if last {
			clear(p.lse[m][at+n:])
			clear(p.delta[m][at+n:])
		}
	}
	for r := 0; r < n && s.maps == 2; r++ {
		p.lam[at+r] = -s.lambda(row+r, h)
	}
	if last {
		clear(p.lam[at+n:])
	}
}

// gradRaw is dO, the gradient of raw, of n rows of head h, those from at on of their tile; and dO·raw and dO·O2 in place of Δ. Behind a head
// norm it is in buf, in the dtype of activations, and a share of the norm weight's gradient in dnorm.
func (s *attnState) gradRaw(p *queryPack, at int, buf []float32, row, n, h int, dnorm []float32, on *worker) simd.View {
	clear(dnorm)
	x := &on.norm
	*x = simd.NormBack{Rows: n, Cols: s.DV, DO: simd.View{X: buf, Ld: s.DV}, DOut: s.dout.at(row, h*s.DV), Raw: s.raw.at(row, h*s.DV), Weight: s.weight,
		Scale: float32(s.norm.Scale), DNorm: dnorm}
	if s.dout.h != nil {
		x.DO = simd.View{H: simd.Halves(buf), Ld: s.DV}
	}
	x.Delta[0] = p.delta[0][at:]
	if s.maps == 2 {
		x.Out2, x.Delta[1] = s.out2.at(row, h*s.DV), p.delta[1][at:]
	}
	if s.norm.On {
		x.Rstd, x.LdRstd = s.rstd.from(row, h), s.rstd.ld
		on.tile.NormBack(x)
		return x.DO
	}
	on.tile.Dots(x.Delta[0], x.DOut, x.Raw, n, s.DV)
	if s.maps == 2 {
		on.tile.Dots(x.Delta[1], x.DOut, x.Out2, n, s.DV)
	}
	return x.DOut
}

// rowSums: Δ1 = dO·O1 with O1 = raw + λ·O2, Δ2 = dO·O2, dλ = −Δ2, for n rows from at on of their tile, behind gradRaw.
func (s *attnState) rowSums(p *queryPack, at, row, n, h int) {
	for r := 0; r < n && s.maps == 2; r++ {
		d := p.delta[1][at+r]
		p.delta[0][at+r] += s.lambda(row+r, h) * d
		s.dlam.x[(row+r)*s.dlam.ld+h] = -d
	}
}

// addNorm adds the chunk's shares of the norm weight's gradient to the total, in the order of rows.
func (s *attnState) addNorm() {
	if s.dnorm == nil {
		return
	}
	total := s.keep.dnorm
	for b := range s.seqs {
		for h := range s.Heads {
			for i, x := range s.shares(b, h) {
				total[i%s.DV] += float64(x)
			}
		}
	}
}
