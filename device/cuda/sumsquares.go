package cuda

import (
	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

var (
	sumsquaresParts  = [2]kernel{kernelOf("sumsquares", "sumsquares_bf16"), kernelOf("sumsquares", "sumsquares_f32")}
	sumsquaresFinish = kernelOf("sumsquares", "sumsquares_finish")
)

// SumSquares: dst += Σ x².
func (d *elementwise) SumSquares(dst, x tensor.Tensor) {
	device.CheckSumSquares(dst, x, d.types)
	if x.Len() == 0 {
		return
	}
	part, parts := d.sumParts(sumsquaresParts[flag(x.Type == tensor.F32)], x)
	d.launch(sumsquaresFinish, dim1(1), dim1(256), 0, ptr(dst), part, i32(parts))
}

// sumParts launches the first stage of a sum over x (kernels/sums.cuh) and returns the address and number of its parts.
// The geometry depends on the shape alone, and so does the order of the sum.
func (d *queue) sumParts(k kernel, x tensor.Tensor) (part uint64, parts int) {
	flat(&x)
	grid := cu.Dim{X: min(ceil(x.Cols, 8*256), 2048), Y: min(x.Rows, 256), Z: 1}
	if grid.Y > 1 {
		grid.X = min(grid.X, 8)
	}
	parts = grid.X * grid.Y
	part = uint64(d.scratch(parts * 8))
	d.launch(k, grid, dim1(256), 0, part, ptr(x), i32(x.Ld), i32(x.Rows), i32(x.Cols), flag(vec(x)))
	return part, parts
}
