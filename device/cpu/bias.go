package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type biasTask struct {
	grid
	y mat
	b []float32
}

type biasBackwardTask struct {
	dy mat
	db []float32
}

// colStep is the width of a tile in ops that sum over rows: each column is summed by one worker, from the top down.
const colStep = 128

// AddBias: y[n,:] += b[0,:].
func (d *Device) AddBias(y, b tensor.Tensor) {
	device.CheckAddBias(y, b, d.Types())
	d.touch(y)
	d.bias = biasTask{gridOf(y.Rows, y.Cols), matOf(y), f32(b)}
	d.run(d.bias.tiles(), &d.bias)
}

func (t *biasTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.span(i)
	for r := r0; r < r1; r++ {
		y := t.y.piece(r, c0, c1)
		simd.Add(y, y, t.b[c0:c1])
	}
}

// BiasBackward accumulates column sums: db[0,c] += Σ_n dy[n,c].
func (d *Device) BiasBackward(db, dy tensor.Tensor) {
	device.CheckBiasBackward(db, dy, d.Types())
	d.touch(db)
	d.biasBackward = biasBackwardTask{matOf(dy), f32(db)}
	d.run((dy.Cols+colStep-1)/colStep, &d.biasBackward)
}

func (t *biasBackwardTask) tile(i, _ int) {
	c0 := i * colStep
	c1 := min(c0+colStep, t.dy.cols)
	db := t.db[c0:c1]
	for r := range t.dy.rows {
		simd.Add(db, db, t.dy.piece(r, c0, c1))
	}
}
