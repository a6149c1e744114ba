package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type sigmoidTask struct {
	grid
	y, x mat
	d    *machine
}

type sigmoidBackwardTask struct {
	grid
	dx, dy, y mat
	d         *machine
}

// Sigmoid: y = 1/(1+e^−x).
func (d *elementwise) Sigmoid(y, x tensor.Tensor) {
	device.CheckSigmoid(y, x, d.Types())
	d.touch(y)
	flat(&y, &x)
	d.reserve(3 * pieceLen)
	d.sigmoid = sigmoidTask{gridOf(y.Rows, y.Cols), matOf(y), matOf(x), d.machine}
	d.run(d.sigmoid.tiles(), &d.sigmoid)
}

func (t *sigmoidTask) tile(i, worker int) {
	a, _, _ := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		y := t.y.place(p.r, p.c0, p.c1, a)
		simd.Sigmoid(y, t.x.read(p.r, p.c0, p.c1, a))
		t.y.store(p.r, p.c0, p.c1, y)
	}
}

// SigmoidBackward: dx = dy·y·(1−y).
func (d *elementwise) SigmoidBackward(dx, dy, y tensor.Tensor) {
	device.CheckSigmoidBackward(dx, dy, y, d.Types())
	d.touch(dx)
	flat(&dx, &dy, &y)
	d.reserve(3 * pieceLen)
	d.sigmoidBackward = sigmoidBackwardTask{gridOf(y.Rows, y.Cols), matOf(dx), matOf(dy), matOf(y), d.machine}
	d.run(d.sigmoidBackward.tiles(), &d.sigmoidBackward)
}

func (t *sigmoidBackwardTask) tile(i, worker int) {
	a, b, _ := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		dx := t.dx.place(p.r, p.c0, p.c1, a)
		simd.SigmoidGrad(dx, t.dy.read(p.r, p.c0, p.c1, a), t.y.read(p.r, p.c0, p.c1, b))
		t.dx.store(p.r, p.c0, p.c1, dx)
	}
}
