package cpu

import (
	"unsafe"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// gemmBF16 is one product of bfloat16 operands in progress. B is packed whole: a weight once for consecutive products
// (see weights), an activation by all workers for this one. A tile of C processes k in runs. Rows of A are multiplied
// in place if possible. Otherwise a tile packs the block of rows of a run just before it multiplies it, so that it is
// in L2 and no activation is written to memory again; if there are too few rows for tiles across all of C, A is packed
// first, by all workers.
type gemmBF16 struct {
	d              *machine
	c, a, b        mat
	transA, transB bool
	accumulate     bool
	far            bool
	direct         bool // A is not packed
	k, run         int
	mb, nb         int      // tile of C
	pa, pb         []uint16 // packed operands; pa, run after run, is empty if tiles pack their own
}

// gemmPackB and gemmPackA each pack part of an operand, gemmTilesBF16 computes C. All are views of one gemmBF16.
type (
	gemmPackB     gemmBF16
	gemmPackA     gemmBF16
	gemmTilesBF16 gemmBF16
)

const (
	panel = simd.PanelBF16
	// runBF16 is the longest k that is a single run. The sums of a tile stay in L2 between runs of at most runPart,
	// together with the run's blocks of A and B.
	runBF16, runPart = 1024, 512
	// leastRows and mostRows bound the height of a tile. Its packed A fills a quarter of L2; the higher the tile, the
	// less often B is fetched from L3.
	leastRows, mostRows = 4 * panel, 8 * panel
	// partColumns bounds the width of a tile with several runs: sums of more columns leave too little of L2.
	partColumns = 12 * panel
	// manyColumns are better divided than rows.
	manyColumns = 512
	// farBytes is the size of C above which it is written with non-temporal stores: half of L2.
	farBytes = 1 << 20
	// packSpan is the rows, columns or elements of k in one tile of packing.
	packSpan = 2 * panel
)

// gemmBF16 is MatMul with operands rounded to bfloat16, on matrices of valid shapes, none of them empty.
func (d *products) gemmBF16(c, a, b mat, k int, op device.MatMul) {
	if op.TransA && !op.TransB && c.h == nil {
		d.gradBF16(c, a, b, k, op.Accumulate)
		return
	}
	g := &d.matmulBF16
	*g = gemmBF16{d: d.machine, c: c, a: a, b: b, transA: op.TransA, transB: op.TransB, accumulate: op.Accumulate, k: k,
		direct: !op.TransA && simd.RowsBF16(a.at(0, 0), k)}
	g.cut()
	g.packRight()
	if c.rows <= simd.FewBF16() && !op.TransA {
		d.fewBF16(c, a, g.pb, k, op.Accumulate)
		return
	}
	g.packLeft()
	down, across := (c.rows+g.mb-1)/g.mb, (c.cols+g.nb-1)/g.nb
	if down == 1 && !op.TransA {
		d.follow(span{uintptr(unsafe.Pointer(&g.pb[0])), 2 * simd.SizeBF16(g.nb, k), across})
	}
	d.run(down*across, (*gemmTilesBF16)(g))
}

// packRight packs B, unless it is a weight that is already packed; packLeft packs A if tiles do not pack their own.
func (g *gemmBF16) packRight() {
	if fresh := g.reserve(); fresh {
		return
	}
	n := g.k // along the rows of B in memory
	if g.transB {
		n = g.c.cols
	}
	g.d.run((n+packSpan-1)/packSpan, (*gemmPackB)(g))
}

func (g *gemmBF16) packLeft() {
	if len(g.pa) > 0 {
		g.d.run((g.c.rows+packSpan-1)/packSpan, (*gemmPackA)(g))
	}
}

// cut picks the run of k and the tile of C, a few for each worker, because cores may differ in speed: a block of rows
// across all columns if there are enough rows, otherwise part of the columns.
func (g *gemmBF16) cut() {
	g.nb, g.mb = g.c.cols, mostRows
	workers := len(g.d.workers)
	for g.mb > leastRows && g.c.cols < manyColumns && (g.c.rows+g.mb-1)/g.mb < 4*workers {
		g.mb -= panel
	}
	if down := (g.c.rows + g.mb - 1) / g.mb; down < 4*workers {
		across := (4*workers + down - 1) / down
		g.nb = max(2*panel, (g.c.cols/across+panel-1)/panel*panel)
	}
	if g.k > runBF16 {
		g.nb = min(g.nb, partColumns)
	}
	g.cutRun()
	g.far = g.c.bytes() >= farBytes
}

// cutRun picks the run of k.
func (g *gemmBF16) cutRun() {
	longest := runBF16
	if g.k > runBF16 {
		longest = runPart
	}
	g.run = (evenRun(g.k, longest) + panel - 1) / panel * panel
}

// reserve allocates packed operands and the workers' memory. fresh means that B is already packed.
func (g *gemmBF16) reserve() (fresh bool) {
	sizeA, sizeB := 0, 0
	if g.nb < g.c.cols && !g.direct {
		sizeA = simd.FloatsBF16(g.c.rows, g.k)
	}
	if g.transA { // B is an activation
		sizeB = simd.FloatsBF16(g.c.cols, g.k)
	} else {
		var buf *tensor.Buffer
		buf, fresh = g.d.weight(g.b, g.transB, false, 2*simd.SizeBF16(g.c.cols, g.k))
		g.pb = words(buf)
	}
	room := g.d.room(sizeA + sizeB)
	g.pa = simd.Halves(room[:sizeA])
	if g.transA {
		g.pb = simd.Halves(room[sizeA:])
	}
	for w := range g.d.workers {
		if sizeA == 0 && !g.direct {
			g.d.scratch(w).A(simd.FloatsBF16(g.mb, g.run))
		}
		g.d.scratch(w).ReserveBF16(g.mb, g.nb, g.run)
	}
	return fresh
}

func (g *gemmPackB) tile(i, _ int) {
	at := i * packSpan
	if g.transB {
		simd.PackBBF16(g.pb[simd.SizeBF16(at, g.k):], g.k, min(packSpan, g.c.cols-at), g.b.at(at, 0), true, g.k)
		return
	}
	simd.PackBBF16(g.pb[panel*at:], min(packSpan, g.k-at), g.c.cols, g.b.at(at, 0), false, g.k)
}

func (g *gemmPackA) tile(i, _ int) {
	r := i * packSpan
	for p := 0; p < g.k; p += g.run {
		(*gemmBF16)(g).packA((*gemmBF16)(g).blockA(r, p), r, min(packSpan, g.c.rows-r), p)
	}
}

// blockA is the part of pa with rows starting at r of the run at p.
func (g *gemmBF16) blockA(r, p int) []uint16 {
	return g.pa[simd.SizeBF16(g.c.rows, p)+simd.SizeBF16(r, min(g.run, g.k-p)):]
}

// packA packs rows r … r+n−1 of the run at p.
func (g *gemmBF16) packA(dst []uint16, r, n, p int) {
	row, col := r, p
	if g.transA {
		row, col = col, row
	}
	simd.PackABF16(dst, n, min(g.run, g.k-p), g.a.at(row, col), g.transA)
}

func (t *gemmTilesBF16) tile(i, worker int) {
	g := (*gemmBF16)(t)
	across := (g.c.cols + g.nb - 1) / g.nb
	r, j := i/across*g.mb, i%across*g.nb
	g.block(g.c.at(r, j), r, min(g.mb, g.c.rows-r), j, min(g.nb, g.c.cols-j), worker)
}

// block computes rows r … r+m−1 of columns j … j+n−1 into c.
func (g *gemmBF16) block(c simd.View, r, m, j, n, worker int) {
	s := g.d.scratch(worker)
	for p := 0; p < g.k; p += g.run {
		k := min(g.run, g.k-p)
		pb := g.pb[simd.SizeBF16(j, g.k)+panel*p:]
		first, last := p == 0, p+k == g.k
		if g.direct {
			simd.GemmRowsBF16(m, n, k, g.a.at(r, p), pb, g.k, c, g.accumulate, g.far, first, last, s)
			continue
		}
		var pa []uint16
		if len(g.pa) > 0 {
			pa = g.blockA(r, p)
		} else {
			pa = simd.Halves(s.A(simd.FloatsBF16(m, k)))
			g.packA(pa, r, m, p)
		}
		simd.GemmPartBF16(m, n, k, pa, pb, g.k, c, g.accumulate, g.far, first, last, s)
	}
}
