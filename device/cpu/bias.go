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
	d *machine
}

type biasBackwardTask struct {
	dy mat
	db []float32
	d  *machine
}

// colStep is the width of a tile in ops that sum over rows: each column is summed by one worker, from top to bottom.
const colStep = 128

// AddBias: y[n,:] += b[0,:].
func (d *elementwise) AddBias(y, b tensor.Tensor) {
	device.CheckAddBias(y, b, d.Types())
	d.touch(y)
	d.reserve(3 * pieceLen)
	d.bias = biasTask{gridOf(y.Rows, y.Cols), matOf(y), wide(b, d.room(b.Cols)), d.machine}
	d.run(d.bias.tiles(), &d.bias)
}

func (t *biasTask) tile(i, worker int) {
	a, _, _ := t.d.stage(worker)
	for p := t.pieces(i); p.next(); {
		y := t.y.read(p.r, p.c0, p.c1, a)
		simd.Add(y, y, t.b[p.c0:p.c1])
		t.y.store(p.r, p.c0, p.c1, y)
	}
}

// BiasBackward accumulates column sums: db[0,c] += Σ_n dy[n,c].
func (d *elementwise) BiasBackward(db, dy tensor.Tensor) {
	device.CheckBiasBackward(db, dy, d.Types())
	d.touch(db)
	d.reserve(colStep)
	d.biasBackward = biasBackwardTask{matOf(dy), f32(db), d.machine}
	d.run((dy.Cols+colStep-1)/colStep, &d.biasBackward)
}

func (t *biasBackwardTask) tile(i, worker int) {
	c0 := i * colStep
	c1 := min(c0+colStep, t.dy.cols)
	db, buf := t.db[c0:c1], t.d.buf(worker, colStep)
	for r := range t.dy.rows {
		simd.Add(db, db, t.dy.read(r, c0, c1, buf))
	}
}
