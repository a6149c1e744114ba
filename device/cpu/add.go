package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type addTask struct {
	grid
	dst, src tensor.Tensor
}

// Add accumulates: dst += src.
func (d *Device) Add(dst, src tensor.Tensor) {
	device.CheckAdd(dst, src)
	d.touch(dst)
	flat(&dst, &src)
	d.add = addTask{gridOf(dst.Rows, dst.Cols), dst, src}
	d.run(d.add.tiles(), &d.add)
}

func (t *addTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	for r := r0; r < r1; r++ {
		dst, src := t.dst.RowRange(r, r+1).Columns(c0, c1), t.src.RowRange(r, r+1).Columns(c0, c1)
		if dst.Type == tensor.F32 && src.Type == tensor.F32 {
			simd.Add(f32(dst), f32(dst), f32(src))
			continue
		}
		var a, b [256]float64
		for c := 0; c < dst.Cols; c += len(a) {
			n := min(len(a), dst.Cols-c)
			widen(a[:n], dst.Columns(c, c+n))
			widen(b[:n], src.Columns(c, c+n))
			for i := range n {
				a[i] += b[i]
			}
			narrow(dst.Columns(c, c+n), a[:n])
		}
	}
}
