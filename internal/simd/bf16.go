package simd

import "fmt"

// bf16Kernels is one implementation of products of bfloat16 values with float32 sums.
//
// Operands are packed in panels of 32 rows of A or 32 columns of B. A panel is a run of steps of 32 along k, each two tiles
// of 16 rows or columns: 16 lines of 32 values. Line i of a tile of A is row i; line p of a tile of B
// holds elements 2p and 2p+1 of k for each of its 16 columns. Everything is filled up with zeros.
type bf16Kernels struct {
	packers
	product func(*gemmBF16)
	// expPack writes a row of a packed A, see ExpPackBF16. It may be absent.
	expPack func(dst *uint16, src *float32, n, steps int, scale, shift float32) float32
	few     []fewBF16
	// fewAlike says that few sums as product does, bit for bit.
	fewAlike bool
	fewInt8  []fewInt8
	// one and oneInt8 are those of a single row that read group panels side by side; panels is a multiple of that.
	// Without them group is 0.
	one     fewBF16
	oneInt8 fewInt8
	group   int
	// widen turns lines of a panel of bytes into lines of one of bfloat16. Absent where few bytes do for any number of rows.
	widen func(dst *uint16, src *int8, lines int)
}

// packers convert blocks of 16 × 32 elements, one tile for each of steps steps of k, a panel's step apart.
type packers struct {
	lines     func(dst *uint16, src *float32, ld, steps int) // A [m,k]
	linesTurn func(dst *uint16, src *float32, ld, steps int) // B [n,k]
	pairs     func(dst *uint16, src *float32, ld, steps int) // B [k,n]
	pairsTurn func(dst *uint16, src *float32, ld, steps int) // A [k,m]
}

// fewBF16 computes c[i·ldc+j] += Σ_p a[i·lda+p]·b[p,j] for all its rows i and j < 32·panels, where a holds bfloat16 values and
// b's panels lie stride bytes apart. fewInt8 does it for bytes.
type (
	fewBF16 func(steps int, a *float32, lda int, b *uint16, c *float32, ldc, panels, stride int)
	fewInt8 func(steps int, a *float32, lda int, b *int8, c *float32, ldc, panels, stride int)
)

const (
	// PanelBF16 is the number of rows or columns of a bfloat16 panel, and of the elements of k in one step of it.
	PanelBF16 = 32
	tileBF16  = 16
	// fewPanels is the number of panels that few rows meet at once: a step of each stays in the first cache.
	fewPanels = 6
	stepBF16  = PanelBF16 * PanelBF16 // values of a step
)

// up32 is n rounded up to whole panels or steps.
func up32(n int) int { return (n + PanelBF16 - 1) &^ (PanelBF16 - 1) }

// SizeBF16 is the number of values of a packed operand with k elements along k and across ones across: rows of A or
// columns of B. Rows or columns from i on begin at SizeBF16(i, k), elements of k from p on 32·p values into each
// panel, for every i and p that is a multiple of PanelBF16.
func SizeBF16(across, k int) int { return up32(across) * up32(k) }

// panelsBF16 is the extent of the first k elements of panels that are depth long.
func panelsBF16(across, k, depth int) int {
	return (across-1)/PanelBF16*SizeBF16(PanelBF16, depth) + SizeBF16(PanelBF16, k)
}

// PackABF16 rounds op(a) [m,k] to bfloat16 and packs it. a is [k,m] when trans.
func PackABF16(dst []uint16, m, k int, a []float32, lda int, trans bool) {
	packBF16(dst, m, k, a, lda, trans, false, k)
}

// PackBBF16 rounds op(b) [k,n] to bfloat16 and packs it. b is [n,k] when trans. depth is k, or that of a larger operand of
// which this is a part: steps from element p of k on go to dst[32·p:].
func PackBBF16(dst []uint16, k, n int, b []float32, ldb int, trans bool, depth int) {
	packBF16(dst, n, k, b, ldb, !trans, true, depth)
}

