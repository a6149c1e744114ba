package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Copy: dst = src.
func (d *elementwise) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	store(dst, load(src))
}
