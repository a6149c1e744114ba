package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	biasAdd    = kernelOf("bias", "bias_add")
	biasParts  = kernelOf("bias", "bias_parts")
	biasFinish = kernelOf("bias", "bias_finish")
)

// AddBias: y[n,:] += b.
func (d *elementwise) AddBias(y, b tensor.Tensor) {
	device.CheckAddBias(y, b, d.types)
	if y.Len() == 0 {
		return
	}
	grid, block := each(ceil(y.Rows, 4), y.Cols) // a thread keeps its columns of b for about four rows
	d.launch(biasAdd, grid, block, 0, ptr(y), i32(y.Ld), ptr(b), i32(y.Rows), i32(y.Cols), flag(vec(y, b)))
}

// BiasBackward: db += Σ_n dy[n,:], rows in parts of 64 or more.
func (d *elementwise) BiasBackward(db, dy tensor.Tensor) {
	device.CheckBiasBackward(db, dy, d.types)
	if dy.Len() == 0 {
		return
	}
	per := max(64, ceil(dy.Rows, 512))
	parts := ceil(dy.Rows, per)
	part := uint64(d.scratch(parts * dy.Cols * 4))
	d.launch(biasParts, dim2(ceil(dy.Cols, 256), parts), dim1(256), 0,
		part, ptr(dy), i32(dy.Ld), i32(dy.Rows), i32(dy.Cols), i32(per), flag(vec(dy)))
	d.launch(biasFinish, dim1(ceil(dy.Cols, 32)), dim1(1024), 0, ptr(db), part, i32(parts), i32(dy.Cols))
}
