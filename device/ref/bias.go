package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// AddBias: y[n,:] += b.
func (d *elementwise) AddBias(y, b tensor.Tensor) {
	device.CheckAddBias(y, b, d.types)
	out, bias := load(y), load(b)
	for n := range out.rows {
		axpy(out.row(n), 1, bias.v)
	}
	store(y, out)
}

// BiasBackward: db += Σ_n dy[n,:].
func (d *elementwise) BiasBackward(db, dy tensor.Tensor) {
	device.CheckBiasBackward(db, dy, d.types)
	grad, in := load(db), load(dy)
	for n := range in.rows {
		axpy(grad.v, 1, in.row(n))
	}
	store(db, grad)
}
