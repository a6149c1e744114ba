package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Zero: t = 0, in any dtype: all of them spell zero as zero bytes.
func (d *elementwise) Zero(t tensor.Tensor) {
	device.CheckZero(t)
	for r := range t.Rows {
		clear(bytesOf(t, r))
	}
}
