package cpu

import (
	"unsafe"

	"antiphase/internal/simd"
)

// gemmFew is the product of decoding, few rows times a packed weight; the cost is reading the weight once. The rows are
// rounded to bfloat16 and kept in float32; a tile is a range of columns.
type gemmFew struct {
	d          *machine
	c, a       mat
	accumulate bool
	k          int
	rows       []float32 // [c.rows, k up to whole steps]
	sums       []float32 // [c.rows, c.cols] if C is bfloat16
	pb         []uint16
	nb         int
}

// fewBF16 multiplies with a weight that gemmBF16 packed.
func (d *products) fewBF16(c, a mat, pb []uint16, k int, accumulate bool) {
	g := &d.matmulFew
	*g = gemmFew{d: d.machine, c: c, a: a, k: k, pb: pb, accumulate: accumulate}
	g.round()
	step := simd.FewColumns()
	g.nb = max(step, (c.cols/(8*len(d.workers))+step-1)/step*step) // a few tiles for each worker
	for w := range d.workers {
		d.scratch(w).ReserveBF16(c.rows, g.nb, k)
	}
	tiles := (c.cols + g.nb - 1) / g.nb
	d.follow(span{uintptr(unsafe.Pointer(&pb[0])), 2 * simd.SizeBF16(g.nb, k), tiles})
	d.run(tiles, g)
}

// round prepares the rows of a.
func (g *gemmFew) round() {
	ld := (g.k + panel - 1) / panel * panel
	sums := 0
	if g.c.h != nil {
		sums = g.c.rows * g.c.cols
	}
	g.sums = g.d.room(sums + g.c.rows*ld)
	g.rows, g.sums = g.sums[sums:], g.sums[:sums]
	for r := range g.c.rows {
		row := g.rows[r*ld : (r+1)*ld]
		if g.a.h != nil {
			simd.WidenBF16(row, g.a.half(r, 0, g.k))
		} else {
			simd.RoundBF16(row[:g.k], g.a.row(r))
		}
		clear(row[g.k:])
	}
}

func (g *gemmFew) tile(i, worker int) {
	j := i * g.nb
	n, ld := min(g.nb, g.c.cols-j), (g.k+panel-1)/panel*panel
	c, ldc := g.c.x, g.c.ld
	if g.c.h != nil {
		c, ldc = g.sums, g.c.cols
	}
	for r := 0; r < g.c.rows && g.c.h != nil && g.accumulate; r++ {
		simd.WidenBF16(c[r*ldc+j:], g.c.half(r, j, j+n))
	}
	simd.GemmFewBF16(g.c.rows, n, g.k, g.rows, ld, g.pb[simd.SizeBF16(j, g.k):], c[j:], ldc, g.accumulate,
		g.d.scratch(worker))
	for r := 0; r < g.c.rows && g.c.h != nil; r++ {
		simd.NarrowBF16(g.c.half(r, j, j+n), c[r*ldc+j:][:n])
	}
}
