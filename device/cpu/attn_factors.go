package cpu

import "antiphase/internal/simd"

// The products of attention go through these few methods, which are all that knows whether factors are float32 or, with
// s.half, bfloat16. Packed operands live in memory for floats either way; sizes are in floats.

func (s *attnState) sizeA(m, k int) int {
	if s.half {
		return packSize(m, k)
	}
	return simd.SizeA(m, k)
}

func (s *attnState) sizeB(k, n int) int {
	if s.half {
		return packSize(n, k)
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

func (s *attnState) packA(dst []float32, m, k int, a []float32, lda int, trans bool) {
	if s.half {
		simd.PackABF16(halves(dst), m, k, a, lda, trans)
		return
	}
	simd.PackA(dst, m, k, a, lda, trans)
}

func (s *attnState) packB(dst []float32, k, n int, b []float32, ldb int, trans bool) {
	if s.half {
		simd.PackBBF16(halves(dst), k, n, b, ldb, trans, k)
		return
	}
	simd.PackB(dst, k, n, b, ldb, trans)
}

// multiply: c = a·b, or c += with accumulate, for columns col … col+n−1 of b, where col is a multiple of columns.
func (s *attnState) multiply(m, n, k int, pa, pb []float32, col int, c []float32, ldc int, accumulate bool, scratch *simd.Scratch) {
	if s.half {
		simd.GemmBF16(m, n, k, halves(pa), halves(pb[packSize(col, k):]), k, c, ldc, accumulate, false, scratch)
		return
	}
	simd.GemmPacked(m, n, k, pa, pb[col*k:], c, ldc, accumulate)
}

// product: c = op(a)·b, or c += with accumulate, for rows from … from+k−1 of a packed b [depth,n], with a [m,k] packed on the way. from is a
// multiple of columns; panels of float32 columns are taken one by one, as that is where k may stop short of depth.
func (s *attnState) product(m, n, k int, a []float32, lda int, transA bool, pb []float32, depth, from int,
	c []float32, ldc int, accumulate bool, scratch *simd.Scratch) {
	pa, nr := scratch.A(s.sizeA(m, k)), simd.NR()
	s.packA(pa, m, k, a, lda, transA)
	if s.half {
		simd.GemmBF16(m, n, k, halves(pa), halves(pb)[simd.PanelBF16*from:], depth, c, ldc, accumulate, false, scratch)
		return
	}
	for j := 0; j < n; j += nr {
		simd.GemmPacked(m, min(nr, n-j), k, pa, pb[j*depth+from*nr:], c[j:], ldc, accumulate)
	}
}

// scaled is rows × cols elements of src times pre, and their row step: src itself, or a copy in dense.
func (s *attnState) scaled(dense []float32, rows, cols int, src []float32, ld int) ([]float32, int) {
	if s.pre == 1 {
		return src, ld
	}
	for r := range rows {
		copy(dense[r*cols:(r+1)*cols], src[r*ld:])
	}
	simd.Scale(dense[:rows*cols], s.pre)
	return dense, cols
}

// stacks says that a query tile of nq rows keeps the queries of both maps one behind the other: those of a V2 pair meet the same
// keys, so one product does for two, and dK is summed over both at once.
func (s *attnState) stacks(nq int) bool { return s.half && s.maps > s.keys && nq == queryTile }
