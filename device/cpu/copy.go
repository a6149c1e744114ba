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
		for c := range dst.Cols {
			put(dst, c, get(src, c))
		}
	}
}

// get is element c of a single row of any float dtype. A float64 holds all of them exactly.
func get(t tensor.Tensor, c int) float64 {
	switch t.Type {
	case tensor.F64:
		return tensor.Host[float64](t)[c]
	case tensor.BF16:
		return float64(half.BF16ToF32(tensor.Host[uint16](t)[c]))
	}
	return float64(f32(t)[c])
}

// put stores x as element c of a single row, rounded to its dtype.
func put(t tensor.Tensor, c int, x float64) {
	switch t.Type {
	case tensor.F64:
		tensor.Host[float64](t)[c] = x
	case tensor.BF16:
		tensor.Host[uint16](t)[c] = half.F32ToBF16(float32(x))
	default:
		f32(t)[c] = float32(x)
	}
}
