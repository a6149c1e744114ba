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
	for r := r0; r < r1; r++ {
		dst, src := t.dst.RowRange(r, r+1).Columns(c0, c1), t.src.RowRange(r, r+1).Columns(c0, c1)
		if dst.Type == src.Type {
			copy(rowBytes(dst, 0), rowBytes(src, 0))
			continue
		}
		var wide [256]float64
		for c := 0; c < dst.Cols; c += len(wide) {
			x := wide[:min(len(wide), dst.Cols-c)]
			widen(x, src.Columns(c, c+len(x)))
			narrow(dst.Columns(c, c+len(x)), x)
		}
	}
}

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
