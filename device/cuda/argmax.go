package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	argmaxRows   = earlyOf("argmax", "argmax")
	argmaxFinish = earlyOf("argmax", "argmax_finish")
)

// argmaxPart is the number of columns per block: 8 for each of 256 threads.
const argmaxPart = 2048

// ArgMax: the lowest column of each row's largest element.
func (d *rowOps) ArgMax(ids, x tensor.Tensor) {
	device.CheckArgMax(ids, x, d.types)
	if x.Rows == 0 {
		return
	}
	parts := max(1, ceil(x.Cols, argmaxPart))
	to, tops := ptr(ids), uint64(0)
	if parts > 1 {
		to = uint64(d.scratch(8 * parts * x.Rows))
		tops = to + uint64(4*parts*x.Rows)
	}
	d.launch(argmaxRows, dim2(parts, x.Rows), dim1(256), 0, to, tops, ptr(x), i32(x.Ld), i32(x.Cols),
		argmaxPart, flag(vec(x)))
	if parts > 1 {
		d.launch(argmaxFinish, dim1(x.Rows), dim1(32), 0, ptr(ids), to, tops, i32(parts))
	}
	d.fresh.wrote(ids)
}
