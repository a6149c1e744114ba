package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type swigluTask struct {
	grid
	y, gu mat
	d     *machine
}

type swigluBackwardTask struct {
	grid
	dgu, y, dy, gu mat
	d              *machine
}

// SwiGLU: y = silu(g)·u for gu = [g | u].
func (d *elementwise) SwiGLU(y, gu tensor.Tensor) {
	device.CheckSwiGLU(y, gu, d.Types())
	d.touch(y)
	d.reserve(3 * pieceLen)
	d.swiglu = swigluTask{gridOf(y.Rows, y.Cols), matOf(y), matOf(gu), d.machine}
	d.run(d.swiglu.tiles(), &d.swiglu)
}

func (t *swigluTask) tile(i, worker int) {
	f := t.y.cols
	a, b, _ := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		if t.y.short() {
			simd.SiluMulBF16(t.y.half(p.r, p.c0, p.c1), t.gu.half(p.r, p.c0, p.c1), t.gu.half(p.r, f+p.c0, f+p.c1),
				p.ahead(&t.gu))
			continue
		}
		y := t.y.place(p.r, p.c0, p.c1, a)
		simd.SiluMul(y, t.gu.read(p.r, p.c0, p.c1, a), t.gu.read(p.r, f+p.c0, f+p.c1, b))
		t.y.store(p.r, p.c0, p.c1, y)
	}
}

// SwiGLUBackward: dgu from dy and gu, and y again.
func (d *elementwise) SwiGLUBackward(dgu, y, dy, gu tensor.Tensor) {
	device.CheckSwiGLUBackward(dgu, y, dy, gu, d.Types())
	d.touch(dgu, y)
	d.reserve(3 * pieceLen)
	d.swigluBackward = swigluBackwardTask{gridOf(dy.Rows, dy.Cols), matOf(dgu), matOf(y), matOf(dy),
		matOf(gu), d.machine}
	d.run(d.swigluBackward.tiles(), &d.swigluBackward)
}

func (t *swigluBackwardTask) tile(i, worker int) {
	f := t.dy.cols
	a, b, c := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		r, c0, c1 := p.r, p.c0, p.c1
		if t.y.short() {
			simd.SiluMulGradBF16(t.dgu.half(r, c0, c1), t.dgu.half(r, f+c0, f+c1), t.y.half(r, c0, c1),
				t.dy.half(r, c0, c1), t.gu.half(r, c0, c1), t.gu.half(r, f+c0, f+c1), p.ahead(&t.gu))
			continue
		}
		dg, du, y := t.dgu.place(r, c0, c1, a), t.dgu.place(r, f+c0, f+c1, b), t.y.place(r, c0, c1, c)
		simd.SiluMulGrad(dg, du, y, t.dy.read(r, c0, c1, c), t.gu.read(r, c0, c1, a), t.gu.read(r, f+c0, f+c1, b))
		t.dgu.store(r, c0, c1, dg)
		t.dgu.store(r, f+c0, f+c1, du)
		t.y.store(r, c0, c1, y)
	}
}
