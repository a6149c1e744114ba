package simd

import (
	"fmt"
	"math"
	"unsafe"
)

// TileCols is the number of floats from one row of a tile of logits to the next, and the most columns it has.
const TileCols = 128

// attnKernels are the parts of attention that process a whole tile of logits in one call, on bfloat16 operands. They
// may be absent.
type attnKernels struct {
	forwardTile func(*forwardArgs)
	gradTile    [2]func(*gradArgs) // for one and for two maps
	productTile func(*productArgs)
	outKernels
	rowKernels
	softKernels
}

// AttnTile is one worker's memory for these kernels. Rows and columns of tiles are whole panels here: the caller masks
// the padding. Strides are in values from one panel to the next.
type AttnTile struct {
	forward  forwardArgs
	grad     gradArgs
	product  productArgs
	out      outArgs
	few      fewArgs
	groups   []forwardGroup
	steps    []attnStep
	fetch    fetches
	dots     dotsArgs
	norm     normBackArgs
	normed   normRowsArgs
	normBack normFloatArgs
	mix      mixNormArgs
	soft     softArgs
	softBack softBackArgs
	room     []float32
	ones     []float32 // see reserveOnes
}

// strip is the number of rows that kernels process at a time, stripSize the number of floats of their logits.
const (
	strip     = PanelBF16
	stripSize = strip * TileCols
)

// Reserve grows the memory, so that no call on up to 256 rows of two maps and heads of up to 256 allocates.
func (t *AttnTile) Reserve() {
	Grow(&t.room, 4*stripSize)
	t.reserveGroups(2*256/tileBF16, 256, 256)
	reserveOnes(&t.ones, 256)
	if t.fetch.now == nil {
		t.fetch.all = make([]fetchRows, 0, 64)
		t.FetchNone()
	}
}

// reserveGroups allocates memory for n groups, and for the steps of one.
func (t *AttnTile) reserveGroups(n, d, dv int) {
	if len(t.groups) < n {
		t.groups = make([]forwardGroup, n)
	}
	if steps := TileCols / PanelBF16 * (up32(d) + up32(dv)) / PanelBF16; len(t.steps) < steps {
		t.steps = make([]attnStep, steps)
	}
}

// Triangle describes which elements of a product are known to be zero, in steps of 32 elements.
type Triangle int

// Nothing; elements of k before a column's own, of B; those after a row's own, of A.
const (
	Full Triangle = iota
	LaterColumns
	LongerRows
)

// PackPartBF16 is PackABF16 for a part of a larger operand with depth elements of k: steps from element p of k on go to
// dst[32·p:].
func PackPartBF16(dst []uint16, m, k int, a View, trans bool, depth int) {
	packBF16(dst, m, k, a, trans, false, depth)
}

// Product is GemmBF16 for whole panels, m and n multiples of PanelBF16, with everything in the first caches. Zeros that
// are left out are not read; with LaterColumns k is at least n.
func (t *AttnTile) Product(m, n, k int, pa []uint16, strideA int, pb []uint16, strideB int, c []float32, ldc int,
	accumulate bool, zeros Triangle, s *Scratch) {
	steps := up32(k) / PanelBF16
	extent := func(across, stride int) int { return (across/PanelBF16-1)*stride + steps*stepBF16 }
	if zeros == LaterColumns && up32(k) < n || m <= 0 || n <= 0 || k <= 0 || m%PanelBF16 != 0 || n%PanelBF16 != 0 ||
		len(pa) < extent(m, strideA) || len(pb) < extent(n, strideB) || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: tile product %d×%d×%d on %d (%d), %d (%d) and %d (ld %d) elements", m, n, k, len(pa),
			strideA, len(pb), strideB, len(c), ldc))
	}
	if cur.productTile == nil {
		rowsProduct(m, n, k, pa, strideA, pb, strideB, c, ldc, accumulate, s)
		return
	}
	t.product = productArgs{a: &pa[0], b: &pb[0], c: &c[0], ldc: 4 * ldc, steps: steps, rows: m / PanelBF16,
		cols: n / PanelBF16, strideA: 2 * strideA, strideB: 2 * strideB}
	if accumulate {
		t.product.load = 1
	}
	switch zeros {
	case LaterColumns:
		t.product.later = 1
	case LongerRows:
		t.product.longer = 1
	}
	cur.productTile(&t.product)
}

