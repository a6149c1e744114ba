package cpu

import (
	"antiphase/device"
	"antiphase/tensor"
)

type zeroTask struct {
	grid
	t tensor.Tensor
}

// Zero: t = 0.
func (d *elementwise) Zero(t tensor.Tensor) {
	d.touch(t)
	device.CheckZero(t)
	flat(&t)
	d.zero = zeroTask{gridOf(t.Rows, t.Cols), t}
	d.run(d.zero.tiles(), &d.zero)
}

func (z *zeroTask) tile(i, _ int) {
	r0, r1, c0, c1 := z.bounds(i)
	size := z.t.Type.Size()
	for r := r0; r < r1; r++ {
		clear(rowBytes(z.t, r)[c0*size : c1*size])
	}
}
