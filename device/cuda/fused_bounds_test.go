package cuda

import (
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// off makes a tensor whose rows are not aligned to 16 bytes.
func off(d *Device, rows, cols int) tensor.Tensor {
	return on(d, tensor.BF16, rows, cols+8, cols+8).Columns(4, cols+4)
}

// A norm waits for its product only if all that it reads and writes is aligned, and not where nothing may be held.
func TestNormsThatWait(t *testing.T) {
	for _, where := range []string{"", "x", "delta", "sum", "gain", "h", "unfused"} {
		got := launched(t, func(d *Device) {
			d.unfused = where == "unfused"
			row := func(name string) tensor.Tensor {
				if name == where {
					return off(d, 1, 768)
				}
				return act(d, 1, 768)
			}
			h := row("h")
			d.RMSNorm(h, tensor.Tensor{}, row("sum"), row("x"), row("delta"), row("gain"), 1e-5)
			if (d.held.kind == heldNorm) != (where == "") {
				t.Errorf("%q: held %v", where, d.held.kind)
			}
			for range 2 { // the second reads what the first has left
				d.MatMul(act(d, 1, 4608), h, act(d, 4608, 768), device.MatMul{TransB: true})
			}
		})
		want := []string{"rmsnorm", "matmul_rows8_short", "matmul_rows8_short"}
		if where == "" {
			want = []string{"matmul_norm8_short", "matmul_rows8_short"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: launched %v, want %v", where, got, want)
		}
	}
}

// A norm that has run holds up nothing: its input is free for the SwiGLU of a later product.
func TestNormsThatRan(t *testing.T) {
	got := launched(t, func(d *Device) {
		x, c := act(d, 1, 768), act(d, 1, 4608)
		d.RMSNorm(act(d, 1, 768), tensor.Tensor{}, tensor.Tensor{}, x, tensor.Tensor{}, act(d, 1, 768), 1e-5)
		d.Zero(c)
		d.MatMul(c, act(d, 1, 768), act(d, 4608, 768), device.MatMul{TransB: true})
		x.Cols, x.Ld = 2304, 2304
		d.SwiGLU(x, c)
	})
	if want := []string{"rmsnorm", "matmul_gate8_short"}; !slices.Equal(got, want) {
		t.Errorf("launched %v, want %v", got, want)
	}
}

// Which products wait for the next op: of up to 8 rows, in bf16 of whole tiles with a kernel that can do it, in fp32 of
// up to 64 columns.
func TestProductsThatWait(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		kind       tensor.DType
		op         device.MatMul
		unfused    bool
		want       heldKind
	}{
		{1, 4608, tensor.BF16, device.MatMul{TransB: true}, false, heldProduct},
		{8, 4608, tensor.BF16, device.MatMul{TransB: true}, false, heldProduct},
		{9, 4608, tensor.BF16, device.MatMul{TransB: true}, false, heldNone},
		{1, 4616, tensor.BF16, device.MatMul{TransB: true}, false, heldNone},
		{1, 4608, tensor.F32, device.MatMul{TransB: true}, false, heldNone},
		{1, 4608, tensor.BF16, device.MatMul{TransB: true, Accumulate: true}, false, heldNone},
		{1, 4608, tensor.BF16, device.MatMul{TransB: true}, true, heldNone},
		{1, 64, tensor.F32, device.MatMul{TransB: true}, false, heldNarrow},
		{8, 64, tensor.F32, device.MatMul{TransB: true}, false, heldNarrow},
		{9, 64, tensor.F32, device.MatMul{TransB: true}, false, heldNone},
		{1, 65, tensor.F32, device.MatMul{TransB: true}, false, heldNone},
		{1, 64, tensor.BF16, device.MatMul{TransB: true}, false, heldNone},
	} {
		d, drv := fakeDevice(t)
		d.unfused = c.unfused
		d.MatMul(on(d, c.kind, c.rows, c.cols, c.cols), act(d, c.rows, 768), act(d, c.cols, 768), c.op)
		if d.held.kind != c.want || (len(drv.Launches) == 0) != (c.want != heldNone) {
			t.Errorf("%+v: held %v, launched %d", c, d.held.kind, len(drv.Launches))
		}
	}
}

// Sigmoid runs with the product only in place, of the same view.
func TestSigmoidInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(d *Device, c tensor.Tensor) (y, x tensor.Tensor)
		want []string
	}{
		"in place": {func(_ *Device, c tensor.Tensor) (y, x tensor.Tensor) { return c, c },
			[]string{"matmul_rows8_half"}},
		"elsewhere": {func(d *Device, c tensor.Tensor) (y, x tensor.Tensor) { return stat(d, 2, 16), c },
			[]string{"matmul_rows8_half", "sigmoid_f32"}},
		"of elsewhere": {func(d *Device, c tensor.Tensor) (y, x tensor.Tensor) { return c, stat(d, 2, 16) },
			[]string{"matmul_rows8_half", "sigmoid_f32"}},
		"of a part": {func(_ *Device, c tensor.Tensor) (y, x tensor.Tensor) { return c.Columns(0, 8), c.Columns(0, 8) },
			[]string{"matmul_rows8_half", "sigmoid_f32"}},
		"of a row": {func(_ *Device, c tensor.Tensor) (y, x tensor.Tensor) {
			return c.RowRange(0, 1),
				c.RowRange(0, 1)
		}, []string{"matmul_rows8_half", "sigmoid_f32"}},
	} {
		got := launched(t, func(d *Device) {
			y := stat(d, 2, 16)
			d.MatMul(y, act(d, 2, 768), act(d, 16, 768), device.MatMul{TransB: true})
			d.Sigmoid(c.of(d, y))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: launched %v, want %v", name, got, c.want)
		}
	}
}

