package cpu

import "antiphase/internal/simd"

// The products of attention go through these few methods, which are all that knows whether factors are float32 or, with
// s.half, bfloat16. Packed operands live in memory for floats either way; sizes are in floats.

func (s *attnState) sizeA(m, k int) int {
	if s.half {
		return simd.FloatsBF16(m, k)
	}
	return simd.SizeA(m, k)
}

func (s *attnState) sizeB(k, n int) int {
	if s.half {
		return simd.FloatsBF16(n, k)
	}
	return simd.SizeB(k, n)
}

// columns is the number of columns in a panel of a right-hand operand: where it may be cut.
func (s *attnState) columns() int {
	if s.half {
		return simd.PanelBF16
	}
	return simd.NR()
}

// packA and packB pack what lies in memory in either dtype. Factors that are not bfloat16 come from float32.
func (s *attnState) packA(dst []float32, m, k int, a simd.View, trans bool) {
	if s.half {
		simd.PackABF16(simd.Halves(dst), m, k, a, trans)
		return
	}
	simd.PackA(dst, m, k, a.X, a.Ld, trans)
}

func (s *attnState) packB(dst []float32, k, n int, b simd.View, trans bool) {
	if s.half {
		simd.PackBBF16(simd.Halves(dst), k, n, b, trans, k)
		return
	}
	simd.PackB(dst, k, n, b.X, b.Ld, trans)
}

// whole is n rounded up to what tiles are made of: panels of bfloat16 operands, which are filled up with zeros.
func (s *attnState) whole(n int) int {
	if s.half {
		return (n + simd.PanelBF16 - 1) / simd.PanelBF16 * simd.PanelBF16
	}
	return n
}

// columnsAt and rowsAt are a packed right-hand operand of depth rows from a column or row on, a multiple of columns.
func (s *attnState) columnsAt(pb []float32, depth, col int) []float32 {
	if s.half {
		return pb[simd.FloatsBF16(col, depth):]
	}
	return pb[col*depth:]
}

func (s *attnState) rowsAt(pb []float32, row int) []float32 {
	if s.half {
		return pb[row*simd.PanelBF16/2:]
	}
	return pb[row*simd.NR():]
}

// meet: c = a·b, or c += with accumulate, within the first caches. a and b were packed with depthA and depthB elements of k, of which k take
// part. With bfloat16 factors all of whole(m) × whole(n) is written. Panels of float32 columns are taken one by one where k stops
// short of depthB; a's k does not. zeros may be left out.
func (s *attnState) meet(m, n, k int, pa []float32, depthA int, pb []float32, depthB int, c []float32, ldc int, accumulate bool,
	zeros simd.Triangle, w *worker) {
	if s.half {
		const panel = simd.PanelBF16
		w.tile.Product(s.whole(m), s.whole(n), k, simd.Halves(pa), panel*s.whole(depthA), simd.Halves(pb), panel*s.whole(depthB), c, ldc, accumulate, zeros, &w.scratch)
		return
	}
	if k == depthB {
		simd.GemmPacked(m, n, k, pa, pb, c, ldc, accumulate)
		return
	}
	for j := 0; j < n; j += simd.NR() {
		simd.GemmPacked(m, min(simd.NR(), n-j), k, pa, pb[j*depthB:], c[j:], ldc, accumulate)
	}
}

// scaled is rows × cols elements of src times pre: src itself, as with bfloat16 factors, or a copy in dense.
func (s *attnState) scaled(dense []float32, rows, cols int, src simd.View) simd.View {
	if s.pre == 1 {
		return src
	}
	for r := range rows {
		copy(dense[r*cols:(r+1)*cols], src.X[r*src.Ld:])
	}
	simd.Scale(dense[:rows*cols], s.pre)
	return simd.View{X: dense, Ld: cols}
}
