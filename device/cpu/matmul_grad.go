package cpu

import "antiphase/internal/simd"

// gemmGrad is the gradient of a weight, c = aᵀ·b: both factors are activations [k,·], k the tokens, and larger than C. The narrower one is
// packed by all workers, run after run of tokens. A tile of C packs its columns of the wider one, a run at a time, just before it
// multiplies them, and keeps its sums in the second cache until the last run. A small C has too few tiles for all workers: there the tokens are
// cut into parts, by shape alone, whose sums are added in their order.
type gemmGrad struct {
	d          *Device
	c, a, b    mat
	accumulate bool
	right      bool // B is the wider one
	k, run     int
	span       int // tokens of a part
	mb, nb     int // tile of C
	shared     []uint16
	sums       []float32 // of the parts but the first, each like C
}

// gemmGradPack packs a few tokens of the narrower factor, gemmGradSum adds up rows of C.
type (
	gemmGradPack gemmGrad
	gemmGradSum  gemmGrad
)

const (
	// runGrad is the length of a run where there are several: a panel of it stays in the first cache.
	runGrad = 512
	// gradAcross bounds a tile across the wider factor, gradAlong along the narrower one where there are several runs.
	gradAcross, gradAlong = 8 * panel, 12 * panel
	// gradTiles is the number of tiles below which tokens are cut into parts, of gradSpan tokens at least.
	gradTiles, gradSpan = 8, 1024
)

// gradBF16 is c = aᵀ·b, or c += with accumulate.
func (d *Device) gradBF16(c, a, b mat, k int, accumulate bool) {
	g := &d.matmulGrad
	*g = gemmGrad{d: d, c: c, a: a, b: b, accumulate: accumulate, right: c.cols > c.rows, k: k}
	tiles := g.cut()
	parts := (k + g.span - 1) / g.span
	shared := packSize(min(c.rows, c.cols), k)
	room := d.room(shared + (parts-1)*c.rows*c.cols)
	g.shared, g.sums = halves(room[:shared]), room[shared:]
	for w := range d.workers {
		d.scratch(w).A(packSize(max(g.mb, g.nb), g.run))
		d.scratch(w).ReserveBF16(g.mb, g.nb, g.run)
	}
	d.run((k+packSpan-1)/packSpan, (*gemmGradPack)(g))
	d.run(tiles*parts, g)
	if parts > 1 {
		d.run(c.rows, (*gemmGradSum)(g))
	}
}

// cut picks the run, the tile of C and the part, and counts the tiles.
func (g *gemmGrad) cut() int {
	g.run = g.k
	g.mb, g.nb = gradAcross, g.c.cols
	if g.right {
		g.mb, g.nb = g.c.rows, gradAcross
	}
	if g.k > runBF16 {
		g.run = evenRun(g.k, runGrad)
		g.mb, g.nb = min(g.mb, gradAlong), min(g.nb, gradAlong)
	}
	g.run = (g.run + packSpan - 1) / packSpan * packSpan
	tiles := (g.c.rows + g.mb - 1) / g.mb * ((g.c.cols + g.nb - 1) / g.nb)
	parts := max(1, min((gradTiles+tiles-1)/tiles, g.k/gradSpan))
	runs := (g.k + g.run - 1) / g.run
	g.span = (runs + parts - 1) / parts * g.run
	return tiles
}

// pack packs columns from i on, n of them, of tokens p … p+k−1 of a factor into an operand that is depth along k.
func (g *gemmGrad) pack(dst []uint16, right bool, i, n, p, k, depth int) {
	x := &g.a
	if right {
		x = &g.b
	}
	simd.PackDownBF16(dst, n, k, x.at(p, i), depth, right)
}

// sharedAt is where columns from i on of the run at p lie.
func (g *gemmGrad) sharedAt(i, p int) []uint16 {
	return g.shared[simd.SizeBF16(min(g.c.rows, g.c.cols), p)+simd.SizeBF16(i, min(g.run, g.k-p)):]
}

func (t *gemmGradPack) tile(i, _ int) {
	g, at := (*gemmGrad)(t), i*packSpan
	p := at / g.run * g.run
	g.pack(g.sharedAt(0, p)[panel*(at-p):], !g.right, 0, min(g.c.rows, g.c.cols), at, min(packSpan, g.k-at), min(g.run, g.k-p))
}

func (g *gemmGrad) tile(i, worker int) {
	down, across := (g.c.rows+g.mb-1)/g.mb, (g.c.cols+g.nb-1)/g.nb
	part, i := i/(down*across), i%(down*across)
	r, j := i/across*g.mb, i%across*g.nb
	m, n := min(g.mb, g.c.rows-r), min(g.nb, g.c.cols-j)
	c, ldc, accumulate := g.c.from(r, j), g.c.ld, g.accumulate
	if part > 0 {
		c, ldc, accumulate = g.sums[((part-1)*g.c.rows+r)*g.c.cols+j:], g.c.cols, false
	}
	s := g.d.scratch(worker)
	from, to := part*g.span, min(g.k, (part+1)*g.span)
	for p := from; p < to; p += g.run {
		k := min(g.run, to-p)
		var pa, pb []uint16
		if g.right {
			pb = halves(s.A(packSize(n, k)))
			g.pack(pb, true, j, n, p, k, k)
			pa = g.sharedAt(r, p)
		} else {
			pa = halves(s.A(packSize(m, k)))
			g.pack(pa, false, r, m, p, k, k)
			pb = g.sharedAt(j, p)
		}
		simd.GemmPartBF16(m, n, k, pa, pb, k, simd.View{X: c, Ld: ldc}, accumulate, false, p == from, p+k == to, s)
	}
}

func (t *gemmGradSum) tile(r, _ int) {
	row, size := t.c.row(r), t.c.rows*t.c.cols
	for at := r * t.c.cols; at < len(t.sums); at += size {
		simd.Add(row, row, t.sums[at:at+t.c.cols])
	}
}
