package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// narrowKernels by k/4 − 1: kernels/matmul_narrow.cu, under trial.
var narrowKernels = func() (all [4]struct{ add, sum kernel }) {
	for i := range all {
		all[i].add = kernelOf("matmul_narrow", fmt.Sprintf("narrow_add_%d", 4*i+4))
		all[i].sum = kernelOf("matmul_narrow", fmt.Sprintf("narrow_sum_%d", 4*i+4))
	}
	return all
}()

var narrowFinish = kernelOf("matmul_narrow", "narrow_finish")

// Constants of kernels/matmul_narrow.cu: columns of a block, and blocks on an SM.
const narrowColumns, narrowBlocks = 256, 2

// multiplyNarrow is multiply for many rows of at most 16 heads: the gradients of DIFF V2's λ.
func (d *products) multiplyNarrow(c, a, b tensor.Tensor, op device.MatMul) bool {
	heads := a.Cols
	if !d.try.narrow || heads%4 != 0 || heads == 0 || heads > 16 || a.Rows <= fewRows || op.TransB || !vec(a, b, c) || c.Cols%4 != 0 {
		return false
	}
	k := narrowKernels[heads/4-1]
	columns := ceil(c.Cols, narrowColumns)
	blocks := max(1, min(ceil(a.Rows, 4), narrowBlocks*d.info.SMs/columns))
	switch {
	case !op.TransA && c.Type == tensor.BF16:
		d.launch(k.add, dim2(blocks, columns), dim1(256), 0, ptr(c), i32(c.Ld), ptr(a), i32(a.Ld), ptr(b), i32(b.Ld), i32(a.Rows), i32(c.Cols), flag(op.Accumulate))
	case op.TransA && c.Type == tensor.F32:
		part := uint64(d.scratch(blocks * heads * c.Cols * 4))
		d.launch(k.sum, dim2(blocks, columns), dim1(256), 0, part, ptr(a), i32(a.Ld), ptr(b), i32(b.Ld), i32(a.Rows), i32(c.Cols))
		d.launch(narrowFinish, dim1(ceil(heads*c.Cols, 32)), dim1(1024), 0, ptr(c), i32(c.Ld), part, i32(blocks), i32(heads*c.Cols), i32(c.Cols), flag(op.Accumulate))
	default:
		return false
	}
	return true
}
