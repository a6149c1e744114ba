package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type addTask struct {
	grid
	dst, src tensor.Tensor
	y, x     mat // the same, if neither is float64
	d        *machine
}

// Add accumulates: dst += src.
func (d *elementwise) Add(dst, src tensor.Tensor) {
	device.CheckAdd(dst, src)
	d.touch(dst)
	flat(&dst, &src)
	d.reserve(3 * pieceLen)
	d.add = addTask{grid: gridOf(dst.Rows, dst.Cols), dst: dst, src: src, d: d.machine}
	if !d.add.double() {
		d.add.y, d.add.x = matOf(dst), matOf(src)
	}
	d.run(d.add.tiles(), &d.add)
}

// double reports whether the sum is in float64.
func (t *addTask) double() bool { return t.dst.Type == tensor.F64 || t.src.Type == tensor.F64 }

func (t *addTask) tile(i, worker int) {
	if t.double() {
		t.tileF64(i)
		return
	}
	a, b, _ := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		if t.y.short() && t.x.short() {
			y := t.y.half(p.r, p.c0, p.c1)
			simd.AddBF16(y, y, t.x.half(p.r, p.c0, p.c1), p.ahead(&t.x))
			continue
		}
		y := t.y.read(p.r, p.c0, p.c1, a)
		simd.Add(y, y, t.x.read(p.r, p.c0, p.c1, b))
		t.y.store(p.r, p.c0, p.c1, y)
	}
}

func (t *addTask) tileF64(i int) {
	var a, b [pieceLen]float64
	for p := t.pieces(i); p.next(); {
		n := p.c1 - p.c0
		dst, src := t.dst.RowRange(p.r, p.r+1).Columns(p.c0, p.c1), t.src.RowRange(p.r, p.r+1).Columns(p.c0, p.c1)
		widen(a[:n], dst)
		widen(b[:n], src)
		for j := range n {
			a[j] += b[j]
		}
		narrow(dst, a[:n])
	}
}
