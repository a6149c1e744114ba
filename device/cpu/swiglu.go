package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type swigluTask struct {
	grid
	y, gu mat
}

type swigluBackwardTask struct {
	grid
	dgu, y, dy, gu mat
}

// SwiGLU: y = silu(g)·u for gu = [g | u].
func (d *Device) SwiGLU(y, gu tensor.Tensor) {
	device.CheckSwiGLU(y, gu, d.Types())
	d.touch(y)
	d.swiglu = swigluTask{gridOf(y.Rows, y.Cols), matOf(y), matOf(gu)}
	d.run(d.swiglu.tiles(), &d.swiglu)
}

func (t *swigluTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	f := t.y.cols
	for r := r0; r < r1; r++ {
		simd.SiluMul(t.y.piece(r, c0, c1), t.gu.piece(r, c0, c1), t.gu.piece(r, f+c0, f+c1))
	}
}

// SwiGLUBackward: dgu from dy and gu, and y once more.
func (d *Device) SwiGLUBackward(dgu, y, dy, gu tensor.Tensor) {
	device.CheckSwiGLUBackward(dgu, y, dy, gu, d.Types())
	d.touch(dgu, y)
	d.swigluBackward = swigluBackwardTask{gridOf(dy.Rows, dy.Cols), matOf(dgu), matOf(y), matOf(dy), matOf(gu)}
	d.run(d.swigluBackward.tiles(), &d.swigluBackward)
}

func (t *swigluBackwardTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	f := t.dy.cols
	for r := r0; r < r1; r++ {
		simd.SiluMulGrad(t.dgu.piece(r, c0, c1), t.dgu.piece(r, f+c0, f+c1), t.y.piece(r, c0, c1),
			t.dy.piece(r, c0, c1), t.gu.piece(r, c0, c1), t.gu.piece(r, f+c0, f+c1))
	}
}
