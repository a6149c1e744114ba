package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var argmaxRows = kernelOf("argmax", "argmax")

// ArgMax: the lowest column of each row's largest element.
func (d *Device) ArgMax(ids, x tensor.Tensor) {
	device.CheckArgMax(ids, x, d.types)
	if x.Rows == 0 {
		return
	}
	d.launch(argmaxRows, dim1(x.Rows), dim1(rowThreads(x.Cols)), 0, ptr(ids), ptr(x), i32(x.Ld), i32(x.Cols), flag(vec(x)))
}
