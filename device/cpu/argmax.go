package cpu

import (
	"math"
	"slices"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// ArgMax: the lowest column of each row's largest element. One thread reads the rows once, which is little beside the product
// that made them.
func (d *Device) ArgMax(ids, x tensor.Tensor) {
	device.CheckArgMax(ids, x, d.Types())
	d.touch(ids)
	m, out := matOf(x), i32(ids)
	for n := range x.Rows {
		out[n] = argMax(m.row(n))
	}
}

func argMax(row []float32) int32 {
	if simd.SumSquares(row) <= math.MaxFloat64 { // all are numbers
		return int32(slices.Index(row, simd.Max(row)))
	}
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
