package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Add: dst += src.
func (d *elementwise) Add(dst, src tensor.Tensor) {
	device.CheckAdd(dst, src)
	y := load(dst)
	axpy(y.v, 1, load(src).v)
	store(dst, y)
}
