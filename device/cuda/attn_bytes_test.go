package cuda

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// put writes a key and value of all heads to a position, and what becomes of them to those that are wanted.
func (x *bytesCase) put(slot, pos int32, k, v []float32) {
	d, at := x.d, int(slot)*x.context+int(pos)
	where, hk, hv := ints(d, 2), act(d, 1, len(k)), act(d, 1, len(v))
	device.WriteI32(d, where, []int32{slot, pos})
	device.WriteFloats(d, hk, k)
	device.WriteFloats(d, hv, v)
	d.CacheWrite(x.c, hk, hv, where.Columns(0, 1), where.Columns(1, 2))
	copy(x.wantK[at*len(k):], quantised(floats(d, hk), x.s.d))
	copy(x.wantV[at*len(v):], quantised(floats(d, hv), x.s.dv))
	x.release(where, hk, hv)
}

// rowOf returns n numbers f(0), f(1), …
func rowOf(n int, f func(i int) float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(f(i))
	}
	return x
}

// byBoth runs f where warps take the splits, several each, and where blocks do.
func (x *bytesCase) byBoth(f func()) {
	defer func(n int) { x.d.info.SMs = n }(x.d.info.SMs)
	for _, n := range []int{1, 1000} {
		x.d.info.SMs = n
		f()
	}
}

// splitsEnd wants rows whose last key is at, before and behind the ends of stages and splits as float64 has them, and
// each with the same bits alone, where blocks take the splits, as in the batch, where warps do.
func (x *bytesCase) splitsEnd() {
	x.t.Helper()
	var slots, last []int32
	for _, p := range []int{0, 30, 31, 32, 63, 64, 95, 126, 127, 128, 129, 159, 160, 255, 256, 287, x.context - 1} {
		if p < x.context {
			slots, last = append(slots, int32(len(slots)%2)), append(last, int32(p))
		}
	}
	defer func(n int) { x.d.info.SMs = n }(x.d.info.SMs)
	call, slot, pos := x.call(1, slots, last)
	x.d.info.SMs = 1
	x.d.attendCached(&call, x.c, slot, pos)
	x.d.info.SMs = 1000
	near(x.t, x.d, fmt.Sprintf("%+v, pages of %d", x.s, x.c.PageSize), call.out, x.want(&call, slots, last), 4.2e-3)
	all, n := read(x.d, call.out), 2*call.out.Cols
	one := call
	for i := range slots {
		one.q, one.lam, one.out = call.q.RowRange(i, i+1), call.lam.RowRange(i, i+1), call.out.RowRange(i, i+1)
		x.d.Zero(one.out)
		x.d.attendCached(&one, x.c, slot.Columns(i, i+1), pos.Columns(i, i+1))
		if !bytes.Equal(read(x.d, one.out), all[i*n:(i+1)*n]) {
			x.t.Errorf("bytes %+v, pages of %d: row %d has other bits alone", x.s, x.c.PageSize, i)
		}
	}
	if err := x.d.Sync(); err != nil {
		x.t.Fatal(err)
	}
	x.release(call.q, call.lam, call.out)
}

// notFinite wants an element of a key or a value that is not finite in all of its head's output, even where the key's
// weight is 0, in no other head, and not in rows that do not see it.
func (x *bytesCase) notFinite() {
	x.t.Helper()
	s, end := x.s, int32(x.context)-1
	call, slot, pos := x.call(1, []int32{1, 1, 1, 1, 1}, []int32{end, end - 1, end - 27, end - 27, end - 27})
	q := floats(x.d, call.q)
	far := func(i int) float64 { // from the first row's query, so that the weight is 0
		head := i / s.d
		return -400 * float64(q[(head/s.keys*s.maps+head%s.keys)*s.d+i%s.d])
	}
	value := func(i int) float64 { return float64(i%7) - 3 }
	for what, c := range map[string]struct {
		key  bool
		bad  float64
		near bool
	}{"a NaN in a key": {key: true, bad: math.NaN()}, "a NaN in a value": {bad: math.NaN(), near: true},
		"an infinite value": {bad: math.Inf(1), near: true}, "a NaN that has no weight": {bad: math.NaN()},
		"an infinite value that has no weight": {bad: math.Inf(-1)}} {
		k, v := rowOf(x.kh*s.d, far), rowOf(byteGroups*s.dv, value)
		if c.near {
			k = rowOf(x.kh*s.d, func(i int) float64 { return -far(i) / 400 })
		}
		if c.key {
			k[s.keys*s.d+5] = float32(c.bad)
		} else {
			v[s.dv+s.dv-3] = float32(c.bad)
		}
		x.put(1, end, k, v)
		x.d.attendCached(&call, x.c, slot, pos)
		for i, y := range floats(x.d, call.out) {
			row, head := i/call.out.Cols, i%call.out.Cols/s.dv
			if finite := !math.IsNaN(float64(y)) && !math.IsInf(float64(y), 0); finite == (row == 0 && head == 1) {
				x.t.Errorf("bytes %+v: %s: row %d, head %d has a %g", s, what, row, head, y)
				break
			}
		}
	}
	x.release(call.q, call.lam, call.out)
}