// AttnRows combines some queries with a tile of keys and values: with logits x = q·k of each map, one step of the
// online softmax,
//
//	Top' = max(Top, Scale·x),  p = 2^(Scale·x − Top'),
//	Sum' = Sum·2^(Top − Top') + Σ p,  Acc' = Acc·2^(Top − Top') + p·v.
type AttnRows struct {
	Maps, Rows, Cols int         // rows of each map
	Used             int         // those in use; the others' results mean nothing
	D, DV            int         // DV a multiple of PanelBF16
	Q                []uint16    // packed A [Rows, D], one map after the other
	K                [2][]uint16 // packed B [D, Cols] of each map
	V                []uint16    // packed B [Cols, DV], panels StrideV apart
	StrideV          int
	Lo, Hi           []int32   // each row attends to columns Lo … Hi−1, if it is Masked
	Live             []int32   // for each 32 rows the panels of columns, at least 1, that they attend to, or Masked
	Scale            float32   // of the logits, times log2 e: everything is in units of log 2
	Top, Sum         []float32 // of each map's rows, at first −Inf and 0
	Acc              []float32 // [Maps·Rows, DV]
	First            bool      // Acc holds nothing yet
}

// Masked in Live means that not all of the rows attend to all of the panels.
const Masked = 1 << 8

const (
	groupSize = stripSize / 2     // floats of a group's logits
	groupHalf = stripSize / 2 / 2 // floats of its p
)

// Forward runs x.
func (t *AttnTile) Forward(x *AttnRows, s *Scratch) {
	rows, steps := x.Maps*x.Rows, x.Cols/PanelBF16
	ok := x.Rows > 0 && x.Rows%strip == 0 && x.Used > x.Rows-strip && x.Used <= x.Rows && len(x.Live) >= x.Rows/strip &&
		x.Cols > 0 && x.Cols <= TileCols && x.Cols%PanelBF16 == 0 && x.D > 0 && x.DV > 0 && x.DV%PanelBF16 == 0 &&
		len(x.Q) >= SizeBF16(rows, x.D) && len(x.V) >= (x.DV/PanelBF16-1)*x.StrideV+steps*stepBF16 &&
		len(x.Top) >= rows && len(x.Sum) >= rows && len(x.Acc) >= rows*x.DV && min(len(x.Lo), len(x.Hi)) >= x.Rows
	for m := range x.Maps {
		ok = ok && len(x.K[m]) >= SizeBF16(x.Cols, x.D)
	}
	if !ok {
		panic(fmt.Sprintf("simd: attention of %d×%d rows and %d columns (%d, %d): operands too short", x.Maps, x.Rows,
			x.Cols, x.D, x.DV))
	}
	t.Reserve()
	if cur.forwardTile == nil {
		t.forwardGeneric(x, s)
		return
	}
	t.reserveGroups(x.Maps*x.Rows/tileBF16, x.D, x.DV)
	a := &t.forward
	a.groups, a.count, a.v, a.steps = &t.groups[0], t.group(x), &x.V[0], &t.steps[0]
	p := t.room[2*groupSize:]
	a.logits = [2]*float32{&t.room[0], &t.room[groupSize]}
	a.p = [2]*uint16{&Halves(p)[0], &Halves(p[groupHalf:])[0]}
	a.ldacc, a.vectors, a.panels = 4*x.DV, x.DV/tileBF16, x.DV/PanelBF16
	a.depth, a.strideK, a.strideV = up32(x.D)/PanelBF16, 2*SizeBF16(PanelBF16, x.D), 2*x.StrideV
	a.start, a.scale, a.fetch = -1, x.Scale, &t.fetch.now
	if x.First {
		a.start = 1
	}
	cur.forwardTile(a)
}

// group lists x's groups and is their number.
func (t *AttnTile) group(x *AttnRows) (n int) {
	q := SizeBF16(PanelBF16, x.D)
	for m := range x.Maps {
		k := &x.K[m][0]
		for r := 0; r < x.Used; r += tileBF16 {
			at, live := m*x.Rows+r, int(x.Live[r/strip])
			t.groups[n] = forwardGroup{q: &x.Q[at/PanelBF16*q+at%PanelBF16*PanelBF16], k: k, top: &x.Top[at],
				sum: &x.Sum[at], acc: &x.Acc[at*x.DV], lo: &x.Lo[r], hi: &x.Hi[r], panels: live &^ Masked,
				rows: min(tileBF16, x.Used-r), masked: live & Masked}
			n++
		}
	}
	return n
}

