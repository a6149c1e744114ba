package cuda

import (
	"math/bits"

	"antiphase/device"
	"antiphase/tensor"
)

var (
	subtractheadsForward  = earlyOf("subtractheads", "subtractheads")
	subtractheadsBackward = kernelOf("subtractheads", "subtractheads_backward")
)

// SubtractHeads: out_h = a_h − λ_h·a_{H+h}.
func (d *attention) SubtractHeads(out, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeads(out, a, lam, heads, d.types)
	if out.Len() == 0 {
		return
	}
	dv := out.Cols / heads
	row, step := lambdaSteps(lam)
	d.launch(subtractheadsForward, dim1(ceil(out.Rows*heads*ceil(dv, 8), 256)), dim1(256), 0, ptr(out), i32(out.Ld),
		ptr(a), i32(a.Ld), ptr(lam), row, step, i32(out.Rows), i32(heads), i32(dv), flag(vec8(dv, out, a)))
	d.fresh.wrote(out)
}

// SubtractHeadsBackward: da_h = dout_h, da_{H+h} = −λ_h·dout_h, dλ_h = −dout_h·a_{H+h}.
func (d *attention) SubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeadsBackward(da, dlam, dout, a, lam, heads, d.types)
	if dlam.Len() == 0 {
		return
	}
	dv := dout.Cols / heads
	lanes := min(32, 1<<bits.Len(uint(max(1, ceil(dv, 8))-1))) // the power of two from the number of pieces up
	row, step := lambdaSteps(lam)
	d.launch(subtractheadsBackward, dim1(ceil(dout.Rows*heads*lanes, 256)), dim1(256), 0, ptr(da), i32(da.Ld),
		ptr(dlam), i32(dlam.Ld), ptr(dout), i32(dout.Ld), ptr(a), i32(a.Ld), ptr(lam), row, step, i32(dout.Rows),
		i32(heads), i32(dv), i32(lanes),
		flag(vec8(dv, da, dout, a)))
}

// lambdaSteps are the distances from one row and from one head to the next in λ, none if there is one for all.
func lambdaSteps(lam tensor.Tensor) (row, head uint64) {
	if lam.Len() == 1 {
		return 0, 0
	}
	return i32(lam.Ld), 1
}
