package ref

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Lambda: λ = exp(q1·k1) − exp(q2·k2) + init.
func (d *attention) Lambda(lam tensor.Tensor, v device.LambdaVecs, init float64) {
	device.CheckLambda(lam, v, d.types)
	out := newMatrix(1, 1)
	out.v[0] = math.Exp(dot(load(v.Q1).v, load(v.K1).v)) - math.Exp(dot(load(v.Q2).v, load(v.K2).v)) + init
	store(lam, out)
}

// LambdaBackward adds ±s·exp(q·k) times the partner of each vector, s = Σ dlam.
func (d *attention) LambdaBackward(g device.LambdaVecs, dlam tensor.Tensor, v device.LambdaVecs) {
	device.CheckLambdaBackward(g, dlam, v, d.types)
	s := 0.0
	for _, e := range load(dlam).v {
		s += e
	}
	lambdaPair(g.Q1, g.K1, v.Q1, v.K1, s)
	lambdaPair(g.Q2, g.K2, v.Q2, v.K2, -s)
}

// lambdaPair: dq += s·exp(q·k)·k, dk += s·exp(q·k)·q.
func lambdaPair(dq, dk, q, k tensor.Tensor, s float64) {
	x, y, gx, gy := load(q), load(k), load(dq), load(dk)
	e := s * math.Exp(dot(x.v, y.v))
	axpy(gx.v, e, y.v)
	axpy(gy.v, e, x.v)
	store(dq, gx)
	store(dk, gy)
}
