package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	swigluForward  = earlyOf("swiglu", "swiglu")
	swigluBackward = kernelOf("swiglu", "swiglu_backward")
)

// SwiGLU: y = g·σ(g)·u.
func (d *elementwise) SwiGLU(y, gu tensor.Tensor) {
	device.CheckSwiGLU(y, gu, d.types)
	if y.Len() == 0 {
		return
	}
	if d.joinGate(y, gu) {
		return
	}
	grid, block := each(y.Rows, y.Cols)
	if y.Rows <= 8 { // decoding: spread over all SMs, because exponentials are the bottleneck of one
		grid.X, block.X = ceil(y.Cols, 8*64), 64
	}
	d.launch(swigluForward, grid, block, 0, ptr(y), i32(y.Ld), ptr(gu), i32(gu.Ld), i32(y.Rows), i32(y.Cols),
		gateVec(y.Cols, y, gu))
	d.fresh.wrote(y)
}

// SwiGLUBackward: dg = dy·u·σ·(1 + g·(1−σ)), du = dy·g·σ, y = g·σ·u.
func (d *elementwise) SwiGLUBackward(dgu, y, dy, gu tensor.Tensor) {
	device.CheckSwiGLUBackward(dgu, y, dy, gu, d.types)
	if dy.Len() == 0 {
		return
	}
	grid, block := each(dy.Rows, dy.Cols)
	d.launch(swigluBackward, grid, block, 0, ptr(dgu), i32(dgu.Ld), ptr(y), i32(y.Ld), ptr(dy), i32(dy.Ld), ptr(gu),
		i32(gu.Ld), i32(dy.Rows), i32(dy.Cols), gateVec(dy.Cols, dgu, y, dy, gu))
}

// gateVec selects the kernels' access width: 1 for 16 bytes, 2 for 16 bytes but 8 for u, which begins at column f, 0
// for single elements.
func gateVec(f int, all ...tensor.Tensor) uint64 {
	switch {
	case !vec(all...) || f%4 != 0:
		return 0
	case f%8 != 0:
		return 2
	}
	return 1
}
