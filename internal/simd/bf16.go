package simd

import (
	"fmt"
	"unsafe"
)

// bf16Kernels is one implementation of products of bfloat16 values with float32 sums.
//
// Operands are packed in panels of 32 rows of A or 32 columns of B. A panel is a sequence of steps of 32 along k, each
// two tiles of 16 rows or columns: 16 lines of 32 values. Line i of a tile of A is row i; line p of a tile of B holds
// elements 2p and 2p+1 of k for each of its 16 columns. Everything is padded with zeros.
type bf16Kernels struct {
	floats  packers[float32]
	halves  packers[uint16]
	product func(*gemmBF16)
	// direct means that product can also write C in bfloat16, and take rows of A unpacked.
	direct bool
	few    []fewBF16
	// fewAlike means that few sums exactly like product, bit for bit.
	fewAlike bool
	// ordered means that product first reorders all of A.
	ordered bool
	// one is that of a single row that reads group panels side by side; panels is a multiple of that. Without it group
	// is 0.
	one   fewBF16
	group int
}

// fewBF16 computes c[i·ldc+j] += Σ_p a[i·lda+p]·b[p,j] for all its rows i and j < 32·panels, where a holds bfloat16
// values and b's panels lie stride bytes apart.
type fewBF16 func(steps int, a *float32, lda int, b *uint16, c *float32, ldc, panels, stride int)

const (
	// PanelBF16 is the number of rows or columns of a bfloat16 panel, and of the elements of k in one step of it.
	PanelBF16 = 32
	tileBF16  = 16
	// fewPanels is the number of panels that few rows process at once: a step of each stays in L1.
	fewPanels = 6
	// maxPartial is the number of tiles whose sums are stored between runs of k, 4 KiB each. There is room for one
	// more, because kernels read past the last.
	maxPartial = 192
	stepBF16   = PanelBF16 * PanelBF16 // values of a step
)

// up32 is n rounded up to whole panels or steps.
func up32(n int) int { return (n + PanelBF16 - 1) &^ (PanelBF16 - 1) }

// SizeBF16 is the number of values of a packed operand with k elements along k and across ones across: rows of A or
// columns of B. Rows or columns from i on begin at SizeBF16(i, k), elements of k from p on 32·p values into each
// panel, for every i and p that is a multiple of PanelBF16.
func SizeBF16(across, k int) int { return up32(across) * up32(k) }

// FloatsBF16 is the size of that operand in floats; see Halves.
func FloatsBF16(across, k int) int { return SizeBF16(across, k) / 2 }

// panelsBF16 is the extent of the first k elements of panels that are depth long.
func panelsBF16(across, k, depth int) int {
	return (across-1)/PanelBF16*SizeBF16(PanelBF16, depth) + SizeBF16(PanelBF16, k)
}

// GemmBF16: c[m,n] = a·b, or c += with accumulate, for operands from PackABF16 and PackBBF16. depth is the number of
// elements of k that b was packed with: k, or more if only the first of them, or those after a multiple of PanelBF16,
// are used. The sum of an element is a chain of one addition per step of 32 elements of k: its bits do not depend on m,
// n or its position, and k may be split at multiples of 32. far requests non-temporal stores: c is part of a matrix
// that is larger than the caches, and not read soon.
func GemmBF16(m, n, k int, pa, pb []uint16, depth int, c View, accumulate, far bool, s *Scratch) {
	GemmPartBF16(m, n, k, pa, pb, depth, c, accumulate, far, true, true, s)
}

// partBF16 reports whether the sums of m × n elements fit in L2 between the parts of GemmPartBF16.
func partBF16(m, n int) bool { return up32(m)/PanelBF16*(up32(n)/PanelBF16) <= maxPartial }

// GemmPartBF16 is GemmBF16 of a part of k, one after the other: only after the last one are all sums in c. No other
// product may come in between. accumulate is that of the whole.
func GemmPartBF16(m, n, k int, pa, pb []uint16, depth int, c View, accumulate, far, first, last bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if len(pa) < SizeBF16(m, k) {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d on %d packed elements", m, n, k, len(pa)))
	}
	a := leftBF16{values: pa, stride: SizeBF16(PanelBF16, k)}
	a.run(m, n, k, pb, depth, c, accumulate, far, first, last, s)
}

// AheadBF16 makes the next GemmPartBF16 on s prefetch packed values that it does not use, instead of the columns of b
// that it needs next: for a b that is in L2 already. 1/8 of the left operand's size is fetched for each panel of
// columns.
func (s *Scratch) AheadBF16(values []uint16) {
	s.ahead = uintptr(unsafe.Pointer(unsafe.SliceData(values)))
}

// RowsBF16 reports whether rows of a, k elements each, are suitable for GemmRowsBF16: they begin and end with cache
// lines, of bfloat16, and do not all map to the same sets of L1.
func RowsBF16(a View, k int) bool {
	const line = 32
	return cur.direct && a.H != nil && k%PanelBF16 == 0 && a.Ld%line == 0 && a.Ld%(64*line) != 0 &&
		uintptr(unsafe.Pointer(&a.H[0]))%(2*line) == 0
}

// GemmRowsBF16 is GemmPartBF16 with an unpacked a [m,k], if RowsBF16 agrees. a should be in L2.
func GemmRowsBF16(m, n, k int, a View, pb []uint16, depth int, c View, accumulate, far, first, last bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if len(a.H) < (m-1)*a.Ld+k || !RowsBF16(a, k) {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d on rows of %d elements (ld %d)", m, n, k, len(a.H), a.Ld))
	}
	rows := leftBF16{values: a.H, ld: a.Ld}
	rows.run(m, n, k, pb, depth, c, accumulate, far, first, last, s)
}

