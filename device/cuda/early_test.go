package cuda

import (
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// A kernel asks before its turn only for what no kernel still in flight may write.
func TestEarly(t *testing.T) {
	d, drv := fakeDevice(t)
	last := func() []uint64 { return drv.Launches[len(drv.Launches)-1].Args }
	attend := func(rows int, cache *device.Cache, slot, pos tensor.Tensor) bool {
		a, _ := diffOn(d, 1, rows, 4, 2, 64, 128, 2)
		d.DiffAttentionCached(a, cache, slot, pos)
		args := drv.Launches[len(drv.Launches)-2].Args // the join comes last
		return args[len(args)-1] == 1
	}
	multiply := func(w tensor.Tensor) bool {
		d.MatMul(act(d, 1, w.Rows), act(d, 1, w.Cols), w, device.MatMul{TransB: true})
		args := last()
		return args[len(args)-1]&rowsEarly != 0
	}
	cache := &device.Cache{K: act(d, 320, 256), V: act(d, 320, 256), Table: on(d, tensor.I32, 4, 20, 20), PageSize: 16}
	slot, pos, other := ints(d, 3), ints(d, 3), ints(d, 3)
	write := func(rows int) {
		d.CacheWrite(cache, act(d, rows, 256), act(d, rows, 256), slot.Columns(0, rows), pos.Columns(0, rows))
	}
	w, h := act(d, 64, 64), act(d, 64, 64)
	check := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: early is %v", what, got)
		}
	}
	check("attention to keys of earlier steps", attend(1, cache, slot.Columns(0, 1), pos.Columns(0, 1)), true)
	check("weights", multiply(w), true)
	write(1)
	check("attention behind its row's key", attend(1, cache, slot.Columns(0, 1), pos.Columns(0, 1)), true)
	check("attention behind another row's key", attend(1, cache, slot.Columns(0, 1), other.Columns(0, 1)), false)
	check("attention of several rows", attend(3, cache, slot, pos), false)
	norm := func() {
		d.RMSNorm(h, tensor.Tensor{}, tensor.Tensor{}, act(d, 64, 64), tensor.Tensor{}, act(d, 1, 64), 1e-5)
	}
	norm()
	check("weights that a norm just wrote", multiply(h), false)
	check("part of them", multiply(h.RowRange(32, 64)), false)
	check("weights beside them", multiply(w), true)
	d.Copy(act(d, 8, 8), stat(d, 8, 8)) // every kernel before it has ended when the next one starts
	check("the same weights later", multiply(h), true)
	norm()
	check("weights that a norm wrote anew", multiply(h), false)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	check("weights that were waited for", multiply(h), true)
	write(3)
	check("attention behind several keys", attend(1, cache, slot.Columns(0, 1), pos.Columns(0, 1)), false)
}

// Over an int8 cache several rows ask before their turn too, if all that may be in flight is their own keys.
func TestEarlyBytes(t *testing.T) {
	d, drv := fakeDevice(t)
	d.types.Cache = tensor.I8
	const heads, dim, most = 4, 64, fewRows + 1
	keys, values := device.CacheCols(tensor.I8, 2*heads, dim), device.CacheCols(tensor.I8, heads, 2*dim)
	cache := &device.Cache{K: on(d, tensor.I8, 320, keys, keys), V: on(d, tensor.I8, 320, values, values),
		KHeads: 2 * heads, VHeads: heads, D: dim, DV: 2 * dim, Table: on(d, tensor.I32, 4, 20, 20), PageSize: 16}
	slot, pos := ints(d, most), ints(d, most)
	for _, c := range []struct {
		written, rows int
		early         bool
	}{{0, 1, true}, {0, 3, true}, {1, 1, true}, {3, 3, true}, {3, 1, false}, {1, 3, false}, {fewRows, fewRows, true},
		{most, most, false}} {
		d.fresh.clear()
		if n := c.written; n > 0 {
			d.CacheWrite(cache, act(d, n, 2*heads*dim), act(d, n, heads*2*dim), slot.Columns(0, n), pos.Columns(0, n))
		}
		a, _ := diffOn(d, 1, c.rows, heads, heads, dim, 2*dim, 2)
		drv.Launches = nil
		d.DiffAttentionCached(a, cache, slot.Columns(0, c.rows), pos.Columns(0, c.rows))
		if args := drv.Launches[0].Args; (args[len(args)-1] == 1) != c.early {
			t.Errorf("%d rows behind %d written: early is %v", c.rows, c.written, !c.early)
		}
	}
}

// On a GPU with less shared memory blocks are smaller, and none is refused.
func TestLittleShared(t *testing.T) {
	d, drv := fakeDevice(t)
	d.info.Shared, drv.Device.Shared = 99<<10, 99<<10
	for _, rows := range []int{1, 8, 16, 17, 33, 200} {
		for _, k := range []int{64, 1536, 4096} {
			d.MatMul(act(d, rows, 4608), act(d, rows, k), act(d, 4608, k), device.MatMul{TransB: true})
		}
	}
	for s := range cachedShapes[false] {
		if s.maps == 2 {
			a, _ := diffOn(d, 1, 2, 4, 2, s.d, s.dv, s.keys)
			cache := &device.Cache{K: act(d, 320, 2*s.keys*s.d), V: act(d, 320, 2*s.dv),
				Table: on(d, tensor.I32, 4, 20, 20), PageSize: 16}
			d.DiffAttentionCached(a, cache, ints(d, 2), ints(d, 2))
		}
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
}