// forwardGeneric is Forward on products and vectors.
func (t *AttnTile) forwardGeneric(x *AttnRows, s *Scratch) {
	q, p := SizeBF16(PanelBF16, x.D), SizeBF16(PanelBF16, x.Cols)
	logits, pa := t.room[:stripSize], Halves(t.room[stripSize:])
	for r0 := 0; r0 < x.Maps*x.Rows; r0 += strip {
		m, in := r0/x.Rows, r0%x.Rows
		used, live := min(strip, x.Used-in), x.Live[in/strip]
		cols := int(live&^Masked) * PanelBF16
		rowsProduct(used, cols, x.D, x.Q[r0/strip*q:], q, x.K[m], q, logits, TileCols, false, s)
		if live&Masked != 0 {
			maskRows(logits, in, cols, x.Lo, x.Hi)
		}
		for r := range used {
			x.softmax(logits[r*TileCols:][:cols], r0+r)
			for c, e := range logits[r*TileCols:][:cols] {
				pa[placeA(r, c, p)] = bf16Of(e)
			}
		}
		rowsProduct(used, x.DV, cols, pa, p, x.V, x.StrideV, x.Acc[r0*x.DV:], x.DV, !x.First, s)
	}
}

// rowsProduct is the product without its own kernel, of any number of rows.
func rowsProduct(m, n, k int, pa []uint16, strideA int, pb []uint16, strideB int, c []float32, ldc int,
	accumulate bool, s *Scratch) {
	s.bf16 = gemmBF16{bf16Kernels: &cur.bf16Kernels, m: m, n: n, steps: up32(k) / PanelBF16, a: pa, b: pb,
		strideA: strideA, strideB: strideB, c: c, ldc: ldc, accumulate: accumulate, s: s}
	cur.product(&s.bf16)
}

// softmax is the step of one row.
func (x *AttnRows) softmax(p []float32, r int) {
	top := max(x.Top[r], x.Scale*cur.max(p))
	if top > x.Top[r] {
		c := float32(math.Exp2(float64(x.Top[r] - top)))
		if !x.First {
			cur.scale(x.Acc[r*x.DV:][:x.DV], c)
		}
		x.Sum[r] *= c
		x.Top[r] = top
	}
	x.Sum[r] += cur.expSum(p, p, x.Scale*math.Ln2, max(top, -math.MaxFloat32)*math.Ln2)
}

// maskRows sets a strip's logits to −Inf where rows, starting at r0, do not attend.
func maskRows(logits []float32, r0, cols int, lo, hi []int32) {
	for r := range strip {
		for c := range cols {
			if c < int(lo[r0+r]) || c >= int(hi[r0+r]) {
				logits[r*TileCols+c] = float32(math.Inf(-1))
			}
		}
	}
}

// placeA and placeB are the offsets of element (across, k) of a packed operand.
func placeA(across, k, stride int) int {
	return across/PanelBF16*stride + k/PanelBF16*stepBF16 + across%PanelBF16*PanelBF16 + k%PanelBF16
}

func placeB(across, k, stride int) int {
	return across/PanelBF16*stride + k/PanelBF16*stepBF16 + across%PanelBF16/tileBF16*tileBF16*PanelBF16 +
		k%PanelBF16/2*PanelBF16 + across%tileBF16*2 + k%2
}

// AttnGrad combines some queries with a tile of keys and values in the backward pass: with logits x = q·k of each map,
// dP = do·v and P_m = 2^(Scale·x_m − LSE_m),
//
//	mix = P1 + Lam·P2,  dS1 = P1∘(dP − Δ1),  dS2 = Lam·P2∘(dP − Δ2);  with one map mix = P1.
type AttnGrad struct {
	Maps, Rows, Cols int
	D, DV            int
	Q                [2][]uint16  // packed A [Rows, D] of each map
	DO               []uint16     // packed A [Rows, DV]
	K                [2][]uint16  // packed B [D, Cols] of each map
	V                []uint16     // packed B [DV, Cols]
	Lo, Hi           []int32      // each row attends to columns Lo … Hi−1, if it is Masked
	Live             []int32      // for each 32 rows the panels of columns, at least 1, that they attend to, or Masked
	Scale            float32      // times log2 e
	LSE, Delta       [2][]float32 // [Rows], LSE in units of log 2
	Lam              []float32    // [Rows]: −λ
	Mix              []uint16     // packed B [Rows, Cols]
	Lines            [2][]uint16  // dS as a packed A of Cols elements of k
	Pairs            [2][]uint16  // dS as a packed B, panels StridePairs apart: Rows elements of k, or part of more
	StridePairs      int
}

