package cpu

import (
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// mat is a matrix in memory, cheaper to iterate over than a Tensor: float32 in x, or bfloat16 in h.
//
// Ops compute in float32. They read part of a row with read and write one to the memory of place, followed by store:
// float32 matrices are read and written in place, parts of bfloat16 ones go through a buffer that stays in L1.
type mat struct {
	x              []float32
	h              []uint16
	rows, cols, ld int
}

func matOf(t tensor.Tensor) mat {
	m := mat{rows: t.Rows, cols: t.Cols, ld: t.Ld}
	switch {
	case !t.Ok():
	case t.Type == tensor.BF16:
		m.h = tensor.Host[uint16](t)
	default:
		m.x = f32(t)
	}
	return m
}

// ok reports whether the matrix is present.
func (m *mat) ok() bool { return m.x != nil || m.h != nil }

// bytes is the size of its elements.
func (m *mat) bytes() int {
	if m.h != nil {
		return 2 * m.rows * m.cols
	}
	return 4 * m.rows * m.cols
}

// clear sets it to zero.
func (m *mat) clear() {
	for r := range m.rows {
		if m.h != nil {
			clear(m.half(r, 0, m.cols))
		} else {
			clear(m.row(r))
		}
	}
}

// row is the elements of row r of a float32 matrix, piece columns [c0,c1) of them, from the memory starting at element
// (r,c).
func (m *mat) row(r int) []float32           { return m.piece(r, 0, m.cols) }
func (m *mat) piece(r, c0, c1 int) []float32 { return m.x[r*m.ld+c0 : r*m.ld+c1 : r*m.ld+c1] }
func (m *mat) from(r, c int) []float32       { return m.x[r*m.ld+c:] }

// short reports whether the matrix is bfloat16 and there are kernels for it.
func (m *mat) short() bool { return m.h != nil && simd.VectorsBF16() }

// half is columns [c0,c1) of row r of a bfloat16 matrix.
func (m *mat) half(r, c0, c1 int) []uint16 { return m.h[r*m.ld+c0 : r*m.ld+c1 : r*m.ld+c1] }

// at is the matrix starting at element (r,c).
func (m *mat) at(r, c int) simd.View { return simd.View{X: m.x, H: m.h, Ld: m.ld}.From(r, c) }

// rowsFrom is rows [n, n+rows).
func (m mat) rowsFrom(n, rows int) mat {
	v := m.at(n, 0)
	return mat{v.X, v.H, rows, m.cols, m.ld}
}

// wide is a vector applied to many rows, in float32: in place, or widened into buf once for all of them.
func wide(t tensor.Tensor, buf []float32) []float32 {
	m := matOf(t)
	return m.read(0, 0, m.cols, buf)
}

// read returns columns [c0,c1) of row r in float32: in place, or widened into buf.
func (m *mat) read(r, c0, c1 int, buf []float32) []float32 {
	if m.h == nil {
		return m.piece(r, c0, c1)
	}
	buf = buf[:c1-c0]
	simd.WidenBF16(buf, m.half(r, c0, c1))
	return buf
}

// place returns memory for computing columns [c0,c1) of row r: in the matrix itself, or in buf. store then takes them
// from there.
func (m *mat) place(r, c0, c1 int, buf []float32) []float32 {
	if m.h == nil {
		return m.piece(r, c0, c1)
	}
	return buf[:c1-c0]
}

// store rounds x, which place returned, to a bfloat16 matrix.
func (m *mat) store(r, c0, c1 int, x []float32) {
	if m.h != nil {
		simd.NarrowBF16(m.half(r, c0, c1), x)
	}
}
