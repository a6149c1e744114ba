package simd

import "fmt"

// Products of attention's tiles. On the diagonal a query sees no later key: elements (i,j) of probabilities and logits
// [queries,keys] with j > i + diag are zeros, or not needed, and the multiply-adds with them are skipped, in units of
// whole tiles. Skipping a zero changes no bit of a sum. diag may be negative: then the first rows have no elements.
// NoDiag skips nothing.
const NoDiag = 1 << 30

// PlainA reports whether GemmPlain reads a unpacked.
func PlainA() bool { return cur.plains != nil }

// GemmPlain is GemmPacked for an a [m,k] that is not packed, rows lda elements apart, of which a(i,p) with p > i + diag
// is 0 and not read. b's panels are depth elements of k long.
func GemmPlain(m, n, k int, a []float32, lda int, pb []float32, depth int, c []float32, ldc int, accumulate bool,
	diag int, s *Scratch) {
	if m == 0 || n == 0 || k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	checkBand("plain", len(a) >= (m-1)*lda+k, m, n, k, a, pb, depth, c, ldc)
	if cur.plains == nil {
		gemmLeft(m, n, k, a, lda, pb, depth, c, ldc, accumulate, diag, s)
		return
	}
	i, panel := 0, depth*cur.nr
	for _, t := range cur.plains {
		for ; m-i >= t.rows; i += t.rows {
			end := reach(k, i+t.rows+diag)
			if end == 0 {
				zeroRows(t.rows, n, c[i*ldc:], ldc, accumulate)
				continue
			}
			t.run(end, &a[i*lda], lda, &pb[0], panel, &c[i*ldc], ldc, n, accumulate)
		}
	}
}

// GemmPlainBelow is GemmBelow for an a [m,k] that is not packed, rows lda elements apart. There must be tiles for it.
func GemmPlainBelow(m, n, k int, a []float32, lda int, pb []float32, c []float32, ldc int, diag int) {
	if m == 0 || n == 0 || k == 0 {
		zeroRows(m, n, c, ldc, false)
		return
	}
	checkBand("plain lower", cur.plains != nil && len(a) >= (m-1)*lda+k, m, n, k, a, pb, k, c, ldc)
	i := 0
	for _, t := range cur.plains {
		for ; m-i >= t.rows; i += t.rows {
			if cols := reach(n, i+t.rows+diag); cols > 0 {
				t.run(k, &a[i*lda], lda, &pb[0], k*cur.nr, &c[i*ldc], ldc, cols, false)
			}
		}
	}
}

// GemmTurnedLater is c [m,n] += aᵀ·b for an a [k,m] that is not packed, rows lda elements apart, of which a(p,i) with
// i > p + diag is 0 and not read. There must be tiles for it.
func GemmTurnedLater(m, n, k int, a []float32, lda int, pb []float32, c []float32, ldc int, diag int) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	checkBand("turned later", cur.turneds != nil && len(a) >= (k-1)*lda+m, m, n, k, a, pb, k, c, ldc)
	i := 0
	for _, t := range cur.turneds {
		for ; m-i >= t.rows; i += t.rows {
			if first := max(0, i-diag); first < k {
				t.run(k-first, &a[first*lda+i], lda, &pb[first*cur.nr], k*cur.nr, &c[i*ldc], ldc, n, true)
			}
		}
	}
}

// gemmLeft is GemmPlain by way of packed panels.
func gemmLeft(m, n, k int, a []float32, lda int, pb []float32, depth int, c []float32, ldc int, accumulate bool,
	diag int, s *Scratch) {
	for i := 0; i < m; i += cur.mr {
		rows := min(cur.mr, m-i)
		end := reach(k, i+rows+diag)
		if end == 0 {
			zeroRows(rows, n, c[i*ldc:], ldc, accumulate)
			continue
		}
		pa := s.A(rows * end)
		PackA(pa, rows, end, a[i*lda:], lda, false)
		tiledRow(rows, n, end, pa, pb, depth*cur.nr, c[i*ldc:], ldc, accumulate)
	}
}

// GemmBelow is GemmPacked if the elements c(i,j) with j > i + diag are not needed: they may be written or not.
func GemmBelow(m, n, k int, pa, pb []float32, c []float32, ldc int, diag int) {
	if m == 0 || n == 0 || k == 0 {
		zeroRows(m, n, c, ldc, false)
		return
	}
	checkBand("lower", len(pa) >= m*k, m, n, k, pa, pb, k, c, ldc)
	for i := 0; i < m; i += cur.mr {
		rows := min(cur.mr, m-i)
		if cols := reach(n, i+rows+diag); cols > 0 {
			tiledRow(rows, cols, k, pa[i*k:], pb, k*cur.nr, c[i*ldc:], ldc, false)
		}
	}
}

// reach is the number of n elements that come before the given one, which may be any.
func reach(n, before int) int { return max(0, min(n, before)) }

// GemmLater is GemmPacked where b(p,j) with j > p + diag is 0 and not read. b's panels are depth elements of k long; c
// is added to.
func GemmLater(m, n, k int, pa, pb []float32, depth int, c []float32, ldc int, diag int) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	checkBand("later", len(pa) >= m*k, m, n, k, pa, pb, depth, c, ldc)
	for i := 0; i < m; i += cur.mr {
		rows := min(cur.mr, m-i)
		for j := 0; j < n; {
			// Panels that begin with the same element of k go together: all of them, away from the diagonal.
			first, cols := max(0, j-diag), n-j
			if j+cur.nr > diag {
				cols = min(cols, cur.nr)
			} else {
				cols = min(cols, diag/cur.nr*cur.nr-j)
			}
			if first < k {
				tiledRow(rows, cols, k-first, pa[i*k+first*rows:], pb[j*depth+first*cur.nr:], depth*cur.nr,
					c[i*ldc+j:], ldc, true)
			}
			j += cols
		}
	}
}

func checkBand(name string, left bool, m, n, k int, a, pb []float32, depth int, c []float32, ldc int) {
	panels := (n+cur.nr-1)/cur.nr - 1
	if !left || k > depth || len(pb) < (panels*depth+k)*cur.nr || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: %s product %d×%d×%d on %d, %d (depth %d) and %d (ld %d) elements", name, m, n, k,
			len(a), len(pb), depth, len(c), ldc))
	}
}
