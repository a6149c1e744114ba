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
	d       *machine
}

// SumSquares accumulates: dst[0,0] += Σ x². Tiles are summed in float64, then added in order.
func (d *elementwise) SumSquares(dst, x tensor.Tensor) {
	device.CheckSumSquares(dst, x, d.Types())
	d.touch(dst)
	flat(&x)
	t := &d.sumSquares
	t.grid, t.x, t.d = gridOf(x.Rows, x.Cols), matOf(x), d.machine
	n := t.tiles()
	if cap(t.partial) < n {
		t.partial = make([]float64, n)
	}
	t.partial = t.partial[:n]
	d.reserve(t.colStep)
	d.run(n, t)
	sum := float64(f32(dst)[0])
	for _, p := range t.partial {
		sum += p
	}
	f32(dst)[0] = float32(sum)
}

func (t *sumSquaresTask) tile(i, worker int) {
	r0, r1, c0, c1 := t.bounds(i)
	buf := t.d.buf(worker, t.colStep)
	var sum float64
	for r := r0; r < r1; r++ {
		sum += simd.SumSquares(t.x.read(r, c0, c1, buf))
	}
	t.partial[i] = sum
}
