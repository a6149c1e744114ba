package cuda

import (
	"bytes"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// spoil makes NaN of a cache's rows, and of their scales, that hold no position of a slot up to its last: what others
// left in pages.
func spoil(d *Device, c *device.Cache, last []int32) {
	table, keep := make([]int32, c.Table.Len()), make([]bool, c.K.Rows)
	device.ReadI32(d, table, c.Table)
	for slot, end := range last {
		for p := range int(end) + 1 {
			keep[int(table[slot*c.Table.Cols+p/c.PageSize])*c.PageSize+p%c.PageSize] = true
		}
	}
	for _, x := range []tensor.Tensor{c.K, c.V} {
		nan := bytes.Repeat([]byte{0xff}, tensor.Bytes(x.Type, 1, x.Cols))
		for r, kept := range keep {
			if !kept {
				d.Write(x.RowRange(r, r+1), nan)
			}
		}
	}
}

// sequencesApart wants a sequence's bits to be the same beside a sequence of NaN, before it and after it.
func sequencesApart(t *testing.T, d *Device, s attnShape, rows int) {
	t.Helper()
	c := newTiledCase(d, s, 2, rows, 0)
	defer c.free()
	c.run(t)
	var each []tensor.Tensor // by row
	for name, x := range c.results() {
		if name != "dnorm" {
			each = append(each, x)
		}
	}
	half := func(all []tensor.Tensor, b int) (part []tensor.Tensor) {
		for _, x := range all {
			part = append(part, x.RowRange(b*rows, (b+1)*rows))
		}
		return part
	}
	want := [][]byte{read(d, half(each, 0)...), read(d, half(each, 1)...)}
	in := []tensor.Tensor{c.q, c.k, c.v, c.dout}
	if c.lam.Ok() {
		in = append(in, c.lam)
	}
	for b := range 2 {
		kept := make([][]byte, len(in))
		for i, x := range half(in, 1-b) {
			kept[i] = read(d, x)
			d.Write(x, bytes.Repeat([]byte{0xff}, len(kept[i])))
		}
		c.run(t)
		if !bytes.Equal(read(d, half(each, b)...), want[b]) {
			t.Errorf("%+v, T=%d: sequence %d has other bits beside one of NaN", s, rows, b)
		}
		for i, x := range half(in, 1-b) {
			d.Write(x, kept[i])
		}
	}
}

// TestAttnApart runs every tiled and Hopper shape on a GPU, at a length that ends within a tile.
func TestAttnApart(t *testing.T) {
	d := gpu(t, nil)
	for _, on := range []bool{false, d.info.Major == 9} {
		restore := wgmma(d, on)
		for _, s := range tiledShapes() {
			sequencesApart(t, d, s, 330)
		}
		restore()
	}
}
