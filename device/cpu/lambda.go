package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Lambda: lam = exp(q1·k1) − exp(q2·k2) + init, in float64 on one thread: a few hundred multiplications.
func (d *attention) Lambda(lam tensor.Tensor, v device.LambdaVecs, init float64) {
	device.CheckLambda(lam, v, d.Types())
	d.touch(lam)
	f32(lam)[0] = float32(expDot(v.Q1, v.K1) - expDot(v.Q2, v.K2) + init)
}

func expDot(q, k tensor.Tensor) float64 {
	var s float64
	b := f32(k)
	for i, x := range f32(q) {
		s += float64(x) * float64(b[i])
	}
	return math.Exp(s)
}

// LambdaBackward accumulates into d's four vectors.
func (d *attention) LambdaBackward(dv device.LambdaVecs, dlam tensor.Tensor, v device.LambdaVecs) {
	device.CheckLambdaBackward(dv, dlam, v, d.Types())
	d.touch(dv.Q1, dv.K1, dv.Q2, dv.K2)
	var s float64
	m := matOf(dlam)
	for r := range m.rows {
		for _, x := range m.row(r) {
			s += float64(x)
		}
	}
	pairBackward(dv.Q1, dv.K1, v.Q1, v.K1, s*expDot(v.Q1, v.K1))
	pairBackward(dv.Q2, dv.K2, v.Q2, v.K2, -s*expDot(v.Q2, v.K2))
}

// pairBackward: dq += s·k, dk += s·q.
func pairBackward(dq, dk, q, k tensor.Tensor, s float64) {
	gq, gk, b := f32(dq), f32(dk), f32(k)
	for i, x := range f32(q) {
		gq[i] = float32(float64(gq[i]) + s*float64(b[i]))
		gk[i] = float32(float64(gk[i]) + s*float64(x))
	}
}
