package simd

import (
	"fmt"
	"math"
)

// softKernels are the parts of attention on float32 factors that process a whole tile in one call. They may be absent.
type softKernels struct {
	mixNorm       func(*mixNormArgs)
	normBackFloat func(*normFloatArgs)
	softTile      func(*softArgs)
	softBack      [2]func(*softBackArgs) // for one and for two maps
}

// InPlace reports whether attention on float32 factors reads its left-hand operands in place and does the softmax of a
// tile in one call: GemmPlain, GemmPlainBelow, GemmTurnedLater, SoftTile and SoftTileBack have kernels.
func InPlace() bool { return cur.plains != nil && cur.turneds != nil && cur.softTile != nil }

// SoftTile is one step of the online softmax of a tile of float32 logits: with x the logits of a row,
//
//	Top' = max(Top, Scale·x),  x' = 2^(Scale·x − Top'),  Sum' = Sum·2^(Top − Top') + Σ x',  Acc' = Acc·2^(Top − Top').
type SoftTile struct {
	Rows, Width int
	Hi          []int32   // row r ends before column Hi[r] ≤ Width; the others become 0, and so does −Inf
	X           []float32 // [Rows, Width], rows TileCols apart
	Scale       float32   // of the logits, times log2 e
	Top, Sum    []float32 // [Rows], at first −Inf and 0
	Acc         []float32 // [Rows, DV], rows LdAcc apart
	LdAcc, DV   int       // DV 0: Acc holds nothing yet
}

// Soften runs x.
func (t *AttnTile) Soften(x *SoftTile) {
	ok := tileFits(x.Rows, x.Width, x.Hi, x.X) && min(len(x.Top), len(x.Sum)) >= x.Rows
	if !ok || x.DV > 0 && len(x.Acc) < (x.Rows-1)*x.LdAcc+x.DV {
		panic(fmt.Sprintf("simd: softmax of %d rows and %d columns: operands too short", x.Rows, x.Width))
	}
	if cur.softTile == nil {
		x.generic()
		return
	}
	a := &t.soft
	*a = softArgs{x: &x.X[0], top: &x.Top[0], sum: &x.Sum[0], acc: &x.X[0], hi: &x.Hi[0], rows: x.Rows,
		width: wholeVectors(x.Width), scale: x.Scale}
	if x.DV > 0 {
		a.acc, a.ldacc, a.vecs, a.rest = &x.Acc[0], 4*x.LdAcc, x.DV/8, x.DV%8
	}
	cur.softTile(a)
}

// tileFits checks what both passes have in common.
func tileFits(rows, width int, hi []int32, tiles ...[]float32) bool {
	ok := rows > 0 && width > 0 && width <= TileCols && len(hi) >= rows
	for _, x := range tiles {
		ok = ok && len(x) >= (rows-1)*TileCols+wholeVectors(width)/4
	}
	for r := 0; ok && r < rows; r++ {
		ok = int(hi[r]) <= width
	}
	return ok
}

// wholeVectors is the bytes of whole vectors that hold this many columns.
func wholeVectors(width int) int { return (width + 7) / 8 * 32 }

// generic is Soften on vectors.
func (x *SoftTile) generic() {
	for r := range x.Rows {
		p := x.X[r*TileCols:][:x.Width]
		hi := max(0, int(x.Hi[r]))
		clear(p[hi:])
		top := max(x.Top[r], x.Scale*cur.max(p[:hi]))
		shift := max(top, -math.MaxFloat32)
		if top > x.Top[r] {
			c := float32(math.Exp2(float64(x.Top[r] - shift)))
			cur.scale(x.Acc[min(len(x.Acc), r*x.LdAcc):][:x.DV], c)
			x.Sum[r] *= c
			x.Top[r] = top
		}
		x.Sum[r] += cur.expSum(p[:hi], p[:hi], x.Scale*math.Ln2, shift*math.Ln2)
	}
}

// SoftTileBack is the softmax of a tile of float32 logits in the backward pass: with x the logits of a row,
// P_m = 2^(Scale·x_m − LSE_m) and
//
//	Mix = P1 + Lam·P2,  P1' = P1∘(DP − Δ1),  P2' = Lam·P2∘(DP − Δ2)
//
// or, with one map, P1' = P1 and DP' = P1∘(DP − Δ1).
type SoftTileBack struct {
	Maps, Rows, Width int
	Hi                []int32      // as in SoftTile
	P                 [2][]float32 // [Rows, Width], rows TileCols apart: logits
	DP, Mix           []float32    // the same; Mix of two maps only
	LSE, Delta        [2][]float32 // [Rows], LSE in units of log 2
	Lam               []float32    // [Rows]: −λ, of two maps
	Scale             float32      // times log2 e
}

// SoftenBack runs x.
func (t *AttnTile) SoftenBack(x *SoftTileBack) {
	ok := tileFits(x.Rows, x.Width, x.Hi, x.P[0], x.DP)
	for m := range x.Maps {
		ok = ok && min(len(x.LSE[m]), len(x.Delta[m])) >= x.Rows
	}
	if !ok || x.Maps == 2 && (!tileFits(x.Rows, x.Width, x.Hi, x.P[1], x.Mix) || len(x.Lam) < x.Rows) {
		panic(fmt.Sprintf("simd: softmax backward of %d rows and %d columns: operands too short", x.Rows, x.Width))
	}
	kernel := cur.softBack[x.Maps-1]
	if kernel == nil {
		x.generic()
		return
	}
	a := &t.softBack
	*a = softBackArgs{dp: &x.DP[0], hi: &x.Hi[0], rows: x.Rows, width: wholeVectors(x.Width), scale: x.Scale}
	for m := range x.Maps {
		a.p[m], a.lse[m], a.delta[m] = &x.P[m][0], &x.LSE[m][0], &x.Delta[m][0]
	}
	if x.Maps == 2 {
		a.mix, a.lam = &x.Mix[0], &x.Lam[0]
	}
	kernel(a)
}

// generic is SoftenBack on vectors.
func (x *SoftTileBack) generic() {
	f := SoftmaxBack{Scale: x.Scale * math.Ln2, Alpha: [2]float32{1, 1}}
	for r := range x.Rows {
		first, hi := r*TileCols, max(0, int(x.Hi[r]))
		from, to := first+hi, first+x.Width
		p1, dp := x.P[0][first:from], x.DP[first:from]
		f.LSE[0], f.Delta[0] = x.LSE[0][r]*math.Ln2, x.Delta[0][r]
		clear(x.P[0][from:to])
		if x.Maps == 1 {
			cur.softmaxBack(p1, dp, &f)
			clear(x.DP[from:to])
			continue
		}
		f.LSE[1], f.Delta[1], f.Alpha[1], f.Lam = x.LSE[1][r]*math.Ln2, x.Delta[1][r], x.Lam[r], x.Lam[r]
		cur.softmaxBack2(p1, x.P[1][first:from], x.Mix[first:from], dp, &f)
		clear(x.P[1][from:to])
		clear(x.Mix[from:to])
	}
}