// nothing wants keys, values and queries of zeros, equal scores, and values of very different sizes as float64 has
// them.
func (x *bytesCase) nothing() {
	x.t.Helper()
	s, zero := x.s, func(int) float64 { return 0 }
	for p := range int32(40) {
		k, v := rowOf(x.kh*s.d, zero), rowOf(byteGroups*s.dv, zero)
		switch p % 4 {
		case 1:
			k = rowOf(len(k), func(i int) float64 { return 0.01 * float64(i%5) })
		case 2:
			v = rowOf(len(v), func(i int) float64 { return float64(i%9) - 4 })
		case 3:
			v = rowOf(len(v), func(i int) float64 { return 1e-4 * float64(i%9-6) })
		}
		x.put(0, p, k, v)
	}
	slots, last := []int32{0, 0, 0, 0, 1}, []int32{0, 1, 2, 39, 50}
	call, slot, pos := x.call(1, slots, last)
	x.d.Zero(call.q.RowRange(3, 4).Columns(0, 2*s.d))
	x.d.Zero(call.q.RowRange(4, 5))
	x.d.attendCached(&call, x.c, slot, pos)
	near(x.t, x.d, fmt.Sprintf("%+v of zeros", s), call.out, x.want(&call, slots, last), 4.2e-3)
	x.release(call.q, call.lam, call.out)
}

// astray wants positions and slots that the cache does not have reported, and the other rows as without them.
func (x *bytesCase) astray() {
	x.t.Helper()
	d, end := x.d, int32(x.c.Table.Cols*x.c.PageSize)
	call, slot, pos := x.call(1, []int32{1, 0, 1, 0, 1}, []int32{140, 5, 129, 7, 31})
	run := func(slots, last []int32) []byte {
		device.WriteI32(d, slot, slots)
		device.WriteI32(d, pos, last)
		d.attendCached(&call, x.c, slot, pos)
		return read(d, call.out)
	}
	want, n := run([]int32{1, 0, 1, 0, 1}, []int32{140, 5, 129, 7, 31}), 2*call.out.Cols
	for _, c := range [][2][]int32{
		{{1, 0, 1, 0, 1}, {140, 5, 129, -1, 31}},
		{{1, 0, 1, 0, 1}, {140, math.MinInt32, 129, 7, 31}},
		{{1, 0, 1, 0, 1}, {140, 5, 129, end, 31}},
		{{1, 0, 1, 0, 1}, {140, math.MaxInt32, 129, 7, 31}},
		{{1, 2, 1, 0, 1}, {140, 5, 129, 7, 31}},
		{{1, 0, 1, -1, 1}, {140, 5, 129, 7, 31}},
	} {
		got := run(c[0], c[1])
		for i := 0; i < 5; i += 2 {
			if !bytes.Equal(got[i*n:(i+1)*n], want[i*n:(i+1)*n]) {
				x.t.Errorf("bytes %+v: row %d differs beside slots %d, positions %d", x.s, i, c[0], c[1])
			}
		}
		if d.Sync() == nil {
			x.t.Errorf("bytes %+v: slots %d, positions %d were accepted", x.s, c[0], c[1])
		}
	}
	x.release(call.q, call.lam, call.out)
}

