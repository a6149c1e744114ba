package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// ArgMax: the lowest column of each row's largest element. One thread reads the rows once, which is little work
// compared with the product that made them.
func (d *rowOps) ArgMax(ids, x tensor.Tensor) {
	device.CheckArgMax(ids, x, d.Types())
	d.touch(ids)
	m, out := matOf(x), i32(ids)
	for n := range x.Rows {
		out[n] = argMax(m.row(n))
	}
}

func argMax(row []float32) int32 {
	top, high := -1, float32(math.Inf(-1))
	for c, v := range row {
		if !(v <= math.MaxFloat32) { // NaN or +Inf
			return -1
		}
		if v > high {
			top, high = c, v
		}
	}
	return int32(top)
}
