package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type sigmoidTask struct {
	grid
	y, x mat
}

type sigmoidBackwardTask struct {
	grid
	dx, dy, y mat
}

// Sigmoid: y = 1/(1+e^−x).
func (d *Device) Sigmoid(y, x tensor.Tensor) {
	device.CheckSigmoid(y, x, d.Types())
	d.touch(y)
	flat(&y, &x)
	d.sigmoid = sigmoidTask{gridOf(y.Rows, y.Cols), matOf(y), matOf(x)}
	d.run(d.sigmoid.tiles(), &d.sigmoid)
}

func (t *sigmoidTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	for r := r0; r < r1; r++ {
		simd.Sigmoid(t.y.piece(r, c0, c1), t.x.piece(r, c0, c1))
	}
}

// SigmoidBackward: dx = dy·y·(1−y).
func (d *Device) SigmoidBackward(dx, dy, y tensor.Tensor) {
	device.CheckSigmoidBackward(dx, dy, y, d.Types())
	d.touch(dx)
	flat(&dx, &dy, &y)
	d.sigmoidBackward = sigmoidBackwardTask{gridOf(y.Rows, y.Cols), matOf(dx), matOf(dy), matOf(y)}
	d.run(d.sigmoidBackward.tiles(), &d.sigmoidBackward)
}

func (t *sigmoidBackwardTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	for r := r0; r < r1; r++ {
		simd.SigmoidGrad(t.dx.piece(r, c0, c1), t.dy.piece(r, c0, c1), t.y.piece(r, c0, c1))
	}
}
