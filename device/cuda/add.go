package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// addKernels by dst and src: 1 where fp32.
var addKernels = [2][2]kernel{
	{kernelOf("add", "add_bf16_bf16"), kernelOf("add", "add_bf16_f32")},
	{kernelOf("add", "add_f32_bf16"), kernelOf("add", "add_f32_f32")},
}

// Add: dst += src.
func (d *elementwise) Add(dst, src tensor.Tensor) {
	device.CheckAdd(dst, src)
	mustFloats("Add", dst, src)
	d.pair(addKernels[flag(dst.Type == tensor.F32)][flag(src.Type == tensor.F32)], dst, src)
}
