package attn

import (
	"math"

	"antiphase/internal/simd"
)

// queries is one worker's query tile and its online softmax: count consecutive queries of each of some heads of a
// group, one head after the other. Vectors of the sums go map by map, np of each.
//
// Per cell and map it costs D multiply-adds for the logit and DV for the value; both maps' probabilities, stacked,
// are multiplied with the packed values in one product, so V is read once.
type queries struct {
	*op
	on       *worker
	h, heads int // first head, heads
	row, q0  int // the first query in the batch and in its sequence
	count    int
	nq, np   int          // rows: heads·count, and whole panels
	packed   []float32    // of each map [nq,D], times the scale
	left     [2]simd.View // the same if it is not packed
	logits   []float32    // float32 factors: [maps·np, keyTile] logits, then probabilities
	sums
	any bool // acc holds something
}

// open takes room for the tile from buf, queriesSize floats, packs its queries using dense, and begins the softmax.
func (q *queries) open(buf *[]float32, dense []float32) {
	q.nq = q.heads * q.count
	q.np = q.whole(q.nq)
	n := q.maps * q.np
	q.packed = simd.Cut(buf, q.maps*q.sizeA(q.np, q.D))
	q.sums = q.cutSums(buf, n)
	if !q.half {
		q.logits = simd.Cut(buf, n*keyTile)
	}
	for m := range q.maps {
		x := q.Q.From(q.row, q.queryCol(q.h, m))
		if q.heads > 1 && q.inPlace {
			x = q.together(m, q.packed[m*q.sizeA(q.nq, q.D):])
		} else if q.heads > 1 {
			x = q.together(m, dense)
		}
		if q.inPlace {
			q.left[m] = x
			continue
		}
		q.packA(q.packed[m*q.sizeA(q.nq, q.D):], q.nq, q.D, q.scaled(dense, q.nq, q.D, x))
	}
	q.restart()
}

// queriesSize is the number of floats that open takes for this many rows.
func (o *op) queriesSize(rows int) int {
	rows = o.whole(rows)
	size := o.maps * (o.sizeA(rows, o.D) + rows*(o.whole(o.DV)+2))
	if !o.half {
		size += o.maps * rows * keyTile
	}
	return ceil(size, 16) * 16 // whole cache lines
}

// together copies the tile's queries of several heads, map m, into dense.
func (q *queries) together(m int, dense []float32) simd.View {
	all := likeView(&q.Q.View, dense, q.D)
	for r := range q.nq {
		copyRow(all, r, q.Q.From(q.row+r%q.count, q.queryCol(q.h+r/q.count, m)), q.D)
	}
	return all
}

// likeView is memory as a view with rows of width elements of the dtype of x.
func likeView(x *simd.View, buf []float32, width int) simd.View {
	if x.H != nil {
		return simd.View{H: simd.Halves(buf), Ld: width}
	}
	return simd.View{X: buf, Ld: width}
}

// copyRow copies the first n elements of src, of the same dtype, to row r of dst.
func copyRow(dst simd.View, r int, src simd.View, n int) {
	if src.H != nil {
		copy(dst.H[r*dst.Ld:][:n], src.H)
		return
	}
	copy(dst.X[r*dst.Ld:][:n], src.X)
}

// restart begins a softmax.
func (q *queries) restart() {
	q.any = false
	q.reset()
}

// attend attends the tile to nk keys that begin at k0.
func (q *queries) attend(k0, nk int, x *kv) {
	from, to := q.live(q.row, q.q0, q.count, k0, nk, q.columns())
	switch {
	case q.half:
		q.attendHalf(k0, nk, from, q.whole(to-from), x)
	case q.inPlace:
		q.attendInPlace(k0, nk, from, to, x)
	default:
		q.attendFull(k0, nk, from, to, x)
	}
	q.any = true
}

// attendHalf attends with bfloat16 factors to columns from … from+width−1: one kernel does it all.
func (q *queries) attendHalf(k0, nk, from, width int, x *kv) {
	a := &q.on.rows
	*a = simd.AttnRows{Maps: q.maps, Rows: q.np, Used: q.nq, Cols: width, D: q.D, DV: q.ld, Q: simd.Halves(q.packed),
		V: simd.Halves(q.rowsAt(x.values, from)), StrideV: simd.SizeBF16(simd.PanelBF16, nk),
		Scale: q.post * math.Log2E, Top: q.top, Sum: q.sum, Acc: q.acc, First: !q.any}
	for m := range q.maps {
		a.K[m] = simd.Halves(q.columnsAt(x.keys[q.keyHead(m)], q.D, from))
	}
	w := &q.on.window
	w.find(&q.shape, q.row, q.q0, q.count, q.whole(q.count), k0, nk, from, width)
	if q.heads > 1 {
		w.repeat(q.count, q.np, width)
	}
	a.Lo, a.Hi, a.Live = w.lo[:], w.hi[:], w.live[:]
	q.on.tile.Forward(a, q.on.scratch)
}

// attendFull attends with float32 operands to columns from … to−1. Cells above the diagonal are skipped if the rows are
// of one head.
func (q *queries) attendFull(k0, nk, from, to int, x *kv) {
	width, diag := to-from, simd.NoDiag
	if q.heads == 1 {
		diag = q.q0 - k0 - from
	}
	for m := range q.maps {
		queries, keys := q.packed[m*q.sizeA(q.nq, q.D):], q.columnsAt(x.keys[q.keyHead(m)], q.D, from)
		simd.GemmBelow(q.nq, width, q.D, queries, keys, q.logits[m*q.nq*keyTile:], keyTile, diag)
	}
	q.softmax(k0, nk, from, to)
	for m := range q.maps {
		p, acc := q.logits[m*q.nq*keyTile:], q.acc[m*q.nq*q.ld:]
		simd.GemmPlain(q.nq, q.DV, width, p, keyTile, q.rowsAt(x.values, from), nk, acc, q.ld, q.any,
			diag, q.on.scratch)
	}
}

// softmax turns the logits into probabilities in place, with float32 factors.
func (q *queries) softmax(k0, nk, from, to int) {
	for r := range q.nq {
		lo, hi := q.window(q.row+r%q.count, q.q0+r%q.count, k0, nk)
		for m := range q.maps {
			i := m*q.nq + r
			acc := q.acc[i*q.ld : (i+1)*q.ld]
			if !q.any {
				acc = nil
			}
			softmaxStep(q.logits[i*keyTile:i*keyTile+to-from], lo-from, hi-from, acc, &q.top[i], &q.sum[i])
		}
	}
}

// softmaxStep turns columns [lo,hi) of p from logits into exp(logit − top) and the others into 0, where top is the
// largest logit so far; sums with a smaller top are rescaled first.
func softmaxStep(p []float32, lo, hi int, acc []float32, top, sum *float32) {
	if lo >= hi { // the row's document begins after this tile, or it ends before the diagonal
		clear(p)
		return
	}
	clear(p[:lo])
	clear(p[hi:])
	x := p[lo:hi]
	raise(simd.Max(x), acc, top, sum)
	*sum += simd.ExpSum(x, x, 1, *top)
}

// raise sets m as the largest logit so far, if it is, and rescales sums with a smaller one.
func raise(m float32, acc []float32, top, sum *float32) {
	if m > *top {
		c := float32(math.Exp(float64(*top - m)))
		simd.Scale(acc, c)
		*sum *= c
		*top = m
	}
}
