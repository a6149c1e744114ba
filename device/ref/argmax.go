package ref

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// ArgMax: the lowest column of each row's largest element, −1 where there is NaN or +Inf, or nothing but −Inf.
func (d *elementwise) ArgMax(ids, x tensor.Tensor) {
	device.CheckArgMax(ids, x, d.types)
	m, out := load(x), integers(ids)
	for n := range m.rows {
		top, high := -1, math.Inf(-1)
		for c, v := range m.row(n) {
			if math.IsNaN(v) || math.IsInf(v, 1) {
				top = -1
				break
			}
			if v > high {
				top, high = c, v
			}
		}
		out[n] = int32(top)
	}
}
