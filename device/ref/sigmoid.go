package ref

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Sigmoid: y = 1/(1+e^−x).
func (d *elementwise) Sigmoid(y, x tensor.Tensor) {
	device.CheckSigmoid(y, x, d.types)
	m := load(x)
	for i, e := range m.v {
		m.v[i] = sigmoid(e)
	}
	store(y, m)
}

// SigmoidBackward: dx = dy·y·(1−y).
func (d *elementwise) SigmoidBackward(dx, dy, y tensor.Tensor) {
	device.CheckSigmoidBackward(dx, dy, y, d.types)
	grad, out := load(dy), load(y)
	for i, e := range out.v {
		grad.v[i] *= e * (1 - e)
	}
	store(dx, grad)
}
