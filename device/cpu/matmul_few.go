package cpu

import (
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// gemmFew is the product of decoding, few rows times a packed weight, whose cost is reading the weight once. The rows are
// rounded to bfloat16 and kept wide; a tile is a range of columns.
type gemmFew struct {
	d          *Device
	c, a       mat
	accumulate bool
	k          int
	rows       []float32 // [c.rows, k up to whole steps]
	pb         []uint16
	bytes      []int8 // instead of pb
	scale      []float32
	nb         int
}

// gemmWide is the product of many rows with a weight of bytes: a tile widens its columns, once, and meets all rows, packed
// before by gemmPackA.
type gemmWide gemmFew

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

// spread picks the width of a tile, a multiple of step: a few for each worker.
func (g *gemmFew) spread(step int) int {
	g.nb = max(step, (g.c.cols/(8*len(g.d.workers))+step-1)/step*step)
	return (g.c.cols + g.nb - 1) / g.nb
}

// fewBF16 multiplies with a weight that gemmBF16 packed.
func (d *Device) fewBF16(c, a mat, pb []uint16, k int, accumulate bool) {
	g := &d.matmulFew
	*g = gemmFew{d: d, c: c, a: a, k: k, pb: pb, accumulate: accumulate}
	g.round()
	n := g.spread(simd.FewColumns())
	g.reserve(c.rows)
	d.run(n, g)
}

func (g *gemmFew) reserve(rows int) {
	for w := range g.d.workers {
		g.d.scratch(w).ReserveBF16(rows, g.nb, g.k)
	}
}

func (g *gemmFew) tile(i, worker int) {
	j := i * g.nb
	n, ld, s := min(g.nb, g.c.cols-j), (g.k+panel-1)/panel*panel, g.d.scratch(worker)
	if g.bytes != nil {
		simd.GemmInt8(g.c.rows, n, g.k, g.rows, ld, g.bytes[simd.SizeInt8(j, g.k):], g.scale[j:], g.c.x[j:], g.c.ld, s)
		return
	}
	simd.GemmFewBF16(g.c.rows, n, g.k, g.rows, ld, g.pb[simd.SizeBF16(j, g.k):], g.c.x[j:], g.c.ld, g.accumulate, s)
}

// gemmInt8 is y = x·Wᵀ with W as bytes.
func (d *Device) gemmInt8(c, a, b mat, k int) {
	g := &d.matmulFew
	*g = gemmFew{d: d, c: c, a: a, k: k}
	if !g.weight(b) {
		d.run((c.cols+packSpan-1)/packSpan, &gemmQuantise{g: g, b: b})
	}
	if c.rows <= simd.FewInt8() {
		g.round()
		n := g.spread(simd.FewColumns())
		g.reserve(min(c.rows, panel))
		d.run(n, g)
		return
	}
	p := &d.matmulBF16
	*p = gemmBF16{d: d, c: c, a: a, k: k, run: (k + panel - 1) / panel * panel}
	p.pa = halves(d.room(packSize(c.rows, k)))
	d.run((c.rows+packSpan-1)/packSpan, (*gemmPackA)(p))
	n := g.spread(2 * panel)
	for w := range d.workers {
		d.scratch(w).A(packSize(g.nb, k))
	}
	g.reserve(c.rows)
	d.run(n, (*gemmWide)(g))
}

// weight finds W's bytes and scales; fresh says that they are W's present values.
func (g *gemmFew) weight(b mat) (fresh bool) {
	scales := (g.c.cols + panel - 1) / panel * panel
	var buf *tensor.Buffer
	buf, fresh = g.d.weight(b, true, true, 4*scales+simd.SizeInt8(g.c.cols, g.k))
	g.scale = floatsOf(buf)[:g.c.cols]
	g.bytes = bytesOf(buf)[4*scales:]
	return fresh
}

// gemmQuantise rounds rows of W to bytes.
type gemmQuantise struct {
	g *gemmFew
	b mat
}

func (q *gemmQuantise) tile(i, _ int) {
	g, j := q.g, i*packSpan
	simd.PackInt8(g.bytes[simd.SizeInt8(j, g.k):], g.scale[j:], min(packSpan, g.c.cols-j), g.k, q.b.from(j, 0), q.b.ld)
}

func (t *gemmWide) tile(i, worker int) {
	j, s := i*t.nb, t.d.scratch(worker)
	n := min(t.nb, t.c.cols-j)
	wide := halves(s.A(packSize(n, t.k)))
	simd.WidenInt8(wide, t.bytes[simd.SizeInt8(j, t.k):][:simd.SizeInt8(n, t.k)])
	c := t.c.x[j:]
	simd.GemmBF16(t.c.rows, n, t.k, t.d.matmulBF16.pa, wide, t.k, c, t.c.ld, false, false, s)
	simd.ScaleColumns(t.c.rows, n, c, t.c.ld, t.scale[j:])
}
