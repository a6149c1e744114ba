package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// headNorm returns out = Scale·w·raw·rstd for each head of dv columns, and rstd [N,H].
func headNorm(norm device.HeadNorm, raw matrix, dv int) (out, rstd matrix) {
	heads := raw.cols / dv
	out, rstd = newMatrix(raw.rows, raw.cols), newMatrix(raw.rows, heads)
	w := normWeight(norm, dv)
	for n := range raw.rows {
		for h := range heads {
			x, y := raw.head(n, h, dv), out.head(n, h, dv)
			inv := rms(x, norm.Eps)
			for c := range x {
				y[c] = norm.Scale * w[c] * x[c] * inv
			}
			rstd.row(n)[h] = inv
		}
	}
	return out, rstd
}

// headNormBackward turns the gradient of out into that of raw, and adds the weight's own to dw.
func headNormBackward(norm device.HeadNorm, dw, dout, raw, rstd matrix, dv int) matrix {
	w, draw := normWeight(norm, dv), newMatrix(raw.rows, raw.cols)
	for n := range raw.rows {
		for h := range rstd.cols {
			up := make([]float64, dv) // of w·raw·rstd
			axpy(up, norm.Scale, dout.head(n, h, dv))
			copy(draw.head(n, h, dv), rmsBackward(dw.v, up, raw.head(n, h, dv), w, rstd.row(n)[h]))
		}
	}
	return draw
}

func normWeight(norm device.HeadNorm, dv int) []float64 {
	if norm.Weight.Ok() {
		return load(norm.Weight).v
	}
	w := make([]float64, dv)
	for c := range w {
		w[c] = 1
	}
	return w
}

// storeHeads stores out = HeadNorm(raw), and raw and rstd if requested.
func storeHeads(norm device.HeadNorm, dv int, raw matrix, out, rawOut, rstdOut tensor.Tensor) {
	if !norm.On {
		store(out, raw)
		return
	}
	y, rstd := headNorm(norm, raw, dv)
	store(out, y)
	storeIf(rawOut, raw)
	storeIf(rstdOut, rstd)
}

// openHeads is the inverse of storeHeads: raw as forward kept it, and its gradient; dnorm accumulates.
func openHeads(norm device.HeadNorm, dv int, out, rawKept, rstd, dout, dnorm tensor.Tensor) (raw, draw matrix) {
	if !norm.On {
		return load(out), load(dout)
	}
	dw := newMatrix(1, dv)
	if dnorm.Ok() {
		dw = load(dnorm)
	}
	raw = load(rawKept)
	draw = headNormBackward(norm, dw, load(dout), raw, load(rstd), dv)
	storeIf(dnorm, dw)
	return raw, draw
}