// leftBF16 is a left operand: panels stride values apart or, where that is 0, rows ld values apart.
type leftBF16 struct {
	values     []uint16
	stride, ld int
}

// run is one product.
func (a *leftBF16) run(m, n, k int, pb []uint16, depth int, c View, accumulate, far, first, last bool, s *Scratch) {
	if c.size() < (m-1)*c.Ld+n || k > 0 && len(pb) < panelsBF16(n, k, depth) || !(first && last || partBF16(m, n)) {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d of %d on %d and %d (ld %d) elements", m, n, k, depth, len(pb),
			c.size(), c.Ld))
	}
	if c.H != nil && (!cur.direct || k == 0) {
		a.narrow(m, n, k, pb, depth, c, accumulate, first, last, s)
		return
	}
	if k == 0 {
		zeroRows(m, n, c.X, c.Ld, accumulate)
		return
	}
	g := &s.bf16
	*g = gemmBF16{&cur.bf16Kernels, m, n, up32(k) / PanelBF16, a.values, pb, a.stride,
		SizeBF16(PanelBF16, depth), c.X, c.Ld, accumulate || !first, s, far, first, last, a.ld, c.H}
	cur.product(g)
	s.ahead = 0
}

// narrow is run into bfloat16 without tiles: through float32 sums, rounded once after the last part.
func (a *leftBF16) narrow(m, n, k int, pb []uint16, depth int, c View, accumulate, first, last bool, s *Scratch) {
	wide := View{X: Grow(&s.sums, m*n), Ld: n}
	for r := 0; r < m && first && accumulate; r++ {
		WidenBF16(wide.X[r*n:(r+1)*n], c.H[r*c.Ld:][:n])
	}
	a.run(m, n, k, pb, depth, wide, accumulate, false, first, last, s)
	for r := 0; r < m && last; r++ {
		NarrowBF16(c.H[r*c.Ld:][:n], wide.X[r*n:(r+1)*n])
	}
}

// FewBF16 is the largest m for which GemmFewBF16 is worth calling, 0 where it never is.
func FewBF16() int {
	if !cur.fewAlike {
		return 0
	}
	return len(cur.few)
}

// FewColumns is the number of columns that a single row processes at once in GemmFewBF16 and GemmInt8: work is best
// divided at its multiples.
func FewColumns() int { return PanelBF16 * max(1, cur.group) }

// GemmFewBF16 is GemmBF16 for few rows of a that are not packed: [m, up to a multiple of 32 of k, zeros from k on],
// holding bfloat16 values. Its cost is reading b. It gives the same bits.
func GemmFewBF16(m, n, k int, a []float32, lda int, pb []uint16, c []float32, ldc int, accumulate bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	if len(a) < (m-1)*lda+up32(k) || len(pb) < SizeBF16(n, k) || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d on %d (ld %d), %d and %d (ld %d) elements", m, n, k, len(a), lda,
			len(pb), len(c), ldc))
	}
	g := s.few(m, n, k, c, ldc, accumulate)
	g.fewRows(0, m, a, lda, func(j, rows, panels int, a, c *float32, ldc int) {
		kernel := g.few[rows-1]
		if rows == 1 && g.group > 0 && panels%g.group == 0 {
			kernel = g.one
		}
		kernel(g.steps, a, lda, &pb[SizeBF16(j, k)], c, ldc, panels, 2*SizeBF16(PanelBF16, k))
	})
}

// few is a product of rows that are not packed.
func (s *Scratch) few(m, n, k int, c []float32, ldc int, accumulate bool) *gemmBF16 {
	s.bf16 = gemmBF16{bf16Kernels: &cur.bf16Kernels, m: m, n: n, steps: up32(k) / PanelBF16, c: c, ldc: ldc,
		accumulate: accumulate, s: s}
	return &s.bf16
}

// ReserveBF16 grows s for products of up to m × n × k, so that none of them allocates.
func (s *Scratch) ReserveBF16(m, n, k int) {
	Grow(&s.edge, PanelBF16*(up32(m)+up32(n)))
	if cur.ordered {
		Grow(&s.wide, up32(m)*up32(k)/2)
		Grow(&s.below, PanelBF16*up32(k)/2)
	}
	Grow(&s.wide, PanelBF16*up32(k))
	Grow(&s.tile, stepBF16)
	Grow(&s.partial, stepBF16*(maxPartial+1))
	if cur.direct {
		Grow(&s.below, PanelBF16*up32(k)/2)
	} else {
		Grow(&s.sums, m*n)
	}
}

// gemmBF16 is one product: steps of k, packed panels strideA and strideB values apart.
type gemmBF16 struct {
	*bf16Kernels
	m, n, steps      int
	a, b             []uint16
	strideA, strideB int
	c                []float32
	ldc              int
	accumulate       bool
	s                *Scratch
	far              bool     // C is large: non-temporal stores
	first, last      bool     // part of k
	lda              int      // where A's rows are not packed
	h                []uint16 // C in bfloat16
}

// pad copies the m × n elements of C starting at (i,j) to padded memory, unpad copies them back.
func (g *gemmBF16) pad(to View, i, j, m, n int) {
	for r := range m {
		copy(to.X[r*to.Ld:][:n], g.c[(i+r)*g.ldc+j:])
	}
}

func (g *gemmBF16) unpad(from View, i, j, m, n int) {
	for r := range m {
		copy(g.c[(i+r)*g.ldc+j:][:n], from.X[r*from.Ld:])
	}
}

// row is the start of row r of A: its lines of 32 values are stepBF16 apart.
func (g *gemmBF16) row(r int) []uint16 {
	return g.a[r/PanelBF16*g.strideA+r%PanelBF16*PanelBF16:]
}
