package cuda

import (
	"fmt"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// launched are the kernels that f starts, in order, with a Sync behind it.
func launched(t *testing.T, f func(d *Device)) (names []string) {
	t.Helper()
	d, drv := fakeDevice(t)
	f(d)
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	for _, l := range drv.Launches {
		names = append(names, l.Kernel)
	}
	return names
}

// fused are the tensors of a norm and of the product that reads it.
type fused struct{ x, delta, sum, gain, h, w, c tensor.Tensor }

func newFused(d *Device, rows, k int) (f fused) {
	f.x, f.delta, f.sum, f.gain, f.h = act(d, rows, k), act(d, rows, k), act(d, rows, k), act(d, 1, k),
		act(d, rows, k)
	f.w, f.c = act(d, 4608, k), act(d, rows, 4608)
	return f
}

func (f fused) norm(d *Device) { d.RMSNorm(f.h, tensor.Tensor{}, f.sum, f.x, f.delta, f.gain, 1e-5) }

// product is the kind that may wait, and that a norm waits for.
var product = device.MatMul{TransB: true}

// heldCase is a call on rows of k numbers and the kernels that it launches.
type heldCase struct {
	name    string
	rows, k int
	call    func(d *Device, f fused)
	want    []string
}

func (c *heldCase) holds(t *testing.T) {
	t.Helper()
	got := launched(t, func(d *Device) { c.call(d, newFused(d, c.rows, c.k)) })
	if !slices.Equal(got, c.want) {
		t.Errorf("%s launched %v, want %v", c.name, got, c.want)
	}
}

// heldNorms are norms with the product that reads them.
var heldNorms = []heldCase{
	{"norm and product", 1, 768, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"matmul_norm8_short"}},
	{"of two rows", 2, 1024, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"matmul_norm8_short"}},
	{"of three rows", 3, 768, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"rmsnorm", "matmul_rows8_short"}},
	{"of longer rows", 1, 1536, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"rmsnorm", "matmul_rows8_long"}},
	{"of an odd width", 1, 764, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"rmsnorm", "matmul_nt_16", "matmul_reduce"}},
	{"h read twice", 1, 768, func(d *Device, f fused) {
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
		d.MatMul(stat(d, 1, 16), f.h, act(d, 16, f.h.Cols), product)
	}, []string{"matmul_norm8_short", "matmul_rows8_half"}},
	{"the sum in x's place", 1, 768, func(d *Device, f fused) {
		f.sum = f.x
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
	}, []string{"rmsnorm", "matmul_rows8_short"}},
	{"the sum in delta's place", 1, 768, func(d *Device, f fused) {
		f.sum = f.delta
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
	}, []string{"rmsnorm", "matmul_rows8_short"}},
	{"a product into delta's place", 1, 768, func(d *Device, f fused) {
		c := act(d, 1, 4608)
		f.delta = c.Columns(0, 768)
		f.norm(d)
		d.MatMul(c, f.h, f.w, product)
	}, []string{"rmsnorm", "matmul_rows8_short"}},
	{"a product of another row", 1, 768, func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.x, f.w, product) },
		[]string{"rmsnorm", "matmul_rows8_short"}},
	{"logits", 1, 768, func(d *Device, f fused) {
		f.norm(d)
		d.MatMul(stat(d, 1, 50304), f.h, act(d, 50304, 768), product)
	}, []string{"rmsnorm", "matmul_rows8_short"}},
	{"norm and nothing", 1, 768, func(d *Device, f fused) { f.norm(d) }, []string{"rmsnorm"}},
	{"norm, norm, product", 1, 768,
		func(d *Device, f fused) { f.norm(d); f.norm(d); d.MatMul(f.c, f.h, f.w, product) },
		[]string{"rmsnorm", "matmul_norm8_short"}},
}

