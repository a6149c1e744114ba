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
	if s.weight == nil {
		s.weight = grown(&s.keep.ones, s.DV)
		for i := range s.weight {
			s.weight[i] = 1
		}
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

// deltas are Δ of the rows of head h's query tile.
func (s *attnState) deltas(at slot, h, qt int) (d [2][]float32) {
	x := s.packed[s.queryPackAt(at, h, qt)+s.maps*s.rows:]
	for m := range s.maps {
		d[m] = x[m*s.rows : (m+1)*s.rows]
	}
	return d
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
	all := min(s.rows, s.T-qt*s.rows)
	buf := s.d.buf(worker, s.prepareSize(n, h1-h0))
	dense, near := cut(&buf, n*s.D), s.nearRows(&buf)
	do := simd.View{X: buf, Ld: (h1 - h0) * s.DV}
	if !s.norm.On {
		do = s.dout.at(row, h0*s.DV)
	}
	share := t / s.step(s.rows) * s.DV
	for h := h0; h < h1; h++ {
		clear(s.shares(b, h)[share:][:s.DV])
	}
	for r := range n {
		for h := h0; h < h1; h++ {
			near.read(s, row+r, h)
			x := near.dout
			if s.norm.On {
				x = do.X[r*do.Ld+(h-h0)*s.DV:][:s.DV]
				s.gradRaw(x, row+r, h, &near, s.shares(b, h)[share:][:s.DV])
			}
			s.rowSums(s.deltas(at, h, qt), in+r, row+r, h, x, &near)
		}
	}
	for h := h0; h < h1; h++ {
		p := s.queryPack(at, h, qt)
		for m := range s.maps {
			x := s.scaled(dense, n, s.D, s.q.at(row, s.queryCol(h, m)))
			s.packA(s.rowsOf(s.left(&p, m, all), s.D, in), n, s.D, x, false)
			s.packTurned(s.turned(&p, m, all), in, n, s.D, x, all)
		}
		x := do.From(0, (h-h0)*s.DV)
		s.packA(s.rowsOf(p.doa, s.DV, in), n, s.DV, x, false)
		s.packTurned(p.dot, in, n, s.DV, x, all)
		s.rowFactors(&p, in, n, row, h)
	}
}

// prepareSize is the number of floats that prepareRows works in.
func (s *attnState) prepareSize(n, heads int) int { return n*(s.D+heads*s.DV) + 3*s.DV }

// nearRow is a head's piece of a row of what comes from behind and what forward kept, in float32: as it lies, or in a buffer.
type nearRow struct {
	buf             [3][]float32
	dout, raw, out2 []float32
}

func (s *attnState) nearRows(buf *[]float32) (x nearRow) {
	for i := range x.buf {
		x.buf[i] = cut(buf, s.DV)
	}
	return x
}

func (x *nearRow) read(s *attnState, n, h int) {
	c0, c1 := h*s.DV, (h+1)*s.DV
	x.dout, x.raw = s.dout.read(n, c0, c1, x.buf[0]), s.raw.read(n, c0, c1, x.buf[1])
	if s.maps == 2 {
		x.out2 = s.out2.read(n, c0, c1, x.buf[2])
	}
}

// packTurned packs the transpose of rows row … row+n−1 of x [depth,cols] as a left-hand operand [cols,depth]; all of them with float32 factors.
func (s *attnState) packTurned(dst []float32, row, n, cols int, x simd.View, depth int) {
	if s.half {
		simd.PackPartBF16(halves(s.rowsAt(dst, row)), cols, n, x, true, depth)
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

// gradRaw is the head norm backward: with g = Scale·w·dout and x̂ = raw·rstd,
// do = rstd·(g − x̂·mean(g·x̂)) and dnorm += Scale·dout·x̂.
func (s *attnState) gradRaw(do []float32, n, h int, near *nearRow, dnorm []float32) {
	dout, raw, rstd := near.dout, near.raw, s.rstd.x[n*s.rstd.ld+h]
	alpha := rstd * float32(s.norm.Scale)
	mean := simd.Dot3(dout, s.weight, raw) * alpha / float32(s.DV)
	clear(do)
	simd.NormGrad(do, dout, s.weight, raw, alpha, -mean*rstd*rstd)
	simd.MulAxpy(dnorm, alpha, dout, raw)
}

// rowSums: Δ1 = dO·O1 with O1 = raw + λ·O2, Δ2 = dO·O2, dλ = −Δ2.
func (s *attnState) rowSums(delta [2][]float32, r, n, h int, do []float32, near *nearRow) {
	delta[0][r] = simd.Dot(do, near.raw)
	if s.maps == 2 {
		d2 := simd.Dot(do, near.out2)
		delta[0][r] += s.lambda(n, h) * d2
		delta[1][r] = d2
		s.dlam.x[n*s.dlam.ld+h] = -d2
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
