package attn

import "antiphase/internal/simd"

// backward computes dQ, dK and dV: the logits are recomputed, the gradient of the probabilities computed once for both
// maps. Queries and their gradients are packed first (prepare). Then a task is one band of keys of one group, which
// owns its rows of dK and dV (column); its share of dQ goes to its own partial sum. These are added in the order of
// bands. So no two workers write to the same memory and no sum depends on timing.
//
// Multiply-adds per cell, in units of D with DV = 2D: logits 2, dP 2, dV 2, dQ 2, dK 2 (one map with DV = D: 1 each).
type backward struct {
	backwardRoom
	grad Grads
}

// run runs the whole op.
func (b *backward) run() {
	if b.B*b.T == 0 {
		return
	}
	if !b.Raw.ok() {
		b.Raw = b.Out // without a norm raw is the output itself
	}
	b.dnorm = append(b.dnorm[:0], make([]float64, b.DV)...)
	if b.half { // logits stay in L1 for any size, and long sums are better
		b.tall = min(queryTileGrad, ceil(b.T, queryTile)*queryTile)
	}
	b.posts = simd.Grow(&b.posts, max(b.tall, keyTile))
	for i := range b.posts {
		b.posts[i] = b.post
	}
	b.reserve(max(b.columnSize(), b.prepareSize(b.step(b.tall)), b.step(keyTile)*b.D), 0)
	if b.bands() == 1 && b.manyGroups() {
		b.layout(1)
		b.ownChunk(&b.chunk, b.B*b.normSize())
		b.pool.Run(b.B*b.Groups, backwardBand{b})
		b.addNorm()
	} else {
		b.layout(b.Groups)
		b.eachChunk(&b.chunk, b.areaSize+b.normSize(), func() {
			b.pool.Run(b.seqs*b.keyTiles(), prepare{b})
			b.addNorm()
			b.pool.Run(b.seqs*b.Groups*b.bands(), backwardBand{b})
			if b.bands() > 1 {
				b.pool.Run(b.seqs*b.queryTiles(), backwardSum{b})
			}
		})
	}
	for i := range b.grad.DNorm {
		b.grad.DNorm[i] += float32(b.dnorm[i])
	}
}

// addNorm adds the chunk's parts of the norm weight's gradient to the total, in the order of rows.
func (b *backward) addNorm() {
	if b.grad.DNorm == nil {
		return
	}
	for s := range b.seqs {
		for h := range b.Heads {
			for i, x := range b.normSums(s, h) {
				b.dnorm[i%b.DV] += float64(x)
			}
		}
	}
}

// backwardBand is one band of keys of one group.
type backwardBand struct{ *backward }

// Tile does band i of the chunk: the first of a group, which is the longest, comes first.
func (b backwardBand) Tile(i, worker int) {
	n, on := b.bands(), &b.workers[worker]
	band, g, s := i%n, i/n%b.Groups, i/n/b.Groups
	if b.own {
		b.fetchGroup(i+1, on, &b.grad.DOut, &b.Raw, &b.Out2)
		for kt := range b.keyTiles() {
			prepare(b).groups(s, kt, g, g+1, on)
		}
	}
	c := column{backward: b.backward, at: b.area(s, g, on), seq: s, g: g, band: band, on: on}
	end := min(b.T, (band+1)*b.bandKeys())
	c.clearUnseen(end)
	c.open()
	for c.k0 = band * b.bandKeys(); c.k0 < end; c.k0 += keyTile {
		c.run()
	}
	for h, last := b.headsOf(g); h < last && n == 1; h++ {
		for qt := range b.queryTiles() {
			b.storeQueries(c.at, s, h, qt, on)
		}
	}
}

// backwardSum writes dQ if there are several bands.
type backwardSum struct{ *backward }

// Tile does query tile i of the chunk, of all heads of one sequence.
func (b backwardSum) Tile(i, worker int) {
	s, qt := i/b.queryTiles(), i%b.queryTiles()
	for h := range b.Heads {
		b.storeQueries(area{i: s}, s, h, qt, &b.workers[worker])
	}
}

// storeQueries adds up the partial sums of a query tile and writes its dQ.
func (b *backward) storeQueries(at area, seq, h, qt int, on *worker) {
	q0, d := qt*b.tall, b.whole(b.D)
	nq, total := b.queriesIn(qt), b.partialQueries(at, 0, h, qt)
	for m := range b.maps {
		sum := total[m*b.tall*d:][:nq*d]
		for band := 1; band*b.bandKeys() <= q0; band++ {
			simd.Add(sum, sum, b.partialQueries(at, band, h, qt)[m*b.tall*d:])
		}
		dq := b.grad.DQ.From((b.first+seq)*b.T+q0, b.queryCol(h, m))
		on.tile.ScaleRows(dq, sum, d, nq, b.D, b.posts, b.grad.DQ.far())
	}
}
