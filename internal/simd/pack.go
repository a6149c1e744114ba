package simd

import (
	"fmt"
	"unsafe"
)

// A is room for n elements of a packed A.
func (s *Scratch) A(n int) []float32 { return Grow(&s.a, n) }

// B is room for n elements of a packed B.
func (s *Scratch) B(n int) []float32 { return Grow(&s.b, n) }

// Grow is the first n elements of buf, which is replaced by a longer one where it is too short. Their content is
// arbitrary.
func Grow(buf *[]float32, n int) []float32 {
	if cap(*buf) < n {
		*buf = Aligned(n + n/4)
	}
	return (*buf)[:n]
}

// Cut takes the first n elements off buf.
func Cut(buf *[]float32, n int) []float32 {
	x := (*buf)[:n:n]
	*buf = (*buf)[n:]
	return x
}

// Aligned allocates n elements that begin on a cache line.
func Aligned(n int) []float32 {
	const line = 64
	raw := make([]float32, n+line/4)
	skip := (line - int(uintptr(unsafe.Pointer(&raw[0]))%line)) % line / 4
	return raw[skip : skip+n : skip+n]
}

// SizeA is the number of elements of a packed m × k operand.
func SizeA(m, k int) int { return m * k }

// SizeB is the number of elements of a packed k × n operand: its last panel is filled up with zeros.
func SizeB(k, n int) int { return (n + cur.nr - 1) / cur.nr * cur.nr * k }

// PackA lays op(a) [m,k] out in panels of MR rows, one after the other; a panel holds its rows' elements of k = 0,
// then those of k = 1 and so on. The last panel is as narrow as its rows, so that rows i… begin at element i·k
// for every multiple i of MR. a is [k,m] when trans.
func PackA(dst []float32, m, k int, a []float32, lda int, trans bool) {
	if m == 0 || k == 0 {
		return
	}
	mustFit("a", dst, SizeA(m, k), a, m, k, lda, trans)
	if trans {
		copyPanels(dst, m, k, a, lda, cur.mr, false)
		return
	}
	for i := 0; i < m; i += cur.mr {
		rows := min(cur.mr, m-i)
		transpose(dst[i*k:(i+rows)*k], rows, a[i*lda:], lda, rows, k)
	}
}

// PackB lays op(b) [k,n] out in panels of NR columns, the same way; the last one is filled up with zeros.
// Columns j… begin at element j·k for every multiple j of NR. b is [n,k] when trans.
func PackB(dst []float32, k, n int, b []float32, ldb int, trans bool) {
	if n == 0 || k == 0 {
		return
	}
	mustFit("b", dst, SizeB(k, n), b, n, k, ldb, !trans)
	nr := cur.nr
	if whole := n / nr * nr; whole < n {
		clear(dst[whole*k : (whole+nr)*k])
	}
	if !trans {
		copyPanels(dst, n, k, b, ldb, nr, true)
		return
	}
	for j := 0; j < n; j += nr {
		transpose(dst[j*k:(j+nr)*k], nr, b[j*ldb:], ldb, min(nr, n-j), k)
	}
}

// copyPanels packs a matrix whose rows in memory run across the panels, a few rows at a time: their cache lines are
// used for all panels before they are evicted. full means that a narrow last panel has the width of the others.
func copyPanels(dst []float32, across, k int, src []float32, ld, width int, full bool) {
	const rows = 32
	for p := 0; p < k; p += rows {
		for i := 0; i < across; i += width {
			n := min(width, across-i)
			stride := n
			if full {
				stride = width
			}
			cur.copyPanel(&dst[i*k+p*stride], stride, &src[p*ld+i], ld, n, min(rows, k-p))
		}
	}
}

// transpose: dst[p·stride+i] = src[i·ld+p] for i < rows, p < k. The kernel does what it can: multiples of 4 of k, and
// rows that are followed by enough others in src for it to read.
func transpose(dst []float32, stride int, src []float32, ld, rows, k int) {
	whole := k &^ 3
	for i := 0; i < rows; i += cur.lanes {
		n, s := min(cur.lanes, rows-i), src[i*ld:]
		done := whole
		if len(s) < (cur.lanes-1)*ld+whole {
			done = 0
		}
		if done > 0 {
			cur.transpose(&dst[i], stride, &s[0], ld, n, done)
		}
		if done < k {
			transposeGeneric(&dst[done*stride+i], stride, &s[done], ld, n, k-done)
		}
	}
}

// mustFit checks one operand: across = m or n, trans when k runs over the rows in memory.
func mustFit(name string, dst []float32, size int, src []float32, across, k, ld int, trans bool) {
	rows, cols := across, k
	if trans {
		rows, cols = k, across
	}
	if len(dst) < size || len(src) < (rows-1)*ld+cols {
		panic(fmt.Sprintf("simd: pack %s of %d×%d (ld %d) from %d into %d elements", name, rows, cols, ld,
			len(src), len(dst)))
	}
}
