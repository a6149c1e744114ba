package cpu

import (
	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type copyTask struct {
	grid
	dst, src tensor.Tensor
	to, from mat // dst and src, or empty if one is float64
	d        *machine
}

// shortRow is the length up to which a row is converted faster inline than by kernels: a layer's λ.
const shortRow = 16

// Copy: dst = src in dst's dtype.
func (d *elementwise) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	d.touch(dst)
	flat(&dst, &src)
	d.reserve(3 * pieceLen)
	d.copy = copyTask{grid: gridOf(dst.Rows, dst.Cols), dst: dst, src: src, d: d.machine}
	if dst.Type != tensor.F64 && src.Type != tensor.F64 {
		d.copy.to, d.copy.from = matOf(dst), matOf(src)
	}
	d.run(d.copy.tiles(), &d.copy)
}

func (t *copyTask) tile(i, worker int) {
	for p := t.pieces(i); p.next(); {
		switch {
		case t.dst.Type == t.src.Type: // rows may be as short as a layer's λ
			copy(t.dst.Buf.Host[place(t.dst, p.r, p.c0):place(t.dst, p.r, p.c1)],
				t.src.Buf.Host[place(t.src, p.r, p.c0):])
		case t.to.h != nil && t.from.x != nil:
			t.narrow(t.to.half(p.r, p.c0, p.c1), t.from.piece(p.r, p.c0, p.c1), worker)
		case t.to.x != nil && t.from.h != nil:
			simd.WidenBF16(t.to.piece(p.r, p.c0, p.c1), t.from.half(p.r, p.c0, p.c1))
		default:
			var x [pieceLen]float64
			piece := x[:p.c1-p.c0]
			widen(piece, t.src.RowRange(p.r, p.r+1).Columns(p.c0, p.c1))
			narrow(t.dst.RowRange(p.r, p.r+1).Columns(p.c0, p.c1), piece)
		}
	}
}

// narrow rounds part of a row. Not NarrowBF16: a copy keeps subnormal numbers.
func (t *copyTask) narrow(dst []uint16, src []float32, worker int) {
	if len(src) <= shortRow {
		for i, x := range src {
			dst[i] = half.F32ToBF16(x)
		}
		return
	}
	x, rest, _ := t.d.stage(worker)
	x = x[:len(src)]
	simd.RoundBF16(x, src)
	simd.SplitBF16(dst, simd.Halves(rest), x)
}

// place is the byte offset of element (r,c) of t.
func place(t tensor.Tensor, r, c int) int { return t.Off + (r*t.Ld+c)*t.Type.Size() }

// widen reads a single row of any float dtype. A float64 holds all of them exactly.
func widen(dst []float64, src tensor.Tensor) {
	switch src.Type {
	case tensor.F64:
		copy(dst, tensor.Host[float64](src))
	case tensor.BF16:
		for i, x := range tensor.Host[uint16](src) {
			dst[i] = float64(half.BF16ToF32(x))
		}
	default:
		for i, x := range f32(src) {
			dst[i] = float64(x)
		}
	}
}

// narrow stores a single row, rounded to its dtype.
func narrow(dst tensor.Tensor, src []float64) {
	switch dst.Type {
	case tensor.F64:
		copy(tensor.Host[float64](dst), src)
	case tensor.BF16:
		out := tensor.Host[uint16](dst)
		for i, x := range src {
			out[i] = half.F32ToBF16(float32(x))
		}
	default:
		out := f32(dst)
		for i, x := range src {
			out[i] = float32(x)
		}
	}
}
