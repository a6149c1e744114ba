package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// SwiGLU: y = g·σ(g)·u.
func (d *elementwise) SwiGLU(y, gu tensor.Tensor) {
	device.CheckSwiGLU(y, gu, d.types)
	in, out := load(gu), newMatrix(y.Rows, y.Cols)
	for n := range out.rows {
		g, u := in.head(n, 0, out.cols), in.head(n, 1, out.cols)
		for f := range g {
			out.row(n)[f] = g[f] * sigmoid(g[f]) * u[f]
		}
	}
	store(y, out)
}

// SwiGLUBackward: dg = dy·u·σ(g)·(1 + g·(1−σ(g))), du = dy·g·σ(g), y = g·σ(g)·u.
func (d *elementwise) SwiGLUBackward(dgu, y, dy, gu tensor.Tensor) {
	device.CheckSwiGLUBackward(dgu, y, dy, gu, d.types)
	in, up, out, again := load(gu), load(dy), newMatrix(dgu.Rows, dgu.Cols), newMatrix(y.Rows, y.Cols)
	for n := range up.rows {
		g, u := in.head(n, 0, up.cols), in.head(n, 1, up.cols)
		dg, du := out.head(n, 0, up.cols), out.head(n, 1, up.cols)
		for f, e := range up.row(n) {
			s := sigmoid(g[f])
			dg[f] = e * u[f] * s * (1 + g[f]*(1-s))
			du[f] = e * g[f] * s
			again.row(n)[f] = g[f] * s * u[f]
		}
	}
	store(dgu, out)
	store(y, again)
}
