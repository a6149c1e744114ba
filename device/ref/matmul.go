package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// MatMul: c[m,n] (+)= Σ_k op(a)[m,k]·op(b)[k,n].
func (d *products) MatMul(c, a, b tensor.Tensor, op device.MatMul) {
	device.CheckMatMul(c, a, b, op, d.types)
	x, y := load(a), load(b)
	if op.TransA {
		x = transpose(x)
	}
	if !op.TransB {
		y = transpose(y) // so that both factors of an element are rows
	}
	z := newMatrix(c.Rows, c.Cols)
	if op.Accumulate {
		z = load(c)
	}
	for m := range z.rows {
		for n := range z.cols {
			z.row(m)[n] += dot(x.row(m), y.row(n))
		}
	}
	store(c, z)
}

func transpose(m matrix) matrix {
	t := newMatrix(m.cols, m.rows)
	for r := range m.rows {
		for c, x := range m.row(r) {
			t.row(c)[r] = x
		}
	}
	return t
}
