package ref

import (
	"fmt"

	"antiphase/internal/half"
	"antiphase/tensor"
)

// matrix is a dense float64 copy of a tensor.
type matrix struct {
	rows, cols int
	v          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

// row is row r, writable.
func (m matrix) row(r int) []float64 { return m.v[r*m.cols : (r+1)*m.cols] }

// head is columns [h·width, (h+1)·width) of row r: one head, writable.
func (m matrix) head(r, h, width int) []float64 { return m.row(r)[h*width : (h+1)*width] }

// load widens a float tensor of any dtype; an absent one gives an empty matrix.
func load(t tensor.Tensor) matrix {
	m := newMatrix(t.Rows, t.Cols)
	for r := range t.Rows {
		loadRow(m.row(r), t.RowRange(r, r+1))
	}
	return m
}

func loadRow(dst []float64, t tensor.Tensor) {
	switch t.Type {
	case tensor.F64:
		copy(dst, tensor.Host[float64](t))
	case tensor.F32:
		for i, x := range tensor.Host[float32](t) {
			dst[i] = float64(x)
		}
	case tensor.BF16:
		for i, x := range tensor.Host[uint16](t) {
			dst[i] = float64(half.BF16ToF32(x))
		}
	default:
		panic(fmt.Sprintf("ref: %v read as numbers", t))
	}
}

// store rounds m to t's dtype and writes t's elements and no others.
func store(t tensor.Tensor, m matrix) {
	for r := range t.Rows {
		storeRow(t.RowRange(r, r+1), m.row(r))
	}
}

// storeIf stores where the tensor is present.
func storeIf(t tensor.Tensor, m matrix) {
	if t.Ok() {
		store(t, m)
	}
}

func storeRow(t tensor.Tensor, src []float64) {
	switch t.Type {
	case tensor.F64:
		copy(tensor.Host[float64](t), src)
	case tensor.F32:
		dst := tensor.Host[float32](t)
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case tensor.BF16:
		dst := tensor.Host[uint16](t)
		for i := range dst {
			dst[i] = half.F32ToBF16(float32(src[i]))
		}
	default:
		panic(fmt.Sprintf("ref: numbers written into %v", t))
	}
}

// integers is an I32 [1,N] tensor.
func integers(t tensor.Tensor) []int32 { return tensor.Host[int32](t) }

func dot(x, y []float64) float64 {
	s := 0.0
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

// axpy: y += a·x.
func axpy(y []float64, a float64, x []float64) {
	for i := range y {
		y[i] += a * x[i]
	}
}
