package cuda

import (
	"bytes"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// turnSame wants the bits of a backward pass and Rope after it from the kernel that does both for dQ, in both layouts, also where
// what follows is not the Rope of its dQ.
func turnSame(t *testing.T, d *Device, s attnShape, rows int) {
	t.Helper()
	defer wgmma(d, true)()
	defer func() { d.try.turn = false }()
	c := newTiledCase(d, s, 2, rows, 0)
	defer c.free()
	d.attend(&c.attnCall)
	table, pos := spreadStat(t, d, 2*rows, s.d), ints(d, 2*rows)
	defer d.Free(table.Buf)
	at := make([]int32, 2*rows)
	for i := range at {
		at[i] = int32(7*i) % int32(2*rows)
	}
	device.WriteI32(d, pos, at)
	x := [3]tensor.Tensor{c.dq, c.dk, c.dv} // as columns of one tensor, as a layer has them
	q, k := c.dq.Cols, c.dq.Cols+c.dk.Cols
	all := act(d, 2*rows, k+c.dv.Cols)
	c.dq, c.dk, c.dv = all.Columns(0, q), all.Columns(q, k), all.Columns(k, all.Cols)
	defer func() { c.dq, c.dk, c.dv = x[0], x[1], x[2]; d.Free(all.Buf) }()
	for _, r := range []struct {
		pairs bool
		x     tensor.Tensor
	}{{true, all.Columns(0, k)}, {false, c.dq}, {true, c.dk}} { // of dk: nothing to do together
		run := func(on bool) []byte {
			d.try.turn = on
			d.attendBackward(&c.attnCall)
			d.Rope(r.x, table, pos, device.Rope{Heads: r.x.Cols / s.d, Dim: s.d, Interleaved: r.pairs, Inverse: true})
			return read(d, all)
		}
		want := run(false)
		if !bytes.Equal(run(true), want) {
			t.Errorf("%+v: other bits with Rope, pairs %v, %d of %d columns", s, r.pairs, r.x.Cols, all.Cols)
		}
	}
}

// spreadStat is a table of random floats.
func spreadStat(t testing.TB, d *Device, rows, cols int) tensor.Tensor {
	x := device.Empty(d, tensor.F32, rows, cols)
	d.Copy(x, spread(t, d, rows, cols))
	return x
}

// TestHopperTurn does so on a GPU.
func TestHopperTurn(t *testing.T) {
	d := gpu(t, nil)
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		turnSame(t, d, s, 1000)
	}
}