// packBF16 packs a matrix with k along its rows in memory, or down its columns when down, in A's layout or in B's.
func packBF16(dst []uint16, across, k int, src []float32, ld int, down, b bool, depth int) {
	if across == 0 || k == 0 {
		return
	}
	rows, cols := across, k
	if down {
		rows, cols = k, across
	}
	if len(dst) < panelsBF16(across, k, depth) || len(src) < (rows-1)*ld+cols {
		panic(fmt.Sprintf("simd: pack bf16 of %d×%d (ld %d) from %d into %d elements", rows, cols, ld, len(src), len(dst)))
	}
	steps, kernel := up32(k)/PanelBF16, cur.packer(down, b)
	if !down {
		for i := 0; i < up32(across); i += tileBF16 {
			packTiles(dst[i/PanelBF16*SizeBF16(PanelBF16, depth):], across, k, src, ld, i, 0, steps, down, b, kernel)
		}
		return
	}
	// All of a few rows are packed before the next ones are fetched.
	for s := range steps {
		for i := 0; i < up32(across); i += tileBF16 {
			packTiles(dst[i/PanelBF16*SizeBF16(PanelBF16, depth):], across, k, src, ld, i, s, s+1, down, b, kernel)
		}
	}
}

// packTiles packs steps from … to−1 of the tiles of row (or column) i into its panel.
func packTiles(panel []uint16, across, k int, src []float32, ld, i, from, to int, down, b bool, kernel func(dst *uint16, src *float32, ld, steps int)) {
	panel = panel[i%PanelBF16*PanelBF16:]
	n := max(0, min(tileBF16, across-i))
	if whole := min(to, k/PanelBF16); n == tileBF16 && from < whole {
		kernel(&panel[from*stepBF16], &src[at(i, from*PanelBF16, ld, down)], ld, whole-from)
		from = whole
	}
	for s := from; s < to; s++ {
		tile, p := panel[s*stepBF16:][:tileBF16*PanelBF16], s*PanelBF16
		clear(tile)
		if n > 0 {
			packTile(tile, src[at(i, p, ld, down):], ld, n, min(PanelBF16, k-p), down, b)
		}
	}
}

// packer is the kernel for a layout in memory and a layout of panels.
func (k *bf16Kernels) packer(down, b bool) func(dst *uint16, src *float32, ld, steps int) {
	switch {
	case down && b:
		return k.pairs
	case down:
		return k.pairsTurn
	case b:
		return k.linesTurn
	}
	return k.lines
}

// packTile packs n rows (of A, or columns of B) and depth elements of k into a tile of zeros, one by one: the plain form
// of the packers, and the ragged edges of all.
func packTile(tile []uint16, src []float32, ld, n, depth int, down, b bool) {
	for i := range n {
		for p := range depth {
			to := i*PanelBF16 + p
			if b {
				to = p/2*PanelBF16 + 2*i + p%2
			}
			tile[to] = bf16Of(src[at(i, p, ld, down)])
		}
	}
}

// GemmBF16: c[m,n] = a·b, or c += with accumulate, for operands from PackABF16 and PackBBF16. depth is the number of
// elements of k that b was packed with: k, or more when the first of them or a multiple of PanelBF16 further on are wanted.
// The sum of an element is a chain of one addition per step of 32 elements of k: its bits do not depend on m, n or its
// place, and k may be cut at multiples of 32. far says that c had better not go through the caches: it is part of a
// matrix that is larger than they are, and not read soon.
func GemmBF16(m, n, k int, pa, pb []uint16, depth int, c []float32, ldc int, accumulate, far bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	if len(pa) < SizeBF16(m, k) || len(pb) < panelsBF16(n, k, depth) || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d of %d on %d, %d and %d (ld %d) elements", m, n, k, depth, len(pa), len(pb), len(c), ldc))
	}
	g := &s.bf16
	*g = gemmBF16{&cur.bf16Kernels, m, n, up32(k) / PanelBF16, pa, pb, SizeBF16(PanelBF16, k), SizeBF16(PanelBF16, depth), c, ldc, accumulate, s, far}
	cur.product(g)
}

