package cpu

import "antiphase/internal/simd"

// gemmFew is the product of decoding, few rows times a packed weight, whose cost is reading the weight once. The rows are
// rounded to bfloat16 and kept wide; a tile is a range of columns.
type gemmFew struct {
	d          *Device
	c, a       mat
	accumulate bool
	k          int
	rows       []float32 // [c.rows, k up to whole steps]
	pb         []uint16
	nb         int
	shares     shares
}

// fewBF16 multiplies with a weight that gemmBF16 packed.
func (d *Device) fewBF16(c, a mat, pb []uint16, k int, accumulate bool) {
	g := &d.matmulFew
	*g = gemmFew{d: d, c: c, a: a, k: k, pb: pb, accumulate: accumulate, shares: g.shares}
	g.round()
	step := simd.FewColumns()
	g.nb = max(step, (c.cols/(8*len(d.workers))+step-1)/step*step) // a few tiles for each worker
	for w := range d.workers {
		d.scratch(w).ReserveBF16(c.rows, g.nb, k)
	}
	tiles := (c.cols + g.nb - 1) / g.nb
	g.shares.cut(tiles, len(d.workers))
	d.run(tiles, g)
}

// round prepares the rows of a.
func (g *gemmFew) round() {
	ld := (g.k + panel - 1) / panel * panel
	g.rows = g.d.room(g.c.rows * ld)
	for r := range g.c.rows {
		row := g.rows[r*ld : (r+1)*ld]
		simd.RoundBF16(row[:g.k], g.a.row(r))
		clear(row[g.k:])
	}
}

func (g *gemmFew) tile(_, worker int) {
	j := g.shares.claim(worker) * g.nb
	n, ld := min(g.nb, g.c.cols-j), (g.k+panel-1)/panel*panel
	simd.GemmFewBF16(g.c.rows, n, g.k, g.rows, ld, g.pb[simd.SizeBF16(j, g.k):], g.c.x[j:], g.c.ld, g.accumulate, g.d.scratch(worker))
}
