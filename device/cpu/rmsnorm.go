package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type rmsnormTask struct {
	y, sum, x, delta mat
	rstd, w          []float32
	eps              float64
	step             int
}

type rmsnormBackwardTask struct {
	dx, dy, x mat
	w, rstd   []float32
	partial   []float32 // [chunks, C]: each chunk's share of dw
	step      int
}

// RMSNorm: s = x + delta, y = s·rstd·w.
func (d *Device) RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64) {
	device.CheckRMSNorm(y, rstd, sum, x, delta, w, d.Types())
	d.touch(y, rstd, sum)
	t := &d.rmsnorm
	*t = rmsnormTask{matOf(y), matOf(sum), matOf(x), matOf(delta), f32(rstd), f32(w), eps, rowsPerTile(x.Cols)}
	d.run((x.Rows+t.step-1)/t.step, t)
}

// rowsPerTile is how many whole rows of cols elements make one tile.
func rowsPerTile(cols int) int { return max(1, chunk/max(cols, 1)) }

func (t *rmsnormTask) tile(i, _ int) {
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		s := t.x.row(n)
		if t.delta.x != nil {
			sum := t.sum.row(n)
			simd.Add(sum, s, t.delta.row(n))
			s = sum
		}
		rstd := float32(1 / math.Sqrt(simd.SumSquares(s)/float64(len(s))+t.eps))
		if t.rstd != nil {
			t.rstd[n] = rstd
		}
		simd.ScaleMul(t.y.row(n), rstd, s, t.w)
	}
}

// RMSNormBackward: with g = dy·w and x̂ = x·rstd, dx += rstd·(g − x̂·mean(g·x̂)), dw += Σ_n dy·x̂.
//
// Rows are cut into at most 64 chunks by their number alone. A chunk sums its share of dw from the top down; the
// shares are added in order at the end.
func (d *Device) RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor) {
	device.CheckRMSNormBackward(dx, dw, dy, x, w, rstd, d.Types())
	d.touch(dx, dw)
	step := max(8, (x.Rows+63)/64)
	chunks := (x.Rows + step - 1) / step
	t := &d.rmsnormBackward
	*t = rmsnormBackwardTask{matOf(dx), matOf(dy), matOf(x), f32(w), f32(rstd), d.room(chunks * x.Cols), step}
	d.run(chunks, t)
	sum := f32(dw)
	for i := range chunks {
		simd.Add(sum, sum, t.partial[i*x.Cols:(i+1)*x.Cols])
	}
}

func (t *rmsnormBackwardTask) tile(i, _ int) {
	dw := t.partial[i*t.x.cols : (i+1)*t.x.cols]
	clear(dw)
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		dy, x, rstd := t.dy.row(n), t.x.row(n), t.rstd[n]
		mean := simd.Dot3(dy, t.w, x) * rstd / float32(len(x))
		simd.NormGrad(t.dx.row(n), dy, t.w, x, rstd, -rstd*rstd*mean)
		simd.MulAxpy(dw, rstd, dy, x)
	}
}
