package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// sigmoidKernels forward and backward, by dtype (bf16, fp32).
var (
	sigmoidForward  = [2]kernel{earlyOf("sigmoid", "sigmoid_bf16"), earlyOf("sigmoid", "sigmoid_f32")}
	sigmoidBackward = [2]kernel{kernelOf("sigmoid", "sigmoid_backward_bf16"),
		kernelOf("sigmoid", "sigmoid_backward_f32")}
)

// Sigmoid: y = 1/(1+e^−x).
func (d *elementwise) Sigmoid(y, x tensor.Tensor) {
	device.CheckSigmoid(y, x, d.types)
	if d.joinSigmoid(y, x) {
		return
	}
	d.pair(sigmoidForward[flag(y.Type == tensor.F32)], y, x)
	d.fresh.wrote(y)
}

// SigmoidBackward: dx = dy·y·(1−y).
func (d *elementwise) SigmoidBackward(dx, dy, y tensor.Tensor) {
	device.CheckSigmoidBackward(dx, dy, y, d.types)
	if y.Len() == 0 {
		return
	}
	flat(&dx, &dy, &y)
	grid, block := each(y.Rows, y.Cols)
	d.launch(sigmoidBackward[flag(y.Type == tensor.F32)], grid, block, 0, ptr(dx), i32(dx.Ld), ptr(dy), i32(dy.Ld),
		ptr(y), i32(y.Ld), i32(y.Rows), i32(y.Cols), flag(vec(dx, dy, y)))
}
