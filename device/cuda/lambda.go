package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	lambdaForward  = earlyOf("lambda", "lambda")
	lambdaSum      = kernelOf("lambda", "lambda_sum")
	lambdaBackward = kernelOf("lambda", "lambda_backward")
)

// Lambda: λ = exp(q1·k1) − exp(q2·k2) + init.
func (d *attention) Lambda(lam tensor.Tensor, v device.LambdaVecs, init float64) {
	device.CheckLambda(lam, v, d.types)
	early := true
	for _, t := range [4]tensor.Tensor{v.Q1, v.K1, v.Q2, v.K2} {
		early = early && d.fresh.settled(t, kept{})
	}
	d.launch(lambdaForward, dim1(1), dim1(32), 0, ptr(lam), ptr(v.Q1), ptr(v.K1), ptr(v.Q2), ptr(v.K2), i32(v.Q1.Cols),
		f32(init), flag(early))
	d.fresh.wrote(lam)
}

// LambdaBackward adds ±s·exp(q·k) times the partner of each vector, s = Σ dlam.
func (d *attention) LambdaBackward(g device.LambdaVecs, dlam tensor.Tensor, v device.LambdaVecs) {
	device.CheckLambdaBackward(g, dlam, v, d.types)
	if dlam.Len() == 0 {
		return
	}
	part, parts := d.sumParts(lambdaSum, dlam)
	d.launch(lambdaBackward, dim1(1), dim1(128), 0, ptr(g.Q1), ptr(g.K1), ptr(g.Q2), ptr(g.K2),
		ptr(v.Q1), ptr(v.K1), ptr(v.Q2), ptr(v.K2), i32(v.Q1.Cols), part, i32(parts))
}
