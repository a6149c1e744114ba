package ref

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// RMSNorm: s = x + delta, rstd = 1/√(mean s² + eps), y = s·rstd·w.
func (d *rowOps) RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64) {
	device.CheckRMSNorm(y, rstd, sum, x, delta, w, d.types)
	s, weight := load(x), load(w)
	if delta.Ok() {
		axpy(s.v, 1, load(delta).v)
		store(sum, s)
		s = load(sum) // as later layers will see it
	}
	out, inv := newMatrix(s.rows, s.cols), newMatrix(1, s.rows)
	for n := range s.rows {
		inv.v[n] = rms(s.row(n), eps)
		for c, e := range s.row(n) {
			out.row(n)[c] = e * inv.v[n] * weight.v[c]
		}
	}
	store(y, out)
	storeIf(rstd, inv)
}

// rms is 1/√(mean x² + eps).
func rms(x []float64, eps float64) float64 { return 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps) }

// RMSNormBackward: with x̂ = x·rstd and g = dy·w, dx += rstd·(g − x̂·mean(g·x̂)), dw += Σ_n dy·x̂.
func (d *rowOps) RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor) {
	device.CheckRMSNormBackward(dx, dw, dy, x, w, rstd, d.types)
	gx, gw := load(dx), load(dw)
	up, in, weight, inv := load(dy), load(x), load(w), load(rstd)
	for n := range in.rows {
		axpy(gx.row(n), 1, rmsBackward(gw.v, up.row(n), in.row(n), weight.v, inv.v[n]))
	}
	store(dx, gx)
	store(dw, gw)
}

// rmsBackward gives dx of one row y = x·rstd·w and adds dy·x̂ to dw.
func rmsBackward(dw, dy, x, w []float64, rstd float64) []float64 {
	mean := 0.0
	for c := range x {
		mean += dy[c] * w[c] * x[c] * rstd / float64(len(x))
	}
	dx := make([]float64, len(x))
	for c := range x {
		xhat := x[c] * rstd
		dx[c] = rstd * (dy[c]*w[c] - xhat*mean)
		dw[c] += dy[c] * xhat
	}
	return dx
}
