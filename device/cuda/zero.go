package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Zero: t = 0, by the driver's own fill.
func (d *elementwise) Zero(t tensor.Tensor) {
	device.CheckZero(t)
	d.fail(d.now().Clear(block(t)))
}
