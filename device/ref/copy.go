package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Copy: dst = src.
func (d *Device) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	store(dst, load(src))
}