// Views are the same if everything about them is.
func TestSameViews(t *testing.T) {
	d, _ := fakeDevice(t)
	x := act(d, 4, 24)
	for name, change := range map[string]func(y *tensor.Tensor){
		"off": func(y *tensor.Tensor) { y.Off += 2 }, "rows": func(y *tensor.Tensor) { y.Rows-- },
		"cols": func(y *tensor.Tensor) { y.Cols-- },
		"ld":   func(y *tensor.Tensor) { y.Ld++ }, "type": func(y *tensor.Tensor) { y.Type = tensor.I16 },
		"buffer": func(y *tensor.Tensor) { *y = act(d, 4, 24) },
	} {
		y := x
		if change(&y); same(x, y) || same(y, x) || !same(y, y) {
			t.Errorf("another %s is the same", name)
		}
	}
	a, b := x.RowRange(0, 2), x.RowRange(1, 3)
	for _, c := range []struct {
		written, read []tensor.Tensor
		want          bool
	}{
		{[]tensor.Tensor{x.RowRange(0, 1), x.RowRange(1, 2)}, []tensor.Tensor{x.RowRange(2, 3), x.RowRange(2, 4)},
			true},
		{[]tensor.Tensor{a, b}, nil, false}, {[]tensor.Tensor{x.RowRange(3, 4), a, b}, nil, false},
		{[]tensor.Tensor{a}, []tensor.Tensor{x.RowRange(3, 4), b}, false},
		{[]tensor.Tensor{x.RowRange(3, 4), a}, []tensor.Tensor{b}, false}, {nil, []tensor.Tensor{a, b}, true},
		{[]tensor.Tensor{a, {}}, []tensor.Tensor{{}}, true},
	} {
		if got := apart(c.written, c.read...); got != c.want {
			t.Errorf("%v and %v apart: %v", c.written, c.read, got)
		}
	}
}

