package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// SumSquares: dst += Σ x².
func (d *elementwise) SumSquares(dst, x tensor.Tensor) {
	device.CheckSumSquares(dst, x, d.types)
	sum, m := load(dst), load(x)
	sum.v[0] += dot(m.v, m.v)
	store(dst, sum)
}