// bytesEdges runs the checks above for pages of several sizes and rows that are further apart than they must be.
func bytesEdges(t *testing.T, d *Device, s attnShape) {
	t.Helper()
	old := d.types.Cache
	d.types.Cache = tensor.I8
	defer func() { d.types.Cache = old }()
	for _, c := range [][4]int{{301, 8, 0, 32}, {250, 32, 48, 0}, {129, 5, 16, 16}, {33, 1, 0, 16}} {
		x := newBytesCase(t, d, s, c[0], c[1], c[2], c[3])
		x.written()
		x.splitsEnd()
		if c[0] > 140 {
			x.byBoth(x.astray)
			x.byBoth(x.nothing)
			x.byBoth(x.notFinite)
		}
		x.free()
	}
}

// TestBytesEdges: on a GPU.
func TestBytesEdges(t *testing.T) {
	d := gpu(t, nil)
	for s := range byteKernels {
		bytesEdges(t, d, s)
	}
}

// Warps take the splits of a cache of bytes, or blocks of one kernel where the GPU takes all in two rounds, if heads
// have their own keys, rows lie on 16 bytes and the rings fit; in all other cases blocks of another kernel do. Before
// its turn that other kernel copies keys only for a row that is alone.
func TestBytesBySplits(t *testing.T) {
	const many, few, other = "diffattention_bytes", "diffattention_bytes_few", "diffattention_split"
	for name, c := range map[string]struct {
		rows, heads, dim, shared, off, lines int
		by                                   string
		early                                bool
	}{
		"a row":                  {rows: 1, heads: 2, dim: 64, by: few, early: true},
		"two rows":               {rows: 2, heads: 2, dim: 64, by: few, early: true},
		"rows of 792 splits":     {rows: 132, heads: 2, dim: 64, by: few, early: true},
		"rows of 798 splits":     {rows: 133, heads: 2, dim: 64, by: many, early: true},
		"wide heads":             {rows: 88, heads: 2, dim: 128, by: few, early: true},
		"many wide heads":        {rows: 89, heads: 2, dim: 128, by: many, early: true},
		"narrow heads":           {rows: 1, heads: 2, dim: 32, by: other, early: true},
		"shared keys":            {rows: 1, heads: 4, dim: 64, by: other, early: true},
		"rows that lie askew":    {rows: 1, heads: 2, dim: 64, off: 8, by: other, early: true},
		"little shared memory":   {rows: 2, heads: 2, dim: 64, shared: 68 << 10, by: few, early: true},
		"too little of it":       {rows: 2, heads: 2, dim: 64, shared: 68<<10 - 1, by: other},
		"of a head that is wide": {rows: 2, heads: 2, dim: 128, shared: 99 << 10, by: other},
		"a cache of 64 GiB":      {rows: 2, heads: 2, dim: 64, lines: mostBytes / 272, by: few, early: true},
		"a larger one":           {rows: 2, heads: 2, dim: 64, lines: mostBytes/272 + 1, by: other},
	} {
		d, drv := fakeDevice(t)
		if c.shared > 0 {
			d.info.Shared, drv.Device.Shared = c.shared, c.shared
		}
		a, _ := diffOn(d, c.rows, 1, c.heads, 2, c.dim, 2*c.dim, 2)
		d.types.Cache = tensor.I8
		wide, lines := device.CacheCols(tensor.I8, 4, c.dim), max(c.lines, 320)
		cache := &device.Cache{K: on(d, tensor.I8, lines, wide, wide+c.off),
			V:     on(d, tensor.I8, lines, device.CacheCols(tensor.I8, 2, 2*c.dim), wide),
			Table: on(d, tensor.I32, 4, 20, 20), PageSize: 16, KHeads: 4, VHeads: 2, D: c.dim, DV: 2 * c.dim}
		d.DiffAttentionCached(a, cache, ints(d, c.rows), ints(d, c.rows))
		got := drv.Launches[len(drv.Launches)-2] // the join comes last
		if early := got.Args[len(got.Args)-1] == 1; got.Kernel != c.by || early != c.early {
			t.Errorf("%s: launched %s, early is %v", name, got.Kernel, early)
		}
		if err := d.Sync(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
