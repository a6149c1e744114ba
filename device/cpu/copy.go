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
	d        *Device
}

// Copy: dst = src in dst's dtype.
func (d *Device) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	d.touch(dst)
	flat(&dst, &src)
	d.reserve(3 * part)
	d.copy = copyTask{gridOf(dst.Rows, dst.Cols), dst, src, d}
	d.run(d.copy.tiles(), &d.copy)
}

func (t *copyTask) tile(i, worker int) {
	for p := t.pieces(i); p.next(); {
		if t.dst.Type == t.src.Type { // rows may be as short as a layer's λ
			copy(t.dst.Buf.Host[place(t.dst, p.r, p.c0):place(t.dst, p.r, p.c1)], t.src.Buf.Host[place(t.src, p.r, p.c0):])
			continue
		}
		t.convert(t.dst.RowRange(p.r, p.r+1).Columns(p.c0, p.c1), t.src.RowRange(p.r, p.r+1).Columns(p.c0, p.c1), worker)
	}
}

// convert copies a piece of a row to another dtype.
func (t *copyTask) convert(dst, src tensor.Tensor, worker int) {
	switch {
	case dst.Type == tensor.BF16 && src.Type == tensor.F32: // not NarrowBF16: a copy keeps subnormal numbers
		x, rest, _ := t.d.stage(worker)
		simd.RoundBF16(x[:dst.Cols], f32(src))
		simd.SplitBF16(tensor.Host[uint16](dst), halves(rest), x[:dst.Cols])
	case dst.Type == tensor.F32 && src.Type == tensor.BF16:
		simd.WidenBF16(f32(dst), tensor.Host[uint16](src))
	default:
		var wide [part]float64
		widen(wide[:dst.Cols], src)
		narrow(dst, wide[:dst.Cols])
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