// heldGates are products with the sigmoid or the SwiGLU that reads them.
var heldGates = []heldCase{
	{"a narrow product and its sigmoid", 2, 1536, func(d *Device, f fused) {
		y := stat(d, 2, 16)
		d.MatMul(y, f.h, act(d, 16, f.h.Cols), product)
		d.Sigmoid(y, y)
	}, []string{"matmul_rows8_half"}},
	{"a narrow product and the sigmoid of another", 2, 1536, func(d *Device, f fused) {
		y := stat(d, 2, 16)
		d.MatMul(stat(d, 2, 16), f.h, act(d, 16, f.h.Cols), product)
		d.Sigmoid(y, y)
	}, []string{"matmul_rows8_half", "sigmoid_f32"}},
	{"norm, product, swiglu", 1, 768,
		func(d *Device, f fused) { f.norm(d); d.MatMul(f.c, f.h, f.w, product); d.SwiGLU(act(d, 1, 2304), f.c) },
		[]string{"matmul_normgate8_short"}},
	{"of longer rows", 1, 1536, func(d *Device, f fused) {
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
		d.SwiGLU(act(d, 1, 2304), f.c)
	}, []string{"rmsnorm", "matmul_gate8_long"}},
	{"of 32 rows", 32, 768, func(d *Device, f fused) {
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
		d.SwiGLU(act(d, 32, 2304), f.c)
	}, []string{"rmsnorm", "matmul_gate32_3"}},
	{"of 64 rows", 64, 1536, func(d *Device, f fused) {
		d.MatMul(f.c, f.h, f.w, product)
		d.SwiGLU(act(d, 64, 2304), f.c)
	}, []string{"matmul_gate64_3"}},
	{"of 16 rows", 16, 768, func(d *Device, f fused) {
		d.MatMul(f.c, f.h, f.w, product)
		d.SwiGLU(act(d, 16, 2304), f.c)
	}, []string{"matmul_rows16", "swiglu"}},
	{"a norm and the product of 64 rows", 64, 768, func(d *Device, f fused) {
		d.MatMul(f.c, f.h, f.w, product)
		f.norm(d)
	}, []string{"matmul_rows64_3", "rmsnorm"}},
	{"of part of the columns", 1, 768, func(d *Device, f fused) {
		c := act(d, 1, 4624)
		f.norm(d)
		d.MatMul(c, f.h, act(d, 4624, 768), product)
		d.SwiGLU(act(d, 1, 2304), c.Columns(0, 4608))
	}, []string{"matmul_norm8_short", "swiglu"}},
	{"swiglu into the place of x", 1, 768, func(d *Device, f fused) {
		y := act(d, 1, 2304)
		f.x = y.Columns(0, 768)
		f.norm(d)
		d.MatMul(f.c, f.h, f.w, product)
		d.SwiGLU(y, f.c)
	}, []string{"matmul_norm8_short", "swiglu"}},
}

// TestHeld: an op that waits runs with the one that reads it, or before whatever else comes.
func TestHeld(t *testing.T) {
	for _, c := range slices.Concat(heldNorms, heldGates) {
		c.holds(t)
	}
}

// TestHeldRecording: nothing waits behind a recording or a replay.
func TestHeldRecording(t *testing.T) {
	c := heldCase{"a recording", 1, 768, func(d *Device, f fused) {
		g, err := d.Record(func() { f.norm(d) })
		if err != nil || d.held.kind != heldNone {
			t.Errorf("held %v behind a recording (%v)", d.held.kind, err)
		}
		f.norm(d)
		g.Launch()
		if d.held.kind != heldNone {
			t.Error("held behind a replay")
		}
	}, []string{"rmsnorm"}}
	c.holds(t)
}

