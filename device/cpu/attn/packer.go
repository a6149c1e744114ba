package attn

import (
	"math"

	"antiphase/internal/simd"
)

// packer packs operands and multiplies them. Only it knows whether operands are float32 or, with half, bfloat16. Packed
// operands are stored in float memory either way; sizes are in floats.
type packer struct {
	half bool
	// inPlace means that float32 left-hand operands are read where they lie and that the softmax of a tile is one call
	// (simd.InPlace).
	inPlace bool
	// pre and post are the logits' scale: of the queries (and of the keys in dQ) before packing, and of the products. A
	// bfloat16 operand is rounded, and one in place is not copied, so there the scale is applied after.
	pre, post float32
}

func newPacker(half bool, scale float64) packer {
	p := packer{half: half, inPlace: !half && simd.InPlace(), pre: float32(scale), post: 1}
	if p.log2() {
		p.pre, p.post = p.post, p.pre
	}
	return p
}

// log2 reports whether logits and their sums are in units of log 2.
func (p *packer) log2() bool { return p.half || p.inPlace }

// unit is a logit's unit: log 2 or 1.
func (p *packer) unit() float32 {
	if p.log2() {
		return math.Ln2
	}
	return 1
}

// sizeA is the size of a packed left-hand operand [m,k], sizeB of a right-hand operand [k,n].
func (p *packer) sizeA(m, k int) int {
	if p.half {
		return simd.FloatsBF16(m, k)
	}
	return simd.SizeA(m, k)
}

func (p *packer) sizeB(k, n int) int {
	if p.half {
		return simd.FloatsBF16(n, k)
	}
	return simd.SizeB(k, n)
}

// columns is the number of columns in a panel of a right-hand operand, at multiples of which it may be split.
func (p *packer) columns() int {
	if p.half {
		return simd.PanelBF16
	}
	return simd.NR()
}

// step is the number of rows packed at a time: a panel of bfloat16 operands, or all n that belong together.
func (p *packer) step(n int) int {
	if p.half {
		return simd.PanelBF16
	}
	return n
}

// whole is n rounded up to whole panels of bfloat16 operands, which are padded with zeros.
func (p *packer) whole(n int) int {
	if p.half {
		return ceil(n, simd.PanelBF16) * simd.PanelBF16
	}
	return n
}

// packA packs a left-hand operand [m,k], packB a right-hand one [k,n]. Operands that are not bfloat16 come from
// float32.
func (p *packer) packA(dst []float32, m, k int, a simd.View) {
	if p.half {
		simd.PackABF16(simd.Halves(dst), m, k, a, false)
		return
	}
	simd.PackA(dst, m, k, a.X, a.Ld, false)
}

func (p *packer) packB(dst []float32, k, n int, b simd.View, trans bool) {
	if p.half {
		simd.PackBBF16(simd.Halves(dst), k, n, b, trans, k)
		return
	}
	simd.PackB(dst, k, n, b.X, b.Ld, trans)
}

// packRows packs rows row … row+n−1 of a right-hand operand [depth,cols]; all of them with float32 factors.
func (p *packer) packRows(dst []float32, row, n, cols int, x simd.View, depth int) {
	if p.half {
		simd.PackBBF16(simd.Halves(p.rowsAt(dst, row)), n, cols, x, false, depth)
		return
	}
	simd.PackB(dst, n, cols, x.X, x.Ld, false)
}

// packTurned packs the transpose of rows row … row+n−1 of x [depth,cols] as a left-hand operand [cols,depth]; all of
// them with float32 factors.
func (p *packer) packTurned(dst []float32, row, n, cols int, x simd.View, depth int) {
	if p.half {
		simd.PackPartBF16(simd.Halves(p.rowsAt(dst, row)), cols, n, x, true, depth)
		return
	}
	simd.PackA(dst, cols, n, x.X, x.Ld, true)
}

// leftAt is a packed left-hand operand of depth columns, starting at a row that is a multiple of 32; with float32
// operands the row is 0.
func (p *packer) leftAt(pa []float32, depth, row int) []float32 {
	if row == 0 {
		return pa
	}
	return pa[simd.FloatsBF16(row, depth):]
}

// columnsAt and rowsAt are a packed right-hand operand of depth rows, starting at a column or row that is a multiple of
// columns.
func (p *packer) columnsAt(pb []float32, depth, col int) []float32 {
	if p.half {
		return pb[simd.FloatsBF16(col, depth):]
	}
	return pb[col*depth:]
}

func (p *packer) rowsAt(pb []float32, row int) []float32 {
	if p.half {
		return pb[row*simd.PanelBF16/2:]
	}
	return pb[row*simd.NR():]
}

// operand is a packed operand, and its k when it was packed.
type operand struct {
	x     []float32
	depth int
}

// product: c [m,n] = a·b, or += with accumulate, within L1 and L2, over the first k elements of a and b, with bfloat16
// operands. All of whole(m) × whole(n) is written. zeros may be omitted.
func (p *packer) product(m, n, k int, a, b operand, c []float32, ldc int, accumulate bool, zeros simd.Triangle,
	on *worker) {
	const panel = simd.PanelBF16
	on.tile.Product(p.whole(m), p.whole(n), k, simd.Halves(a.x), panel*p.whole(a.depth),
		simd.Halves(b.x), panel*p.whole(b.depth), c, ldc, accumulate, zeros, on.scratch)
}

// scaled is rows × cols elements of src times pre: src itself, as with bfloat16 factors, or a copy in dense.
func (p *packer) scaled(dense []float32, rows, cols int, src simd.View) simd.View {
	if p.pre == 1 {
		return src
	}
	for r := range rows {
		copy(dense[r*cols:(r+1)*cols], src.X[r*src.Ld:])
	}
	simd.Scale(dense[:rows*cols], p.pre)
	return simd.View{X: dense, Ld: cols}
}
