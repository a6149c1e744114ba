package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type sumSquaresTask struct {
	grid
	x       mat
	partial []float64 // one per tile
}

// SumSquares accumulates: dst[0,0] += Σ x². Tiles are summed in float64, then added in order.
func (d *Device) SumSquares(dst, x tensor.Tensor) {
	device.CheckSumSquares(dst, x, d.Types())
	d.touch(dst)
	flat(&x)
	t := &d.sumSquares
	t.grid, t.x = gridOf(x.Rows, x.Cols), matOf(x)
	n := t.tiles()
	if cap(t.partial) < n {
		t.partial = make([]float64, n)
	}
	t.partial = t.partial[:n]
	d.run(n, t)
	sum := float64(f32(dst)[0])
	for _, p := range t.partial {
		sum += p
	}
	f32(dst)[0] = float32(sum)
}

func (t *sumSquaresTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	var sum float64
	for r := r0; r < r1; r++ {
		sum += simd.SumSquares(t.x.piece(r, c0, c1))
	}
	t.partial[i] = sum
}