// TestHeldTurn: Rope waits for a CacheWrite of what it turned, and of nothing else.
func TestHeldTurn(t *testing.T) {
	const q, kw, vw, dim = 4 * 64, 2 * 64, 128, 64
	for _, c := range []struct {
		rows, from, to int // of the keys
		heads          int
		want           []string
	}{
		{1, q, q + kw, (q + kw) / dim, []string{"rope_cache_half"}},
		{8, q, q + kw, (q + kw) / dim, []string{"rope_cache_half"}},
		{256, q, q + kw, (q + kw) / dim, []string{"rope_cache_half"}},
		{257, q, q + kw, (q + kw) / dim, []string{"rope_cache_half"}}, // a prompt
		{1, 0, kw, (q + kw) / dim, []string{"rope_half_8", "cache_write"}},
		{2, q + kw, q + 2*kw, (q + kw) / dim, []string{"rope_half_8", "cache_write"}},
		{2, q, q + kw, (q + kw + vw) / dim, []string{"rope_half_8", "cache_write"}},
	} {
		got := launched(t, func(d *Device) {
			x, slot, pos := act(d, c.rows, q+kw+vw), ints(d, c.rows), ints(d, c.rows)
			cache := &device.Cache{K: act(d, 320, kw), V: act(d, 320, vw),
				Table: on(d, tensor.I32, 20, 16, 16), PageSize: 16}
			d.Rope(x.Columns(0, c.heads*dim), stat(d, 128, dim), pos, device.Rope{Heads: c.heads, Dim: dim})
			d.CacheWrite(cache, x.Columns(c.from, c.to), x.Columns(q+kw, q+kw+vw), slot, pos)
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: launched %v", c, got)
		}
	}
}

// turnedLaunches are the kernels that run starts on a GPU of 8 SMs, where there are enough columns for blocks of 16.
func turnedLaunches(t *testing.T, rows, k int, run func(s *turned)) (names []string) {
	t.Helper()
	d, drv := fakeDevice(t)
	d.info.SMs = 8
	s := newTurned(t, d, rows, 64, k, false)
	drv.Reset()
	run(s)
	if err := d.Sync(); err != nil || d.held.kind != heldNone {
		t.Errorf("held %v, %v", d.held.kind, err)
	}
	for _, l := range drv.Launches {
		names = append(names, l.Kernel)
	}
	return names
}

// TestHeldChain: a norm, its product, their Rope and CacheWrite are one kernel where each reads what the one before
// left, and otherwise go as far as that holds, in order.
func TestHeldChain(t *testing.T) {
	for _, c := range []struct {
		name string
		k    int
		run  func(s *turned)
		want []string
	}{
		{"all", 768, func(s *turned) { s.run(true) }, []string{"matmul_normturn8_short"}},
		{"weights in shared memory", 1536, func(s *turned) {
			s.run(true)
			s.project()
			s.d.SwiGLU(act(s.d, 1, s.qkv.Cols/2), s.qkv)
			s.project()
		}, []string{"rmsnorm", "matmul_turn8_long", "rmsnorm", "matmul_gate8_long", "rmsnorm", "matmul_rows8_long"}},
		{"without a cache", 768, func(s *turned) {
			s.project()
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
		}, []string{"matmul_norm8_short", "rope_half_8"}},
		{"queries turned alone", 768, func(s *turned) {
			s.project()
			s.d.Rope(s.qkv.Columns(0, s.q), s.table, s.pos, device.Rope{Heads: 5, Dim: s.dim})
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"matmul_norm8_short", "rope_half_8", "cache_write"}},
		{"values from elsewhere", 768, func(s *turned) {
			s.project()
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), act(s.d, 1, 32), s.slot, s.pos)
		}, []string{"matmul_norm8_short", "rope_cache_half"}},
		{"a table that was just written", 768, func(s *turned) {
			s.d.fresh.wrote(s.table)
			s.run(true)
		}, []string{"matmul_norm8_short", "rope_cache_half"}},
	} {
		if names := turnedLaunches(t, 1, c.k, c.run); !slices.Equal(names, c.want) {
			t.Errorf("%s: launched %v, want %v", c.name, names, c.want)
		}
	}
	want := []string{"rmsnorm", "matmul_rows64_4", "rope_cache_half"}
	if got := turnedLaunches(t, 40, 768, func(s *turned) { s.run(true) }); !slices.Equal(got, want) {
		t.Errorf("40 rows launched %v, want %v", got, want)
	}
}

// Everything that the host can ask for comes behind an op that waits.
func TestHeldGoesFirst(t *testing.T) {
	for name, next := range map[string]func(d *Device, x tensor.Tensor){
		"Read":  func(d *Device, x tensor.Tensor) { read(d, x) },
		"Write": func(d *Device, x tensor.Tensor) { d.Write(x, make([]byte, 2*x.Len())) },
		"Zero":  func(d *Device, x tensor.Tensor) { d.Zero(x) },
		"Copy":  func(d *Device, x tensor.Tensor) { d.Copy(x, act(d, x.Rows, x.Cols)) },
		"Free":  func(d *Device, x tensor.Tensor) { d.Free(x.Buf) },
		"Add":   func(d *Device, x tensor.Tensor) { d.Add(x, act(d, x.Rows, x.Cols)) },
		"Embed": func(d *Device, x tensor.Tensor) { d.Embed(x, act(d, 5, x.Cols), ints(d, x.Rows)) },
		"a large product": func(d *Device, x tensor.Tensor) {
			d.MatMul(act(d, 512, 64), act(d, 512, 64), act(d, 64, 64), device.MatMul{})
		},
		"Time": func(d *Device, x tensor.Tensor) {
			if _, err := d.Time(func() {}); err != nil {
				t.Error(err)
			}
		},
	} {
		d, drv := fakeDevice(t)
		y, x := act(d, 1, 64), act(d, 1, 64)
		d.RMSNorm(y, tensor.Tensor{}, tensor.Tensor{}, x, tensor.Tensor{}, act(d, 1, 64), 1e-5)
		if d.held.kind != heldNorm || len(drv.Launches) != 0 {
			t.Fatal("a norm of one row does not wait")
		}
		if !d.fresh.settled(x, kept{}) || d.fresh.settled(y, kept{}) {
			t.Error("what a held op writes must count as written, what it reads not")
		}
		next(d, y)
		if d.held.kind != heldNone || len(drv.Launches) == 0 || drv.Launches[0].Kernel != "rmsnorm" {
			t.Errorf("%s: launched %v", name, fmt.Sprint(drv.Launches))
		}
	}
}

