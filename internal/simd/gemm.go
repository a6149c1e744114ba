package simd

import "fmt"

// gemmKernels is one implementation of the matrix product: tiles of up to mr × nr elements of C are held in
// registers while a panel of A (mr rows) and one of B (nr columns) run past, kc steps of k at a time.
type gemmKernels struct {
	mr, nr  int
	tiles   []tile   // by falling number of rows; the first has mr rows, the last one
	plains  []tile   // the same for rows of A that are not packed; may be absent
	turneds []tile   // the same for an A [k,m] that is not packed; may be absent
	skinny  []skinny // by number of rows, from 1; none in the generic implementation
	// transpose: dst[p·stride+i] = src[i·ld+p] for i < rows ≤ lanes, p < k, k a multiple of 4. It may read lanes rows.
	transpose func(dst *float32, stride int, src *float32, ld, rows, k int)
	lanes     int
	across    int // columns of skinny
	// copyPanel: dst[p·stride+i] = src[p·ld+i] for i < width ≤ nr, p < k.
	copyPanel func(dst *float32, stride int, src *float32, ld, width, k int)
}

// tile computes c[i·ldc+j] = c₀ + Σ_p a[p·stride+i]·b[j/nr·panel + p·nr + j%nr] for i < rows, j < cols, where c₀ is c's
// old content if load, else 0; of plains a is a[i·stride+p]. Every element is one chain of additions in the order of p,
// starting with c₀.
type tile struct {
	rows int
	run  func(k int, a *float32, stride int, b *float32, panel int, c *float32, ldc, cols int, load bool)
}

// skinny computes c[i·ldc+j] = c₀ + Σ_p a[i·lda+p]·b[j·ldb+p] for all its rows i and j < across, with the sums of a
// tile but without packing. k is a multiple of 4.
type skinny func(k int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, load bool)

// KC is the recommended length of a run of k: a few panels of B stay in L2. Both operands are read from there at full
// speed; shorter runs, to fit L1, would read and write C more often, from further away.
const KC = 768

// Scratch holds one worker's packed operands and its current product. Its zero value is ready; it grows to the largest
// product seen.
type Scratch struct {
	a, b    []float32
	edge    []float32 // padded pieces of C
	tile    []float32 // a finished tile to be written to C
	partial []float32 // sums of tiles between runs of k
	sums    []float32 // those of a product into bfloat16 without tiles
	below   []float32 // rows below whole panels of rows that are not packed
	wide    []float32 // rows of bfloat16 values, widened
	bf16    gemmBF16
	int8    gemmInt8
	int8At  int8Args
	args    tileArgs
	ahead   uintptr // see AheadBF16
	chooser chooser
	picks   chooser // for int8
}

// MR is the number of rows in a panel of A: row ranges of a packed A may be split at its multiples.
func MR() int { return cur.mr }

// NR is the number of columns in a panel of B.
func NR() int { return cur.nr }

// Gemm: c[m,n] = op(a)·op(b), or c += with accumulate. a is [m,k] ([k,m] when transA), b [k,n] ([n,k] when transB);
// lda, ldb, ldc are row pitches in elements. Each element of c is one chain of multiply-adds in the order of k that
// begins with c's old value or 0: its bits do not depend on m, n or its position.
func Gemm(m, n, k int, a []float32, lda int, transA bool, b []float32, ldb int, transB bool,
	c []float32, ldc int, accumulate bool, s *Scratch) {
	const mc, nc = 168, 192 // blocks of A and B that fit in L2; multiples of every mr and nr
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	for j := 0; j < n; j += nc {
		cols := min(nc, n-j)
		for p := 0; p < k; p += KC {
			depth := min(KC, k-p)
			pb := s.B(SizeB(depth, cols))
			PackB(pb, depth, cols, b[at(p, j, ldb, transB):], ldb, transB)
			for i := 0; i < m; i += mc {
				rows := min(mc, m-i)
				pa := s.A(SizeA(rows, depth))
				PackA(pa, rows, depth, a[at(i, p, lda, transA):], lda, transA)
				GemmPacked(rows, cols, depth, pa, pb, c[i*ldc+j:], ldc, accumulate || p > 0)
			}
		}
	}
}

// GemmPacked is Gemm on operands from PackA and PackB. It is fastest with k up to KC and a B of up to half of L2.
// Splitting k into parts, the later ones accumulating, changes no bit of the result.
func GemmPacked(m, n, k int, pa, pb []float32, c []float32, ldc int, accumulate bool) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	if len(pa) < m*k || len(pb) < SizeB(k, n) || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: packed gemm %d×%d×%d on %d, %d and %d (ld %d) elements", m, n, k, len(pa),
			len(pb), len(c), ldc))
	}
	for i := 0; i < m; i += cur.mr {
		tiledRow(min(cur.mr, m-i), n, k, pa[i*k:], pb, k*cur.nr, c[i*ldc:], ldc, accumulate)
	}
}

// tiledRow covers up to mr rows of C, whose panel of A is pa, with the available tiles.
func tiledRow(rows, n, k int, pa, pb []float32, panel int, c []float32, ldc int, accumulate bool) {
	cover(cur.tiles, rows, n, k, pa, rows, pb, panel, c, ldc, accumulate)
}

// cover covers rows of C with tiles. a's steps of k are stride elements apart.
func cover(tiles []tile, rows, n, k int, a []float32, stride int, pb []float32, panel int, c []float32, ldc int,
	accumulate bool) {
	i := 0
	for _, t := range tiles {
		for ; rows-i >= t.rows; i += t.rows {
			t.run(k, &a[i], stride, &pb[0], panel, &c[i*ldc], ldc, n, accumulate)
		}
	}
}

func zeroRows(m, n int, c []float32, ldc int, accumulate bool) {
	if accumulate {
		return
	}
	for i := range m {
		clear(c[i*ldc : i*ldc+n])
	}
}

// at is the offset of element (row, col) of op(x).
func at(row, col, ld int, trans bool) int {
	if trans {
		return col*ld + row
	}
	return row*ld + col
}
