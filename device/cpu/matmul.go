package cpu

import (
	"unsafe"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// gemm is one matrix product in progress. A is packed once, by all workers, into shared memory, unless its rows can be
// read in place; then every tile of C packs its own columns of B, a run of k at a time, and multiplies all its rows of
// A by them. If several tiles share their columns, B is packed together with A in the first pass. An element of C is
// one chain of multiply-adds in the order of k (see simd.Gemm), so tiles may be sized by the number of workers.
type gemm struct {
	d              *machine
	c, a, b        []float32
	ldc, lda, ldb  int
	transA, transB bool
	accumulate     bool // of the current block of k

	m, n, k    int // the current block: rows [i0,i0+m), run [p0,p0+k) of a larger product
	i0, p0     int
	packed     []float32 // runs of k one after the other, each a packed A of m rows; nil if A is read in place
	packedB    []float32 // runs of k one after the other, each a packed B of n columns; nil if tiles pack their own
	mc, nc, kc int       // tile of C, run of k
	own        bool      // tiles pack their own rows of A, instead of the first pass
	inPlace    bool      // A is not packed at all
}

// gemmPack packs A, gemmPackRight packs B; gemmTiles computes C; gemmSkinny computes a C of very few rows. All are
// views of one gemm.
type (
	gemmPack      gemm
	gemmPackRight gemm
	gemmTiles     gemm
	gemmSkinny    gemm
)

// maxPacked bounds the packed A, in elements: larger products are done in blocks.
const maxPacked = 4 << 20

// MatMul: c = op(a)·op(b), or c += with Accumulate.
func (d *products) MatMul(c, a, b tensor.Tensor, op device.MatMul) {
	device.CheckMatMul(c, a, b, op, d.Types())
	d.touch(c)
	k := a.Cols
	if op.TransA {
		k = a.Rows
	}
	d.gemm(matOf(c), matOf(a), matOf(b), k, op)
}

// gemm is MatMul on matrices of valid shapes.
func (d *products) gemm(c, a, b mat, k int, op device.MatMul) {
	if c.rows == 0 || c.cols == 0 {
		return
	}
	if k == 0 {
		if !op.Accumulate {
			c.clear()
		}
		return
	}
	switch {
	case d.precision == Int8 && op == (device.MatMul{TransB: true}):
		d.gemmInt8(c, a, b, k)
		return
	case d.precision != FP32:
		d.gemmBF16(c, a, b, k, op)
		return
	}
	if c.rows <= simd.SkinnyRows() && op.TransB && !op.TransA {
		d.skinny(c, a, b, k, op.Accumulate)
		return
	}
	mr := simd.MR()
	depth := min(k, max(simd.KC, d.maxPacked/c.rows/simd.KC*simd.KC))
	rows := min(c.rows, max(mr, d.maxPacked/depth/mr*mr))
	g := &d.matmul
	for i0 := 0; i0 < c.rows; i0 += rows {
		for p0 := 0; p0 < k; p0 += depth {
			*g = gemm{d: d.machine, c: c.x, a: a.x, b: b.x, ldc: c.ld, lda: a.ld, ldb: b.ld,
				transA: op.TransA, transB: op.TransB, accumulate: op.Accumulate || p0 > 0,
				m: min(rows, c.rows-i0), n: c.cols, k: min(depth, k-p0), i0: i0, p0: p0}
			g.block()
		}
	}
}

// skinny is the product of decoding: few rows times a weight. The weight is read once, unpacked, in ranges of whole
// rows of W; the sums are bit-identical to those of the tiles.
func (d *products) skinny(c, a, b mat, k int, accumulate bool) {
	g := &d.matmul
	*g = gemm{d: d.machine, c: c.x, a: a.x, b: b.x, ldc: c.ld, lda: a.ld, ldb: b.ld,
		accumulate: accumulate, m: c.rows, n: c.cols, k: k}
	g.nc = max(32, (g.n/(8*len(d.workers))+31)/32*32)
	tiles := (g.n + g.nc - 1) / g.nc
	d.follow(span{uintptr(unsafe.Pointer(&b.x[0])), 4 * b.ld * g.nc, tiles})
	d.run(tiles, (*gemmSkinny)(g))
}

func (g *gemmSkinny) tile(i, worker int) {
	c0 := i * g.nc
	simd.GemmSkinny(g.m, min(g.nc, g.n-c0), g.k, g.a, g.lda, g.b[c0*g.ldb:], g.ldb, g.c[c0:], g.ldc,
		g.accumulate, g.d.scratch(worker))
}

// packPanels is the panels of A or B in one tile of packing.
const packPanels = 4

// block runs both passes over the current block.
func (g *gemm) block() {
	g.cut()
	sizeA, sizeB := simd.SizeA(g.m, g.k), simd.SizeB(g.k, g.n)
	if g.own || g.inPlace {
		sizeA = 0
	}
	if g.mc >= g.m {
		sizeB = 0
	}
	room := g.d.room(sizeA + sizeB)
	runs := (g.k + g.kc - 1) / g.kc
	g.packed, g.packedB = nil, nil
	if sizeA > 0 {
		g.packed = room[:sizeA]
		g.d.run(runs*packTiles(g.m, simd.MR()), (*gemmPack)(g))
	}
	if sizeB > 0 {
		g.packedB = room[sizeA:]
		g.d.run(runs*packTiles(g.n, simd.NR()), (*gemmPackRight)(g))
	}
	g.d.run((g.m+g.mc-1)/g.mc*((g.n+g.nc-1)/g.nc), (*gemmTiles)(g))
}

// packTiles is the number of tiles of packing across an operand.
func packTiles(across, width int) int { return (across + packPanels*width - 1) / (packPanels * width) }

// ownColumns is the maximum number of columns of C of a gradient that is done in strips of up to ownRows rows, ownRun
// its run of k: rows and columns together fill less than L2. (Reading such an A in place, without packing, gains up to
// 10 % on Sapphire Rapids, but a processor with an L1 of 32 KB takes up to 1.8 times as long.)
const ownColumns, ownRows, ownRun = 512, 168, 384

// cut picks the tile of C and the run of k. A wide tile uses a panel of A, fetched from L3, for many columns of B; 192
// × KC of them fill less than a third of L2. Few rows of A (decoding) are bound by reading B: there a narrow part is
// packed and used while it is in L1. A gradient of few columns is done in strips of rows: each is packed where it is
// used, so that the larger operand is not written to memory again.
func (g *gemm) cut() {
	const wide = 192
	mr, nr := simd.MR(), simd.NR()
	g.inPlace = simd.PlainA() && !g.transA
	want := 4 * len(g.d.workers) // tiles, so that a slow worker does not delay the rest for long
	switch {
	case g.m <= mr:
		g.mc, g.nc, g.kc = g.m, nr, evenRun(g.k, simd.KC/3)
	case g.transA && g.n <= ownColumns && g.n <= g.m:
		g.own = true
		strips := max(want, (g.m+ownRows-1)/ownRows)
		g.mc, g.nc, g.kc = max(2*mr, (g.m/strips+mr-1)/mr*mr), g.n, evenRun(g.k, ownRun)
	default:
		g.mc, g.nc, g.kc = g.m, wide, evenRun(g.k, simd.KC)
		if across := (g.n + g.nc - 1) / g.nc; across < want {
			parts := (want + across - 1) / across
			g.mc = max(8*mr, (g.m/parts+mr-1)/mr*mr)
		}
	}
}

// evenRun divides k into runs of at most limit, a multiple of 16, of about the same length.
func evenRun(k, limit int) int {
	runs := (k + limit - 1) / limit
	return ((k+runs-1)/runs + 15) / 16 * 16
}

func (g *gemmPack) tile(i, _ int) {
	across := packTiles(g.m, simd.MR())
	r0, p0 := i%across*packPanels*simd.MR(), i/across*g.kc
	rows, depth := min(packPanels*simd.MR(), g.m-r0), min(g.kc, g.k-p0)
	simd.PackA(g.packed[p0*g.m+r0*depth:], rows, depth, g.a[(*gemm)(g).atA(r0, p0):], g.lda, g.transA)
}

func (g *gemmPackRight) tile(i, _ int) {
	across := packTiles(g.n, simd.NR())
	c0, p0 := i%across*packPanels*simd.NR(), i/across*g.kc
	cols, depth := min(packPanels*simd.NR(), g.n-c0), min(g.kc, g.k-p0)
	simd.PackB(g.packedB[simd.SizeB(p0, g.n)+c0*depth:], depth, cols, g.b[(*gemm)(g).atB(p0, c0):], g.ldb, g.transB)
}

// atA and atB are the offsets of element (r,p) of the block's A and (p,c) of its B.
func (g *gemm) atA(r, p int) int {
	if g.transA {
		return (g.p0+p)*g.lda + g.i0 + r
	}
	return (g.i0+r)*g.lda + g.p0 + p
}

func (g *gemm) atB(p, c int) int {
	if g.transB {
		return c*g.ldb + g.p0 + p
	}
	return (g.p0+p)*g.ldb + c
}

func (g *gemmTiles) tile(i, worker int) {
	down := (g.m + g.mc - 1) / g.mc
	r0, c0 := i%down*g.mc, i/down*g.nc
	rows, cols := min(g.mc, g.m-r0), min(g.nc, g.n-c0)
	c := g.c[(g.i0+r0)*g.ldc+c0:]
	for p0 := 0; p0 < g.k; p0 += g.kc {
		depth := min(g.kc, g.k-p0)
		pb := (*gemm)(g).columns(p0, depth, c0, cols, worker)
		switch {
		case g.own:
			pa := g.d.scratch(worker).A(simd.SizeA(rows, depth))
			simd.PackA(pa, rows, depth, g.a[(*gemm)(g).atA(r0, p0):], g.lda, g.transA)
			simd.GemmPacked(rows, cols, depth, pa, pb, c, g.ldc, g.accumulate || p0 > 0)
		case g.inPlace:
			simd.GemmPlain(rows, cols, depth, g.a[(*gemm)(g).atA(r0, p0):], g.lda, pb, depth, c, g.ldc, g.accumulate ||
				p0 > 0, simd.NoDiag, nil)
		default:
			simd.GemmPacked(rows, cols, depth, g.packed[p0*g.m+r0*depth:], pb, c, g.ldc, g.accumulate || p0 > 0)
		}
	}
}

// columns are packed columns of B for a run of k: shared, or packed here.
func (g *gemm) columns(p0, depth, c0, cols, worker int) []float32 {
	if g.packedB != nil {
		return g.packedB[simd.SizeB(p0, g.n)+c0*depth:]
	}
	pb := g.d.scratch(worker).B(simd.SizeB(depth, cols))
	simd.PackB(pb, depth, cols, g.b[g.atB(p0, c0):], g.ldb, g.transB)
	return pb
}
