package simd

// SkinnyRows is the largest m that GemmSkinny takes: above it, packing b pays.
func SkinnyRows() int { return 2 * len(cur.skinny) }

// GemmSkinny is Gemm with b transposed, a as it is, and m of at most SkinnyRows: the product of decoding, whose cost is
// reading b once. It packs only the edges and gives the same bits.
func GemmSkinny(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int,
	accumulate bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	cols, depth := n/cur.across*cur.across, k&^3
	if depth == 0 {
		cols = 0
	}
	for j := 0; j < cols; j += cur.across {
		skinnyColumns(m, depth, a, lda, b[j*ldb:(j+cur.across-1)*ldb+depth], ldb, c[j:], ldc, accumulate)
	}
	if depth < k {
		Gemm(m, cols, k-depth, a[depth:], lda, false, b[depth:], ldb, true, c, ldc, true, s)
	}
	if cols < n {
		Gemm(m, n-cols, k, a, lda, false, b[cols*ldb:], ldb, true, c[cols:], ldc, accumulate, s)
	}
}

// skinnyColumns does one vector of columns; the second group of rows finds b in the cache.
func skinnyColumns(m, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	_, _ = a[(m-1)*lda+k-1], c[(m-1)*ldc+cur.across-1]
	for i := 0; i < m; i += len(cur.skinny) {
		rows := min(len(cur.skinny), m-i)
		cur.skinny[rows-1](k, &a[i*lda], lda, &b[0], ldb, &c[i*ldc], ldc, accumulate)
	}
}