// Grad runs x.
func (t *AttnTile) Grad(x *AttnGrad, s *Scratch) {
	steps := x.Cols / PanelBF16
	ok := x.Rows > 0 && x.Rows%strip == 0 && x.Cols > 0 && x.Cols <= TileCols && x.Cols%PanelBF16 == 0 &&
		x.D > 0 && x.DV > 0 && len(x.DO) >= SizeBF16(x.Rows, x.DV) && len(x.V) >= SizeBF16(x.Cols, x.DV) &&
		len(x.Live) >= x.Rows/strip &&
		len(x.Mix) >= SizeBF16(x.Cols, x.Rows) && (x.Maps == 1 || len(x.Lam) >= x.Rows) &&
		min(len(x.Lo), len(x.Hi)) >= x.Rows
	for m := range x.Maps {
		ok = ok && len(x.Q[m]) >= SizeBF16(x.Rows, x.D) && len(x.K[m]) >= SizeBF16(x.Cols, x.D) &&
			min(len(x.LSE[m]), len(x.Delta[m])) >= x.Rows && len(x.Lines[m]) >= SizeBF16(x.Rows, x.Cols) &&
			len(x.Pairs[m]) >= (steps-1)*x.StridePairs+x.Rows*PanelBF16
	}
	if !ok {
		panic(fmt.Sprintf("simd: attention backward of %d×%d rows and %d columns (%d, %d): operands too short", x.Maps,
			x.Rows, x.Cols, x.D, x.DV))
	}
	t.Reserve()
	kernel := cur.gradTile[x.Maps-1]
	if kernel == nil {
		t.gradGeneric(x, s)
		return
	}
	a := &t.grad
	*a = gradArgs{do: &x.DO[0], v: &x.V[0], mix: &x.Mix[0], live: &x.Live[0], unit: &t.room[0], strips: x.Rows / strip,
		panels: steps, depth: up32(x.D) / PanelBF16, depthV: up32(x.DV) / PanelBF16,
		strideDO: 2 * SizeBF16(PanelBF16, x.DV), strideV: 2 * SizeBF16(PanelBF16, x.DV),
		strideQ: 2 * SizeBF16(PanelBF16, x.D), strideK: 2 * SizeBF16(PanelBF16, x.D),
		strideLines: 2 * SizeBF16(PanelBF16, x.Cols),
		strideMix:   2 * SizeBF16(PanelBF16, x.Rows), stridePairs: 2 * x.StridePairs, scale: x.Scale,
		fetch: &t.fetch.now, q: &x.Q[0][0], lo: &x.Lo[0], hi: &x.Hi[0]}
	for m := range x.Maps {
		a.k[m], a.lse[m], a.delta[m], a.lines[m], a.pairs[m] = &x.K[m][0], &x.LSE[m][0], &x.Delta[m][0], &x.Lines[m][0],
			&x.Pairs[m][0]
	}
	if x.Maps == 2 {
		a.lam, a.strideMap = &x.Lam[0], int(uintptr(unsafe.Pointer(&x.Q[1][0]))-uintptr(unsafe.Pointer(&x.Q[0][0])))
	}
	kernel(a)
}

// gradGeneric is Grad on products and vectors.
func (t *AttnTile) gradGeneric(x *AttnGrad, s *Scratch) {
	q, do := SizeBF16(PanelBF16, x.D), SizeBF16(PanelBF16, x.DV)
	dp := t.room[:stripSize]
	for r0 := 0; r0 < x.Rows; r0 += strip {
		t.Product(strip, x.Cols, x.DV, x.DO[r0/strip*do:], do, x.V, do, dp, TileCols, false, Full, s)
		for m := range x.Maps {
			logits := t.room[(m+1)*stripSize:][:stripSize]
			t.Product(strip, x.Cols, x.D, x.Q[m][r0/strip*q:], q, x.K[m], q, logits, TileCols, false, Full, s)
			if x.Live[r0/strip]&Masked != 0 {
				maskRows(logits, r0, x.Cols, x.Lo, x.Hi)
			}
		}
		for r := range strip {
			x.row(t.room[r*TileCols:], r0+r, x.Live[r0/strip]&^Masked*PanelBF16)
		}
	}
}

// row is the softmax backward of row r, of which live columns count: dP and both maps' logits, a strip apart.
func (x *AttnGrad) row(rows []float32, r int, live int32) {
	var p [2][]float32
	dp, lam := rows[:x.Cols], [2]float32{1}
	lines, mix := SizeBF16(PanelBF16, x.Cols), SizeBF16(PanelBF16, x.Rows)
	for m := range x.Maps {
		if m == 1 {
			lam[1] = x.Lam[r]
		}
		p[m] = rows[(m+1)*stripSize:][:x.Cols]
		cur.expSum(p[m], p[m], x.Scale*math.Ln2, x.LSE[m][r]*math.Ln2)
		clear(p[m][min(int(live), x.Cols):])
		for c := range p[m] {
			ds := bf16Of(lam[m] * p[m][c] * (dp[c] - x.Delta[m][r]))
			x.Lines[m][placeA(r, c, lines)] = ds
			x.Pairs[m][placeB(c, r, x.StridePairs)] = ds
		}
	}
	for c, e := range p[0] {
		if x.Maps == 2 {
			e += lam[1] * p[1][c]
		}
		x.Mix[placeB(c, r, mix)] = bf16Of(e)
	}
}
