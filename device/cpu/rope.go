package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type ropeTask struct {
	device.Rope
	x, table mat
	pos      []int32
	step     int
	d        *machine
}

// Rope rotates x in place. A position outside the table leaves x unchanged.
func (d *rowOps) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	r.Check(x, table, pos, d.Types())
	d.touch(x)
	t := &d.rope
	d.reserve(max(pieceLen, r.Dim))
	*t = ropeTask{r, matOf(x), matOf(table), i32(pos), rowsPerTile(x.Cols), d.machine}
	if d.checkIDs("rope", t.pos, table.Rows, false) {
		d.run((x.Rows+t.step-1)/t.step, t)
	}
}

func (t *ropeTask) tile(i, worker int) {
	half, step := t.Dim/2, max(1, pieceLen/t.Dim)*t.Dim // whole heads
	buf, sign := t.d.buf(worker, step), float32(1)
	if t.Inverse {
		sign = -1
	}
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		row := t.table.row(int(t.pos[n]))
		cos, sin := row[:half], row[half:]
		switch {
		case t.x.short() && t.Interleaved:
			simd.RotatePairsBF16(t.x.half(n, 0, t.x.cols), cos, sin, sign, 2*t.x.ld)
			continue
		case t.x.short():
			simd.RotateHeadsBF16(t.x.half(n, 0, t.x.cols), cos, sin, sign, 2*t.x.ld)
			continue
		}
		for c := 0; c < t.x.cols; c += step {
			end := min(c+step, t.x.cols)
			x := t.x.read(n, c, end, buf)
			if t.Interleaved {
				simd.RotatePairs(x, cos, sin, sign)
			} else {
				simd.RotateHeads(x, cos, sin, sign)
			}
			t.x.store(n, c, end, x)
		}
	}
}
