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
	d        *Device
}

// Rope rotates x in place. A position outside the table leaves x as it is.
func (d *Device) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	r.Check(x, table, pos, d.Types())
	d.touch(x)
	t := &d.rope
	*t = ropeTask{r, matOf(x), matOf(table), i32(pos), rowsPerTile(x.Cols), d}
	if d.checkIDs("rope", t.pos, table.Rows) {
		d.run((x.Rows+t.step-1)/t.step, t)
	}
}

func (t *ropeTask) tile(i, worker int) {
	half := t.Dim / 2
	neg := t.d.buf(worker, half)
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		row := t.table.row(int(t.pos[n]))
		cos, sin := row[:half], row[half:]
		if t.Inverse {
			copy(neg, sin)
			simd.Scale(neg, -1)
			sin = neg
		}
		x := t.x.row(n)
		for h := range t.Heads {
			head := x[h*t.Dim : (h+1)*t.Dim]
			if t.Interleaved {
				simd.RotatePairs(head, cos, sin)
			} else {
				simd.Rotate(head[:half], head[half:], cos, sin)
			}
		}
	}
}
