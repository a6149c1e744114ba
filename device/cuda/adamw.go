package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// adamwStep by the layout of parameters: bf16, float32 (either with or without a master), halves.
var adamwStep = [3]kernel{kernelOf("adamw", "adamw_bf16"), kernelOf("adamw", "adamw_f32"),
	kernelOf("adamw", "adamw_split")}

// AdamW is one step over flat tensors.
func (d *elementwise) AdamW(a *device.AdamW) {
	a.Check(d.types)
	n := a.W.Len()
	if n == 0 {
		return
	}
	aligned := vec(a.W.Reshape(1, n), a.M.Reshape(1, n), a.V.Reshape(1, n), a.G.Reshape(1, n))
	if a.Master.Ok() {
		aligned = aligned && vec(a.Master.Reshape(1, n))
	}
	d.launch(adamwStep[flag(a.W.Type == tensor.F32)+2*flag(a.Split())], dim1(min(ceil(n, 8*256), 1<<20)), dim1(256), 0,
		ptr(a.W), ptr(a.Master), ptr(a.M), ptr(a.V), ptr(a.G), ptr(a.Rate), ptr(a.GradSq), i32(n),
		f32(a.Beta1), f32(1-a.Beta1), f32(a.Beta2), f32(1-a.Beta2), f32(a.Eps), f32(a.Decay), f32(a.MaxNorm),
		flag(a.RoundBF16), flag(aligned))
}
