package cpu

import "antiphase/internal/simd"

// attnGrad is what the backward pass has on top of attnState.
type attnGrad struct {
	dout, dq, dk, dv, dlam mat
	dnorm                  []float32
}

// attnPrepare is the part of the backward pass that goes row by row: through the head norm to dO, the gradient of
// raw, the row sums Δ, dλ and each query tile's share of the norm weight's gradient. It leaves Q (times the scale)
// and dO packed both as left-hand and as right-hand operands.
type attnPrepare attnState

// queryPack is the packed operands of one query tile of one head.
type queryPack struct {
	qa, qb   []float32    // of all maps, scaled: left [nq,D], right [nq,D]; see attnState.left and right
	doa, dob []float32    // dO: left [nq,DV], right [nq,DV]
	delta    [2][]float32 // Δ of each row
	dnorm    []float32    // [DV] the tile's Σ Scale·dout·raw·rstd
}

// grad fills in the gradients' places.
func (s *attnState) grad(dout, dq, dk, dv mat) {
	s.dout, s.dq, s.dk, s.dv = dout, dq, dk, dv
	if s.raw.x == nil {
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
	q := s.sizeA(queryTile, s.D) + s.sizeB(queryTile, s.D)
	o := s.sizeA(queryTile, s.DV) + s.sizeB(queryTile, s.DV)
	return s.maps*(q+queryTile) + o + s.DV
}

// queryPack is that of query tile qt of head h of the chunk's sequence b.
func (s *attnState) queryPack(b, h, qt int) (p queryPack) {
	size := s.queryPackSize()
	at := ((b*s.Heads+h)*s.queryTiles() + qt) * size
	buf := s.packed[at : at+size]
	p.qa, p.qb = cut(&buf, s.maps*s.sizeA(queryTile, s.D)), cut(&buf, s.maps*s.sizeB(queryTile, s.D))
	for m := range s.maps {
		p.delta[m] = cut(&buf, queryTile)
	}
	p.doa = cut(&buf, s.sizeA(queryTile, s.DV))
	p.dob = cut(&buf, s.sizeB(queryTile, s.DV))
	p.dnorm = cut(&buf, s.DV)
	return p
}

// left and right are the operands of map m; the right ones of a tile that stacks them are one, of all maps.
func (s *attnState) left(p *queryPack, m int) []float32 { return p.qa[m*s.sizeA(queryTile, s.D):] }
func (s *attnState) right(p *queryPack, m int) []float32 {
	return p.qb[m*s.sizeB(queryTile, s.D):]
}

// tile i is one query tile of one head of one sequence.
func (t *attnPrepare) tile(i, worker int) {
	s := (*attnState)(t)
	tiles := s.queryTiles()
	qt, bh := i%tiles, i/tiles
	b, h := bh/s.Heads, bh%s.Heads
	nq, row := min(queryTile, s.T-qt*queryTile), (s.first+b)*s.T+qt*queryTile
	p := s.queryPack(b, h, qt)
	buf := s.d.buf(worker, nq*(s.D+s.DV))
	q, do := cut(&buf, nq*s.D), cut(&buf, nq*s.DV)
	for m := range s.maps {
		x, ld := s.scaled(q, nq, s.D, s.q.from(row, s.queryCol(h, m)), s.q.ld)
		s.packA(s.left(&p, m), nq, s.D, x, ld, false)
		if s.stacks(nq) {
			simd.PackBBF16(halves(p.qb)[m*nq*simd.PanelBF16:], nq, s.D, x, ld, false, s.maps*nq)
		} else {
			s.packB(s.right(&p, m), nq, s.D, x, ld, false)
		}
	}
	clear(p.dnorm)
	for r := range nq {
		x := do[r*s.DV : (r+1)*s.DV]
		s.gradRaw(x, row+r, h, p.dnorm)
		s.rowSums(&p, r, row+r, h, x)
	}
	s.packA(p.doa, nq, s.DV, do, s.DV, false)
	s.packB(p.dob, nq, s.DV, do, s.DV, false)
}

// gradRaw is the head norm backward: with g = Scale·w·dout and x̂ = raw·rstd,
// do = rstd·(g − x̂·mean(g·x̂)) and dnorm += Scale·dout·x̂.
func (s *attnState) gradRaw(do []float32, n, h int, dnorm []float32) {
	dout := s.dout.piece(n, h*s.DV, (h+1)*s.DV)
	if !s.norm.On {
		copy(do, dout)
		return
	}
	raw, rstd := s.raw.piece(n, h*s.DV, (h+1)*s.DV), s.rstd.x[n*s.rstd.ld+h]
	alpha := rstd * float32(s.norm.Scale)
	mean := simd.Dot3(dout, s.weight, raw) * alpha / float32(s.DV)
	clear(do)
	simd.NormGrad(do, dout, s.weight, raw, alpha, -mean*rstd*rstd)
	simd.MulAxpy(dnorm, alpha, dout, raw)
}

// rowSums: Δ1 = dO·O1 with O1 = raw + λ·O2, Δ2 = dO·O2, dλ = −Δ2.
func (s *attnState) rowSums(p *queryPack, r, n, h int, do []float32) {
	p.delta[0][r] = simd.Dot(do, s.raw.piece(n, h*s.DV, (h+1)*s.DV))
	if s.maps == 2 {
		d2 := simd.Dot(do, s.out2.piece(n, h*s.DV, (h+1)*s.DV))
		p.delta[0][r] += s.lambda(n, h) * d2
		p.delta[1][r] = d2
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
			for qt := range s.queryTiles() {
				for i, x := range s.queryPack(b, h, qt).dnorm {
					total[i] += float64(x)
				}
			}
		}
	}
}