// Keys that Rope leaves to the cache are its last columns, whole heads; the values follow them or lie elsewhere.
func TestRopeLeaves(t *testing.T) {
	const dim, turned = 16, 6 * 16
	d, _ := fakeDevice(t)
	x, other := act(d, 3, turned+64), act(d, 3, turned+64)
	c := turnCall{Rope: device.Rope{Heads: 6, Dim: dim}, x: x.Columns(0, turned)}
	k, v := func(from, to int) tensor.Tensor { return x.Columns(from, to) }, x.Columns(turned, turned+32)
	for name, p := range map[string]struct {
		k, v tensor.Tensor
		want bool
	}{
		"two heads": {k(turned-2*dim, turned), v, true}, "all heads": {k(0, turned), v, true},
		"part of a head": {k(turned-24, turned), v, false},
		"not the last":   {k(0, 2*dim), v, false}, "more than all": {k(0, turned+dim), v, false},
		"of elsewhere":             {other.Columns(turned-2*dim, turned), v, false},
		"fewer rows":               {k(turned-2*dim, turned).RowRange(0, 2), v, false},
		"values apart":             {k(turned-2*dim, turned), other.Columns(0, 32), true},
		"values further on":        {k(turned-2*dim, turned), x.Columns(turned+32, turned+64), true},
		"values among the keys":    {k(turned-2*dim, turned), x.Columns(turned-8, turned+24), false},
		"values among the queries": {k(turned-2*dim, turned), x.Columns(0, 32), false},
	} {
		if got := c.leaves(p.k, p.v); got != p.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	pitch := v // the same memory in rows of another pitch
	pitch.Ld, pitch.Rows = v.Ld+8, 2
	over := v // past the end of a row, which is in the next row's queries
	over.Cols = 72
	if c.leaves(k(turned-2*dim, turned), pitch) || c.leaves(k(turned-2*dim, turned), over) {
		t.Error("values that run into rotated columns")
	}
}

// A cache is written 16 bytes at a time where all rows allow it; blocks of 128 threads cover the columns of both.
func TestCacheWriteWidth(t *testing.T) {
	for _, c := range []struct {
		kw, vw int
		off    string // or "padded": columns in wider rows
		wide   uint64
		blocks int
	}{
		{256, 256, "", 1, 1}, {512, 520, "", 1, 2}, {8, 8, "", 1, 1}, {12, 16, "", 0, 1}, {16, 12, "", 0, 1},
		{132, 128, "", 0, 3},
		{12, 16, "padded", 0, 1}, {16, 12, "padded", 0, 1}, {16, 24, "padded", 1, 1}, {256, 256, "k", 0, 4},
		{256, 256, "v", 0, 4}, {256, 256, "K", 0, 4}, {256, 256, "V", 0, 4},
	} {
		d, drv := fakeDevice(t)
		row := func(name string, rows, cols int) tensor.Tensor {
			switch c.off {
			case name:
				return off(d, rows, cols)
			case "padded":
				return on(d, tensor.BF16, rows, cols, 32)
			}
			return act(d, rows, cols)
		}
		cache := &device.Cache{K: row("K", 64, c.kw), V: row("V", 64, c.vw),
			Table: on(d, tensor.I32, 2, 4, 4), PageSize: 16}
		d.CacheWrite(cache, row("k", 3, c.kw), row("v", 3, c.vw), ints(d, 3), ints(d, 3))
		if len(drv.Launches) != 1 {
			t.Fatalf("%+v: launched %v", c, drv.Launches)
		}
		if l := drv.Launches[0]; l.Args[len(l.Args)-1] != c.wide || l.Grid.X != 3 || l.Grid.Y != c.blocks {
			t.Errorf("%+v: %s, wide %d", c, geometry(l), l.Args[len(l.Args)-1])
		}
		d.CacheWrite(cache, row("k", 0, c.kw), row("v", 0, c.vw), ints(d, 0), ints(d, 0))
		if err := d.Sync(); err != nil || len(drv.Launches) != 1 {
			t.Errorf("%+v: no rows launched %d kernels (%v)", c, len(drv.Launches)-1, err)
		}
	}
}
