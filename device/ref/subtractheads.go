package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// SubtractHeads: out_h = a_h − λ_h·a_{H+h}.
func (d *attention) SubtractHeads(out, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeads(out, a, lam, heads, d.types)
	in, l, y, dv := load(a), load(lam), newMatrix(out.Rows, out.Cols), out.Cols/heads
	for n := range y.rows {
		for h := range heads {
			copy(y.head(n, h, dv), in.head(n, h, dv))
			axpy(y.head(n, h, dv), -lambdaOf(l, n, h), in.head(n, heads+h, dv))
		}
	}
	store(out, y)
}

// SubtractHeadsBackward: da_h = dout_h, da_{H+h} = −λ_h·dout_h, dλ_h = −dout_h·a_{H+h}.
func (d *attention) SubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeadsBackward(da, dlam, dout, a, lam, heads, d.types)
	in, l, up, dv := load(a), load(lam), load(dout), dout.Cols/heads
	dx, dl := newMatrix(da.Rows, da.Cols), newMatrix(dlam.Rows, dlam.Cols)
	for n := range up.rows {
		for h := range heads {
			e := up.head(n, h, dv)
			copy(dx.head(n, h, dv), e)
			axpy(dx.head(n, heads+h, dv), -lambdaOf(l, n, h), e)
			dl.row(n)[h] = -dot(e, in.head(n, heads+h, dv))
		}
	}
	store(da, dx)
	store(dlam, dl)
}