// A recording that a panic ends takes along what was held in it: it may not run later.
func TestHeldPanic(t *testing.T) {
	d, drv := fakeDevice(t)
	x, y, w := act(d, 1, 64), act(d, 1, 64), act(d, 1, 64)
	norm := func() { d.RMSNorm(y, tensor.Tensor{}, tensor.Tensor{}, x, tensor.Tensor{}, w, 1e-5) }
	refused := func(f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("a product of other widths is no panic")
			}
		}()
		f()
	}
	wrong := func() { d.MatMul(act(d, 1, 8), y, act(d, 8, 63), device.MatMul{TransB: true}) }
	norm()
	refused(wrong)
	if d.held.kind != heldNorm || len(drv.Launches) != 0 {
		t.Errorf("behind a refused op: held %v, launched %v", d.held.kind, drv.Launches)
	}
	if err := d.Sync(); err != nil || len(drv.Launches) != 1 {
		t.Errorf("launched %v (%v)", drv.Launches, err)
	}
	refused(func() { _, _ = d.Record(func() { norm(); wrong() }) })
	if d.held.kind != heldNone {
		t.Error("held behind a recording that was not made")
	}
}

// TestHeldApart: an op between two, or memory that two of them share, keeps them apart.
func TestHeldApart(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(s *turned)
		want []string
	}{
		{"a bias", func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.d.AddBias(s.qkv, act(s.d, 1, s.qkv.Cols))
			s.turn()
		}, []string{"matmul_rows8_short", "bias_add", "rope_cache_half"}},
		{"a bias of gate and up", func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.d.AddBias(s.qkv, act(s.d, 1, s.qkv.Cols))
			s.d.SwiGLU(act(s.d, s.rows, s.qkv.Cols/2), s.qkv)
		}, []string{"matmul_rows8_short", "bias_add", "swiglu"}},
		{"a bias of λ", func(s *turned) {
			y := stat(s.d, s.rows, 16)
			s.d.MatMul(y, s.h, act(s.d, 16, s.h.Cols), product)
			s.d.Add(y, act(s.d, s.rows, 16))
			s.d.Sigmoid(y, y)
		}, []string{"matmul_rows8_half", "add_f32_bf16", "sigmoid_f32"}},
		{"a product added to what lies there", func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true, Accumulate: true})
			s.turn()
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
		{"keys that lie in the cache", func(s *turned) {
			pool := act(s.d, s.cache.K.Rows+s.rows, s.q+s.kw)
			s.cache.K = pool.Columns(s.q, s.q+s.kw).RowRange(0, s.cache.K.Rows)
			s.d.Rope(pool.RowRange(0, s.rows), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
			s.d.CacheWrite(s.cache, pool.RowRange(0, s.rows).Columns(s.q, s.q+s.kw),
				s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"rope_half_8", "cache_write"}},
		{"a cache in the product's weights", func(s *turned) {
			s.cache.V = s.w.Columns(0, 32).RowRange(0, s.cache.V.Rows)
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.turn()
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
	} {
		for _, rows := range []int{1, 2, 8} {
			names := turnedLaunches(t, rows, 768, c.run)
			if !slices.Equal(names, c.want) {
				t.Errorf("%s, %d rows: launched %v, want %v", c.name, rows, names, c.want)
			}
		}
	}
}
