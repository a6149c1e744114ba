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
	d                *machine
}

type rmsnormBackwardTask struct {
	dx, dy, x mat
	w, rstd   []float32
	partial   []float32 // [chunks, C]: each chunk's share of dw
	step      int
	d         *machine
}

// RMSNorm: s = x + delta, y = s·rstd·w.
func (d *rowOps) RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64) {
	device.CheckRMSNorm(y, rstd, sum, x, delta, w, d.Types())
	d.touch(y, rstd, sum)
	t := &d.rmsnorm
	d.reserve(2 * x.Cols)
	*t = rmsnormTask{matOf(y), matOf(sum), matOf(x), matOf(delta), f32(rstd), wide(w, d.room(x.Cols)), eps,
		rowsPerTile(x.Cols), d.machine}
	d.run((x.Rows+t.step-1)/t.step, t)
}

// rowsPerTile is the number of whole rows of cols elements in one tile.
func rowsPerTile(cols int) int { return max(1, chunk/max(cols, 1)) }

func (t *rmsnormTask) tile(i, worker int) {
	c := t.x.cols
	buf := t.d.buf(worker, 2*c)
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		if t.x.short() {
			t.rowBF16(n)
			continue
		}
		s := t.x.read(n, 0, c, buf)
		if t.delta.ok() {
			sum := t.sum.place(n, 0, c, buf)
			simd.Add(sum, s, t.delta.read(n, 0, c, buf[c:]))
			t.sum.store(n, 0, c, sum)
			s = t.sum.read(n, 0, c, buf) // as rounded
		}
		rstd := t.factor(n, simd.SumSquares(s))
		y := t.y.place(n, 0, c, buf)
		simd.ScaleMul(y, rstd, s, t.w)
		t.y.store(n, 0, c, y)
	}
}

// rowBF16 is row n if all are bfloat16 and there are kernels for that.
func (t *rmsnormTask) rowBF16(n int) {
	c := t.x.cols
	s := t.x.half(n, 0, c)
	if t.delta.ok() {
		sum := t.sum.half(n, 0, c)
		simd.AddBF16(sum, s, t.delta.half(n, 0, c), 2*t.x.ld)
		s = sum
	}
	simd.ScaleMulBF16(t.y.half(n, 0, c), t.factor(n, simd.SumSquaresBF16(s)), s, t.w)
}

// factor is rstd of row n, whose squares have this sum.
func (t *rmsnormTask) factor(n int, square float64) float32 {
	rstd := float32(1 / math.Sqrt(square/float64(t.x.cols)+t.eps))
	if t.rstd != nil {
		t.rstd[n] = rstd
	}
	return rstd
}

// RMSNormBackward: with g = dy·w and x̂ = x·rstd, dx += rstd·(g − x̂·mean(g·x̂)), dw += Σ_n dy·x̂.
//
// Rows are divided into at most 64 chunks by their number alone. A chunk sums its share of dw from top to bottom; the
// shares are added in order at the end.
func (d *rowOps) RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor) {
	device.CheckRMSNormBackward(dx, dw, dy, x, w, rstd, d.Types())
	d.touch(dx, dw)
	step := max(8, (x.Rows+63)/64)
	chunks := (x.Rows + step - 1) / step
	t := &d.rmsnormBackward
	d.reserve(3 * x.Cols)
	room := d.room((chunks + 1) * x.Cols)
	*t = rmsnormBackwardTask{matOf(dx), matOf(dy), matOf(x), wide(w, room[chunks*x.Cols:]), f32(rstd), room,
		step, d.machine}
	d.run(chunks, t)
	sum := f32(dw)
	for i := range chunks {
		simd.Add(sum, sum, t.partial[i*x.Cols:(i+1)*x.Cols])
	}
}

func (t *rmsnormBackwardTask) tile(i, worker int) {
	c := t.x.cols
	buf, dw := t.d.buf(worker, 3*c), t.partial[i*c:(i+1)*c]
	clear(dw)
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		if t.x.short() {
			dy, x, rstd := t.dy.half(n, 0, c), t.x.half(n, 0, c), t.rstd[n]
			mean := simd.Dot3BF16(dy, t.w, x, 2*t.x.ld) * rstd / float32(len(x))
			simd.NormGradBF16(t.dx.half(n, 0, c), dy, t.w, x, rstd, -rstd*rstd*mean, 2*t.dx.ld)
			simd.MulAxpyBF16(dw, rstd, dy, x)
			continue
		}
		dy, x, rstd := t.dy.read(n, 0, c, buf), t.x.read(n, 0, c, buf[c:]), t.rstd[n]
		mean := simd.Dot3(dy, t.w, x) * rstd / float32(len(x))
		dx := t.dx.read(n, 0, c, buf[2*c:])
		simd.NormGrad(dx, dy, t.w, x, rstd, -rstd*rstd*mean)
		t.dx.store(n, 0, c, dx)
		simd.MulAxpy(dw, rstd, dy, x)
	}
}
