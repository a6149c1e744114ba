//go:build linux && amd64

package cuda

import (
	"bytes"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// memory is a tensor's, rows and what lies between them.
func memory(x tensor.Tensor) []byte {
	s := spanOf(x)
	return bytesAt(uintptr(s.from), int(s.to-s.from))
}

// TestEmulatedEarly: before its turn cached attention reads neither the query nor the newest key and value, which the
// kernels before it may still write, wherever in a stage, split or page they lie.
func TestEmulatedEarly(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	old := d.types.Cache
	defer func() { d.types.Cache = old }()
	d.types.Cache = tensor.I8
	for _, s := range []attnShape{{2, 2, 64, 128}, {2, 1, 64, 64}} {
		x := newBytesCase(t, d, s, 301, 16, 0, 16)
		x.written()
		for _, p := range []int32{0, 31, 32, 127, 128, 129, 255, 256, 300} {
			x.byBoth(func() { x.early([]int32{1}, []int32{p}) })
		}
		x.byBoth(func() { x.early([]int32{0, 1}, []int32{300, 140}) })
		x.byBoth(func() { x.early([]int32{1, 0, 1, 1, 0}, []int32{300, 17, 130, 0, 256}) }) // several rows of a slot
		x.free()
	}
}

// early attends at the newest positions of slots while their queries, keys and values are pending, and wants the bits
// that come without that.
func (x *bytesCase) early(slots, last []int32) {
	x.t.Helper()
	d, e, n := x.d, x.d.drv.(*emulator), len(slots)
	call, slot, pos := x.call(1, slots, last)
	from := make([]int32, n)
	for i := range from {
		from[i] = slots[i]*int32(x.context) + last[i]
	}
	ids, k, v := ints(d, n), act(d, n, x.k.Cols), act(d, n, x.v.Cols)
	device.WriteI32(d, ids, from)
	d.Embed(k, x.k, ids)
	d.Embed(v, x.v, ids)
	d.CacheWrite(x.c, k, v, slot, pos)
	if !d.newest(x.c, call.q, slot, pos) {
		x.t.Fatal("nothing of the cache may be read before the kernel's turn")
	}
	d.attendCached(&call, x.c, slot, pos)
	want := read(d, call.out)
	d.Zero(call.out)
	d.CacheWrite(x.c, k, v, slot, pos)
	rows := make([]int32, x.ids.Cols)
	device.ReadI32(d, rows, x.ids)
	e.pending = [][]byte{memory(call.q)}
	for _, i := range from {
		row := int(rows[i])
		e.pending = append(e.pending, memory(x.c.K.RowRange(row, row+1)), memory(x.c.V.RowRange(row, row+1)))
	}
	d.attendCached(&call, x.c, slot, pos)
	e.pending = nil
	if !bytes.Equal(read(d, call.out), want) {
		x.t.Errorf("bytes %+v: slots %d at %d read what is not there yet", x.s, slots, last)
	}
	x.release(call.q, call.lam, call.out, ids, k, v)
}

// TestEmulatedEarlyRows: before its turn a product of more than 16 rows reads no x, and no weights that a kernel before
// it may still write.
func TestEmulatedEarlyRows(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	e, b := d.drv.(*emulator), newBeside(t, d)
	const m, n, k = 40, 70, 1096
	x, w := b.random(tensor.BF16, m, k, 8, 1)[0], b.random(tensor.BF16, n, k, 8, 1)[0]
	y := b.random(tensor.F32, m, n, 0, 1)[0]
	for _, s := range []rowsKernel{rowsStaged[0][0], rowsStaged[0][3], rowsStaged[1][1]} {
		run := func(pending ...tensor.Tensor) []byte {
			d.Zero(y)
			for _, p := range pending {
				e.pending = append(e.pending, memory(p))
			}
			d.streamBy(s, y, x, w, k, device.MatMul{TransB: true})
			e.pending = nil
			return read(d, y)
		}
		want := run()
		if !bytes.Equal(run(x), want) {
			t.Errorf("%s reads rows that are not there yet", s.name())
		}
		d.fresh.wrote(w)
		if !bytes.Equal(run(x, w), want) {
			t.Errorf("%s reads weights that are not there yet", s.name())
		}
	}
}
