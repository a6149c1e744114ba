package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// ropeKernels by layout (halves, neighbours) and by whether 16 bytes can be taken at once.
var ropeKernels = [2][2]kernel{
	{earlyOf("rope", "rope_half_1"), earlyOf("rope", "rope_half_8")},
	{earlyOf("rope", "rope_pairs_1"), earlyOf("rope", "rope_pairs_4")},
}

// Rope turns each pair of each head by the angle of its row's position.
func (d *Device) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	r.Check(x, table, pos, d.types)
	if x.Len() == 0 {
		return
	}
	pairs, wide := 1, false // pairs a thread turns
	switch {
	case r.Interleaved && r.Dim%8 == 0 && vec(x):
		pairs, wide = 4, true
	case !r.Interleaved && r.Dim%16 == 0 && vec(x):
		pairs, wide = 8, true
	}
	sign := 1.0
	if r.Inverse {
		sign = -1
	}
	units := x.Rows * r.Heads * (r.Dim / 2 / pairs)
	d.launch(ropeKernels[flag(r.Interleaved)][flag(wide)], dim1(ceil(units, 256)), dim1(256), 0,
		ptr(x), i32(x.Ld), ptr(table), i32(table.Ld), ptr(pos), i32(x.Rows), i32(r.Heads), i32(r.Dim), i32(table.Rows), f32(sign), d.faultPtr())
	d.fresh.wrote(x)
}