// ExpPackBF16 writes row of a packed A of k = len(src) elements: exp(scale·src − shift) for the first n, 0 for the others. The
// sum of the row, before it is rounded, is returned. src is lost.
func ExpPackBF16(pa []uint16, row int, src []float32, n int, scale, shift float32) float32 {
	k := len(src)
	lines := pa[row/PanelBF16*SizeBF16(PanelBF16, k)+row%PanelBF16*PanelBF16:]
	steps := up32(k) / PanelBF16
	if n < 0 || n > k || k == 0 || len(lines) < (steps-1)*stepBF16+PanelBF16 {
		panic(fmt.Sprintf("simd: exp of %d of %d elements into row %d of %d", n, k, row, len(pa)))
	}
	if cur.expPack != nil {
		return cur.expPack(&lines[0], &src[0], n, steps, scale, shift)
	}
	sum := cur.expSum(src[:n], src[:n], scale, shift)
	clear(src[n:])
	for s := range steps {
		line := lines[s*stepBF16:][:PanelBF16]
		clear(line)
		for p, x := range src[s*PanelBF16 : min(k, (s+1)*PanelBF16)] {
			line[p] = bf16Of(x)
		}
	}
	return sum
}

// FewBF16 is the largest m for which GemmFewBF16 is worth calling, 0 where it never is.
func FewBF16() int {
	if !cur.fewAlike {
		return 0
	}
	return len(cur.few)
}

// FewColumns is the number of columns that a single row meets at once in GemmFewBF16 and GemmInt8: work is best cut at its multiples.
func FewColumns() int { return PanelBF16 * max(1, cur.group) }

// GemmFewBF16 is GemmBF16 for few rows of a that are not packed: [m, up to a multiple of 32 of k, zeros from k on], holding
// bfloat16 values. Its cost is reading b. It gives the same bits.
func GemmFewBF16(m, n, k int, a []float32, lda int, pb []uint16, c []float32, ldc int, accumulate bool, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, accumulate)
		return
	}
	if len(a) < (m-1)*lda+up32(k) || len(pb) < SizeBF16(n, k) || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: bf16 gemm %d×%d×%d on %d (ld %d), %d and %d (ld %d) elements", m, n, k, len(a), lda, len(pb), len(c), ldc))
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
	s.bf16 = gemmBF16{bf16Kernels: &cur.bf16Kernels, m: m, n: n, steps: up32(k) / PanelBF16, c: c, ldc: ldc, accumulate: accumulate, s: s}
	return &s.bf16
}

// ReserveBF16 grows s for products of up to m × n × k, so that none of them allocates.
func (s *Scratch) ReserveBF16(m, n, k int) {
	grow(&s.edge, PanelBF16*up32(max(m, n)))
	grow(&s.wide, PanelBF16*up32(k))
	grow(&s.tile, stepBF16)
}

// gemmBF16 is one product of packed operands: steps of k, panels strideA and strideB values apart.
type gemmBF16 struct {
	*bf16Kernels
	m, n, steps      int
	a, b             []uint16
	strideA, strideB int
	c                []float32
	ldc              int
	accumulate       bool
	s                *Scratch
	far              bool // C is large: written around the caches
}

// edge runs f on a padded copy of the m × n elements of C from (i,j) on, its rows ld elements apart, and takes their results.
// load says that f adds to what is there.
func (g *gemmBF16) edge(i, j, m, n, rows, ld int, load bool, f func(c []float32)) {
	buf := grow(&g.s.edge, rows*ld)
	if load {
		for r := range m {
			copy(buf[r*ld:][:n], g.c[(i+r)*g.ldc+j:])
		}
	}
	f(buf)
	for r := range m {
		copy(g.c[(i+r)*g.ldc+j:][:n], buf[r*ld:])
	}
}

// row is where row r of A begins: its lines of 32 values lie stepBF16 apart.
func (g *gemmBF16) row(r int) []uint16 {
	return g.a[r/PanelBF16*g.strideA+r%PanelBF16*PanelBF16:]
}

// tileArgs are the arguments of the tile kernels: rows × cols panels, C's rows ldc bytes and panels of A and B strideA and
// strideB bytes apart. The kernels change it.
type tileArgs struct {
	a, b             *uint16
	c, scratch       *float32
	config           *byte
	ldc, steps       int
	rows, cols       int
	strideA, strideB int
	load             int // 1: C is accumulated onto
	_                int // the kernel's own
}
