package cpu

import (
	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

type copyTask struct {
	grid
	dst, src tensor.Tensor
}

// Copy: dst = src in dst's dtype.
func (d *Device) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	d.touch(dst)
	flat(&dst, &src)
	d.copy = copyTask{gridOf(dst.Rows, dst.Cols), dst, src}
	d.run(d.copy.tiles(), &d.copy)
}

func (t *copyTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	if t.dst.Type == t.src.Type { // rows may be as short as a layer's λ
		for r := r0; r < r1; r++ {
			copy(t.dst.Buf.Host[place(t.dst, r, c0):place(t.dst, r, c1)], t.src.Buf.Host[place(t.src, r, c0):])
		}
		return
	}
	for r := r0; r < r1; r++ {
		dst, src := t.dst.RowRange(r, r+1).Columns(c0, c1), t.src.RowRange(r, r+1).Columns(c0, c1)
		var wide [256]float64
		for c := 0; c < dst.Cols; c += len(wide) {
			x := wide[:min(len(wide), dst.Cols-c)]
			widen(x, src.Columns(c, c+len(x)))
			narrow(dst.Columns(c, c+len(x)), x)
		}
	}
}

// place is where element (r,c) of t begins, in bytes.
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
