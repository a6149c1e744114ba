package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// ropeKernels by layout (halves, interleaved) and by whether 16-byte accesses are possible.
var ropeKernels = [2][2]kernel{
	{earlyOf("rope", "rope_half_1"), earlyOf("rope", "rope_half_8")},
	{earlyOf("rope", "rope_pairs_1"), earlyOf("rope", "rope_pairs_4")},
}

// Rope rotates each pair of each head by the angle of its row's position.
func (d *rowOps) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	r.Check(x, table, pos, d.types)
	if x.Len() == 0 {
		return
	}
	c := turnCall{r, x, table, pos}
	if !d.holdTurn(&c) {
		d.rotate(&c)
	}
}

// follows reports whether x is the first columns of a product, with heads of whole tiles.
func (c *turnCall) follows(p *productCall) bool {
	return p.s.joins && c.Dim%16 == 0 && c.x.Cols <= p.c.Cols && same(c.x, p.c.Columns(0, c.x.Cols))
}

// turnCall is Rope's arguments.
type turnCall struct {
	device.Rope
	x, table, pos tensor.Tensor
}

// pairs is the number of pairs per thread, and whether 16-byte accesses are possible.
func (c *turnCall) pairs() (n int, wide bool) {
	switch {
	case c.Interleaved && c.Dim%8 == 0 && vec(c.x):
		return 4, true
	case !c.Interleaved && c.Dim%16 == 0 && vec(c.x):
		return 8, true
	}
	return 1, false
}

func (c *turnCall) sign() float64 {
	if c.Inverse {
		return -1
	}
	return 1
}

// rotate launches Rope as a separate kernel.
func (d *queue) rotate(c *turnCall) {
	pairs, wide := c.pairs()
	units := c.x.Rows * c.Heads * (c.Dim / 2 / pairs)
	d.launch(ropeKernels[flag(c.Interleaved)][flag(wide)], dim1(ceil(units, 256)), dim1(256), 0,
		ptr(c.x), i32(c.x.Ld), ptr(c.table), i32(c.table.Ld), ptr(c.pos), i32(c.x.Rows), i32(c.Heads), i32(c.Dim),
		i32(c.table.Rows),
		f32(c.sign()), d.faultPtr())
	d.fresh.wrote(c.x)
}
