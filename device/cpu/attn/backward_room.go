package attn

import "antiphase/internal/simd"

// backwardRoom is the memory of the backward pass for packed operands and partial sums. An area holds the queryPacks of
// all heads, the partial sums of dQ, and the keyPacks of all groups; the parts of the norm weight's gradient come after
// the areas.
type backwardRoom struct {
	op
	chunk
	areaHeads  int
	packFloats int // of a queryPack
}

const (
	// maxBands bounds the partial sums of dQ: at most (maxBands+1)/2 times dQ.
	maxBands = 8
	// leastBand is the number of key tiles below which a band is not worth a partial sum: heads and sequences provide
	// enough tasks.
	leastBand = 4
)

// bandKeys is the number of keys in a band, a multiple of keyTile. It depends on T alone, because the bits depend on
// it.
func (r *backwardRoom) bandKeys() int { return max(leastBand, ceil(r.keyTiles(), maxBands)) * keyTile }
func (r *backwardRoom) bands() int    { return ceil(r.T, r.bandKeys()) }

// layout sets the size of an area with room for this many groups.
func (r *backwardRoom) layout(groups int) {
	r.areaGroups, r.areaHeads, r.packFloats = groups, groups*r.perGroup(), r.queryPackSize()
	r.areaSize = r.keyPacksAt() + groups*r.keyTiles()*r.keyPackSize()
}

// queryPack is the packed operands of one query tile of one head.
type queryPack struct {
	lse, delta [2][]float32 // of each row; lse in the unit of the softmax
	lam        []float32    // −λ of each row
	q, qT      []float32    // of all maps, scaled: [nq,D], and transposed [D,nq]; see left and turned
	do, doT    []float32    // dO [nq,DV], and transposed [DV,nq]
	qB, doB    []float32    // instead of q, qT, doT if left-hand operands are not packed: right-hand [nq,D], [nq,DV]
}

func (r *backwardRoom) queryPackSize() int {
	q := r.sizeA(r.tall, r.D) + r.sizeA(r.D, r.tall)
	o := r.sizeA(r.tall, r.DV) + r.sizeA(r.DV, r.tall)
	if r.inPlace {
		q, o = r.sizeB(r.tall, r.D), r.tall*r.DV+r.sizeB(r.tall, r.DV)
	}
	return r.maps*(q+2*r.tall) + o + r.tall
}

// queryPack returns that of query tile qt of head h.
func (r *backwardRoom) queryPack(at area, h, qt int) (p queryPack) {
	i := at.i*r.areaSize + (r.headIn(at, h)*r.queryTiles()+qt)*r.packFloats
	buf := r.packed[i : i+r.packFloats]
	for m := range r.maps {
		p.lse[m] = simd.Cut(&buf, r.tall)
	}
	for m := range r.maps {
		p.delta[m] = simd.Cut(&buf, r.tall)
	}
	p.lam = simd.Cut(&buf, r.tall)
	if r.inPlace {
		p.qB, p.do, p.doB = simd.Cut(&buf, r.maps*r.sizeB(r.tall, r.D)), simd.Cut(&buf, r.tall*r.DV), buf
		return p
	}
	p.q, p.qT = simd.Cut(&buf, r.maps*r.sizeA(r.tall, r.D)), simd.Cut(&buf, r.maps*r.sizeA(r.D, r.tall))
	p.do, p.doT = simd.Cut(&buf, r.sizeA(r.tall, r.DV)), buf
	return p
}

// headIn is the index of head h in an area.
func (r *backwardRoom) headIn(at area, h int) int { return h - at.group*r.perGroup() }

// left and turned are the operands of map m in a tile of nq queries.
func (r *backwardRoom) left(p *queryPack, m, nq int) []float32   { return p.q[m*r.sizeA(nq, r.D):] }
func (r *backwardRoom) turned(p *queryPack, m, nq int) []float32 { return p.qT[m*r.sizeA(r.D, nq):] }

// partialSize is the number of floats of a query tile's partial sum of dQ: [tall, whole(D)] for each map.
func (r *backwardRoom) partialSize() int { return r.maps * r.tall * r.whole(r.D) }

// partialsAt is the offset of a band's partial sums of dQ in an area: they begin with the query tile on the diagonal.
func (r *backwardRoom) partialsAt(band int) int {
	tiles := 0
	for i := range band {
		tiles += r.queryTiles() - i*r.bandKeys()/r.tall
	}
	return r.areaHeads * (r.queryTiles()*r.packFloats + tiles*r.partialSize())
}

// partialQueries is a band's partial sum of dQ for query tile qt of head h.
func (r *backwardRoom) partialQueries(at area, band, h, qt int) []float32 {
	first := band * r.bandKeys() / r.tall
	tile := r.headIn(at, h)*(r.queryTiles()-first) + qt - first
	return r.packed[at.i*r.areaSize+r.partialsAt(band)+tile*r.partialSize():][:r.partialSize()]
}

// keyPack is the packed operands of one key tile of one group.
type keyPack struct {
	k, kT [2][]float32 // per key head: K [nk,D] times the scale, Kᵀ [D,nk]
	vT    []float32    // Vᵀ [DV,nk]
}

func (r *backwardRoom) keyPackSize() int {
	return r.keys*(r.sizeB(r.D, keyTile)+r.sizeB(keyTile, r.D)) + r.sizeB(r.DV, keyTile)
}

// keyPacksAt is the offset of the keyPacks in an area.
func (r *backwardRoom) keyPacksAt() int { return r.partialsAt(r.bands()) }

// keyPack returns that of key tile kt of group g.
func (r *backwardRoom) keyPack(at area, g, kt int) (p keyPack) {
	tile := (g-at.group)*r.keyTiles() + kt
	buf := r.packed[at.i*r.areaSize+r.keyPacksAt()+tile*r.keyPackSize():][:r.keyPackSize()]
	for m := range r.keys {
		p.kT[m], p.k[m] = simd.Cut(&buf, r.sizeB(r.D, keyTile)), simd.Cut(&buf, r.sizeB(keyTile, r.D))
	}
	p.vT = buf
	return p
}

// normSize is the number of floats of a sequence's parts of the norm weight's gradient, normSums those of one head of
// the chunk's sequence s: [·,DV], Σ Scale·dout·raw·rstd for every step rows.
func (r *backwardRoom) normSize() int { return r.Heads * ceil(r.T, r.step(r.tall)) * r.DV }
func (r *backwardRoom) normSums(s, h int) []float32 {
	n := r.normSize() / r.Heads
	return r.packed[r.areas*r.areaSize+(s*r.Heads+h)*n:][:n]
}
