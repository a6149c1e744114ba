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
	d.reserve(max(part, r.Dim) + r.Dim/2)
	*t = ropeTask{r, matOf(x), matOf(table), i32(pos), rowsPerTile(x.Cols), d}
	if d.checkIDs("rope", t.pos, table.Rows) {
		d.run((x.Rows+t.step-1)/t.step, t)
	}
}

func (t *ropeTask) tile(i, worker int) {
	half, step := t.Dim/2, max(1, part/t.Dim)*t.Dim // whole heads
	buf := t.d.buf(worker, step+half)
	neg := buf[step:]
	for n := i * t.step; n < min((i+1)*t.step, t.x.rows); n++ {
		row := t.table.row(int(t.pos[n]))
		cos, sin := row[:half], row[half:]
		if t.Inverse {
			copy(neg, sin)
			simd.Scale(neg, -1)
			sin = neg
		}
		if t.x.short() && !t.Interleaved {
			for c := 0; c < t.x.cols; c += t.Dim {
				simd.RotateBF16(t.x.half(n, c, c+half), t.x.half(n, c+half, c+t.Dim), cos, sin)
			}
			continue
		}
		for c := 0; c < t.x.cols; c += step {
			end := min(c+step, t.x.cols)
			x := t.x.read(n, c, end, buf)
			t.rotate(x, cos, sin)
			t.x.store(n, c, end, x)
		}
	}
}

// rotate turns the heads in x by one position's angles.
func (t *ropeTask) rotate(x, cos, sin []float32) {
	half := t.Dim / 2
	for ; len(x) > 0; x = x[t.Dim:] {
		if t.Interleaved {
			simd.RotatePairs(x[:t.Dim], cos, sin)
		} else {
			simd.Rotate(x[:half], x[half:t.Dim], cos, sin)
		}
	}
}
