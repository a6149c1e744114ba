package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
)

// gemmInt8 is y = x·Wᵀ with int8 W: rows of x are rounded to 16 bits, and the sums are exact integers (see
// simd.GemmInt8), so a row's bits depend only on the row. W is packed once, like other weights. Rows are processed in
// blocks: packed by all workers, then a tile is the block and a range of columns.
type gemmInt8 struct {
	d       *machine
	c, a, b mat // c and a: the current block
	k       int
	x       simd.RowsInt8
	w       simd.ColumnsInt8
	far     bool
	nb      int
}

// gemmQuantise packs rows of W, gemmRowsInt8 rows of x, gemmTilesInt8 computes C. All are views of one gemmInt8.
type (
	gemmQuantise  gemmInt8
	gemmRowsInt8  gemmInt8
	gemmTilesInt8 gemmInt8
)

const (
	// rowsInt8 is the number of rows of a block, which is in L2.
	rowsInt8 = 256
	// packRows is the number of rows of x in one tile of packing.
	packRows = simd.PanelRowsInt8
)

// gemmInt8 multiplies matrices of valid shapes, none of them empty. Sums that are too long for int8 use bfloat16.
func (d *products) gemmInt8(c, a, b mat, k int) {
	if k > simd.MaxKInt8 {
		d.gemmBF16(c, a, b, k, device.MatMul{TransB: true})
		return
	}
	g := &d.matmulInt8
	*g = gemmInt8{d: d.machine, c: c, a: a, b: b, k: k, far: 4*c.rows*c.cols >= farBytes}
	for w := range d.workers {
		d.scratch(w).ReserveInt8()
	}
	buf, fresh := d.weight(b, true, true, 4*simd.SizeInt8(c.cols, k))
	g.w = simd.MakeColumnsInt8(c.cols, k, floatsOf(buf))
	if !fresh {
		d.run((c.cols+packSpan-1)/packSpan, (*gemmQuantise)(g))
	}
	g.cut()
	tiles := (c.cols + g.nb - 1) / g.nb
	d.follow(span{buf.Addr, g.w.Bytes(g.nb), tiles})
	for r := 0; r < c.rows; r += rowsInt8 {
		rows := min(rowsInt8, c.rows-r)
		g.c, g.a = c.rowsFrom(r, rows), a.rowsFrom(r, rows)
		g.x = simd.MakeRowsInt8(rows, k, d.room(simd.SizeRowsInt8(rows, k)))
		d.run((rows+packRows-1)/packRows, (*gemmRowsInt8)(g))
		d.run(tiles, (*gemmTilesInt8)(g))
	}
}

// cut picks the columns of a tile, several tiles per worker, because cores may differ in speed: more if one row
// processes columns in groups.
func (g *gemmInt8) cut() {
	step, tiles := 2*panel, 4*len(g.d.workers)
	if g.c.rows == 1 {
		step, tiles = simd.FewColumns(), 2*tiles
	}
	g.nb = max(step, (g.c.cols/tiles+step-1)/step*step)
}

func (g *gemmQuantise) tile(i, _ int) {
	j := i * packSpan
	g.w.Pack(j, min(packSpan, g.c.cols-j), g.b.from(j, 0), g.b.ld)
}

func (g *gemmRowsInt8) tile(i, worker int) {
	r := i * packRows
	g.x.Pack(r, min(packRows, g.c.rows-r), g.a.from(r, 0), g.a.ld, g.d.scratch(worker))
}

func (g *gemmTilesInt8) tile(i, worker int) {
	j := i * g.nb
	simd.GemmInt8(&g.x, &g.w, j, min(g.nb, g.c.cols-j), g.c.x[j:], g.c.ld, g.far, g.d.scratch(worker))
}
