package cuda

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// leftRight holds products that make their rows themselves to the bits of two ops, for every such kernel, and what the first op writes too.
func leftRight(t *testing.T, d *Device) {
	d.prologue = normPlain
	defer func() { d.prologue = 0 }()
	for _, k := range []int{8, 104, 768, 1536, 2120} {
		for _, rows := range []int{1, 2, 3, 8} {
			b := newBeside(t, d)
			random := func(dt tensor.DType, r, c int) tensor.Tensor { return b.random(dt, r, c, 0, 1)[0] }
			const n = 50
			w, gain, x, delta := random(tensor.BF16, n, k), random(tensor.BF16, 1, k), random(tensor.BF16, rows, k), random(tensor.BF16, rows, k)
			h, sum, rstd, c, op := random(tensor.BF16, rows, k), random(tensor.BF16, rows, k), random(tensor.F32, 1, rows), random(tensor.F32, rows, n), device.MatMul{TransB: true}
			noise := read(d, h)
			both := func(what string, two, one func(s rowsKernel)) {
				for _, s := range []rowsKernel{rowsShort, rowsLong} {
					two(s)
					want := read(d, c, h, sum, rstd)
					for _, y := range []tensor.Tensor{c, sum, rstd} {
						d.Zero(y)
					}
					d.Write(h, noise)
					one(s)
					if got := read(d, c, h, sum, rstd); !bytes.Equal(got, want) {
						t.Errorf("%s in %s, %d rows of %d: other bits than two ops", what, registry[s.kernel].name, rows, k)
					}
				}
			}
			for _, norm := range []normCall{{h, rstd, sum, x, delta, gain, 1e-5}, {h, tensor.Tensor{}, tensor.Tensor{}, x, tensor.Tensor{}, gain, 1e-5}} {
				if !norm.rstd.Ok() {
					d.Zero(sum)
					d.Zero(rstd)
				}
				both("norm", func(s rowsKernel) { d.normalize(&norm); d.streamBy(s, c, h, w, k, op) }, func(s rowsKernel) {
					d.held.norm = norm
					d.multiplyRows(&productCall{s, c, h, w, k, op, true})
				})
			}
			d.Write(h, noise) // which this leaves alone
			both("sigmoid", func(s rowsKernel) { d.streamBy(s, c, x, w, k, op); d.Sigmoid(c, c) },
				func(s rowsKernel) {
					d.launchRows(&productCall{s, c, x, w, k, op, false}, pairOf{s.kernel, s.normed}, rowsSigmoid)
				})
		}
	}
}

// gatedRight holds products that go through SwiGLU to the bits of three ops.
func gatedRight(t *testing.T, d *Device) {
	for _, k := range []int{104, 1536} {
		for _, rows := range []int{1, 2, 5} {
			b := newBeside(t, d)
			random := func(r, c int) tensor.Tensor { return b.random(tensor.BF16, r, c, 8, 1)[0] }
			const inner = 40
			norm := normCall{random(rows, k), tensor.Tensor{}, random(rows, k), random(rows, k), random(rows, k), random(1, k), 1e-5}
			gu, a, w, op := random(rows, 2*inner), random(rows, inner), random(2*inner, k), device.MatMul{TransB: true}
			for _, s := range []rowsKernel{rowsShort, rowsLong} {
				d.normalize(&norm)
				d.streamBy(s, gu, norm.y, w, k, op)
				d.SwiGLU(a, gu)
				want := read(d, gu, a, norm.y, norm.sum)
				for _, made := range []bool{true, false} {
					if d.prologue = 0; made {
						d.prologue = normGated
					}
					for _, y := range []tensor.Tensor{gu, a, norm.y, norm.sum} {
						d.Zero(y)
					}
					d.held.norm = norm
					d.multiplyGated(&productCall{s, gu, norm.y, w, k, op, true}, a)
					if got := read(d, gu, a, norm.y, norm.sum); !bytes.Equal(got, want) {
						t.Errorf("%s with SwiGLU, norm %v, %d rows of %d: other bits than three ops", registry[s.kernel].name, made, rows, k)
					}
				}
				d.prologue = 0
			}
		}
	}
}

// turned is a Rope and a CacheWrite behind a norm and a product, on random tensors.
type turned struct {
	d                              *Device
	x, delta, sum, gain, h, w, qkv tensor.Tensor
	table, slot, pos               tensor.Tensor
	cache                          *device.Cache
	q, kw, dim, rows               int
	interleaved                    bool
	before                         [][]byte
}

func newTurned(t *testing.T, d *Device, rows, dim, k int, interleaved bool) *turned {
	b := newBeside(t, d)
	random := func(dt tensor.DType, r, c, pad int) tensor.Tensor { return b.random(dt, r, c, pad, 1)[0] }
	const page, pages, vw = 4, 20, 32
	s := &turned{d: d, q: 5 * dim, kw: 2 * dim, dim: dim, rows: rows, interleaved: interleaved}
	n := s.q + s.kw + vw
	s.x, s.delta, s.sum, s.gain = random(tensor.BF16, rows, k, 0), random(tensor.BF16, rows, k, 0), random(tensor.BF16, rows, k, 0), random(tensor.BF16, 1, k, 0)
	s.h, s.w, s.qkv, s.table = random(tensor.BF16, rows, k, 0), random(tensor.BF16, n, k, 0), random(tensor.BF16, rows, n, 0), random(tensor.F32, 16, dim, 0)
	s.cache = &device.Cache{K: random(tensor.BF16, pages*page, s.kw, 0), V: random(tensor.BF16, pages*page, vw, 8),
		Table: device.Empty(d, tensor.I32, 8, 2), PageSize: page}
	places, slot, pos := make([]int32, 16), make([]int32, rows), make([]int32, rows)
	for i := range places {
		places[i] = int32(i*7+3) % pages
	}
	for i := range rows {
		slot[i], pos[i] = int32(i), int32(i*5+2)%8
	}
	s.slot, s.pos = ints(d, rows), ints(d, rows)
	device.WriteI32(d, s.cache.Table, places)
	device.WriteI32(d, s.slot, slot)
	device.WriteI32(d, s.pos, pos)
	for _, x := range s.written() {
		s.before = append(s.before, read(d, x))
	}
	return s
}

func (s *turned) written() []tensor.Tensor {
	return []tensor.Tensor{s.qkv, s.cache.K, s.cache.V, s.h, s.sum}
}

// run gives the bits of all that is written; without a product Rope turns what lies there.
func (s *turned) run(product bool) []byte {
	d := s.d
	for i, x := range s.written() {
		d.Write(x, s.before[i])
	}
	if product {
		d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
		d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
	}
	to := s.q + s.kw
	d.Rope(s.qkv.Columns(0, to), s.table, s.pos, device.Rope{Heads: to / s.dim, Dim: s.dim, Interleaved: s.interleaved})
	d.CacheWrite(s.cache, s.qkv.Columns(s.q, to), s.qkv.Columns(to, s.qkv.Cols), s.slot, s.pos)
	return read(d, s.written()...)
}

// turnedRight holds Rope and CacheWrite in one kernel, by themselves and with the norm and the product before them, to the bits of a kernel for each.
func turnedRight(t *testing.T, d *Device) {
	for _, interleaved := range []bool{false, true} {
		for _, rows := range []int{1, 2, 3, 8} {
			for _, dim := range []int{16, 48} {
				for _, k := range []int{0, 104, 1536} {
					s := newTurned(t, d, rows, dim, max(k, 8), interleaved)
					d.unfused = true
					want := s.run(k > 0)
					d.unfused = false
					for _, d.prologue = range []int{normTurned, 0} {
						if got := s.run(k > 0); !bytes.Equal(got, want) {
							t.Errorf("%d rows of %d, heads of %d, interleaved %v, prologue %d: other bits than op by op", rows, k, dim, interleaved, d.prologue)
						}
					}
					if err := d.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

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

// TestHeld: an op that waits runs with the one that reads it, or before whatever else comes.
func TestHeld(t *testing.T) {
	type fused struct{ x, delta, sum, gain, h, w, c tensor.Tensor }
	build := func(d *Device, rows, k int) (f fused) {
		f.x, f.delta, f.sum, f.gain, f.h = act(d, rows, k), act(d, rows, k), act(d, rows, k), act(d, 1, k), act(d, rows, k)
		f.w, f.c = act(d, 4608, k), act(d, rows, 4608)
		return f
	}
	product := device.MatMul{TransB: true}
	norm := func(d *Device, f fused) { d.RMSNorm(f.h, tensor.Tensor{}, f.sum, f.x, f.delta, f.gain, 1e-5) }
	for _, c := range []struct {
		name    string
		rows, k int
		call    func(d *Device, f fused)
		want    []string
	}{
		{"norm and product", 1, 1536, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.h, f.w, product) }, []string{"matmul_norm8_long"}},
		{"of two short rows", 2, 768, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.h, f.w, product) }, []string{"matmul_norm8_short"}},
		{"of three rows", 3, 768, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.h, f.w, product) }, []string{"rmsnorm", "matmul_rows8_short"}},
		{"of an odd width", 1, 764, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.h, f.w, product) }, []string{"rmsnorm", "matmul_nt_16", "matmul_reduce"}},
		{"h read twice", 1, 1536, func(d *Device, f fused) {
			norm(d, f)
			d.MatMul(f.c, f.h, f.w, product)
			d.MatMul(stat(d, 1, 16), f.h, act(d, 16, f.h.Cols), product)
		}, []string{"matmul_norm8_long", "matmul_rows8_half"}},
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
		{"the sum in x's place", 1, 1536, func(d *Device, f fused) {
			f.sum = f.x
			norm(d, f)
			d.MatMul(f.c, f.h, f.w, product)
		}, []string{"rmsnorm", "matmul_rows8_long"}},
		{"the sum in delta's place", 1, 1536, func(d *Device, f fused) {
			f.sum = f.delta
			norm(d, f)
			d.MatMul(f.c, f.h, f.w, product)
		}, []string{"rmsnorm", "matmul_rows8_long"}},
		{"a product into delta's place", 1, 1536, func(d *Device, f fused) { norm(d, f); d.MatMul(f.delta, f.h, act(d, 1536, 1536), product) },
			[]string{"rmsnorm", "matmul_rows8_half"}},
		{"a product of another row", 1, 1536, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.x, f.w, product) }, []string{"rmsnorm", "matmul_rows8_long"}},
		{"logits", 1, 1536, func(d *Device, f fused) { norm(d, f); d.MatMul(stat(d, 1, 50304), f.h, act(d, 50304, 1536), product) },
			[]string{"rmsnorm", "matmul_rows8_long"}},
		{"norm and nothing", 1, 768, norm, []string{"rmsnorm"}},
		{"norm, norm, product", 1, 768, func(d *Device, f fused) { norm(d, f); norm(d, f); d.MatMul(f.c, f.h, f.w, product) }, []string{"rmsnorm", "matmul_norm8_short"}},
		{"norm, product, swiglu", 1, 1536, func(d *Device, f fused) { norm(d, f); d.MatMul(f.c, f.h, f.w, product); d.SwiGLU(act(d, 1, 2304), f.c) },
			[]string{"matmul_normgate8_long"}},
		{"of an odd width", 1, 1536, func(d *Device, f fused) {
			c := act(d, 1, 4624)
			norm(d, f)
			d.MatMul(c, f.h, act(d, 4624, 1536), product)
			d.SwiGLU(act(d, 1, 2304), c.Columns(0, 4608))
		}, []string{"matmul_norm8_long", "swiglu"}},
		{"swiglu into the place of x", 1, 1536, func(d *Device, f fused) {
			norm(d, f)
			d.MatMul(act(d, 1, 3072), f.h, act(d, 3072, 1536), product)
			d.SwiGLU(f.x, d.held.product.c)
		}, []string{"matmul_norm8_long", "swiglu"}},
		{"a recording", 1, 768, func(d *Device, f fused) {
			g, err := d.Record(func() { norm(d, f) })
			if err != nil || d.held.kind != heldNone {
				t.Errorf("held %v behind a recording (%v)", d.held.kind, err)
			}
			norm(d, f)
			g.Launch()
			if d.held.kind != heldNone {
				t.Error("held behind a replay")
			}
		}, []string{"rmsnorm"}},
	} {
		got := launched(t, func(d *Device) {
			d.prologue = normTurned | normGated | normPlain
			c.call(d, build(d, c.rows, c.k))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s launched %v, want %v", c.name, got, c.want)
		}
	}
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
		{9, q, q + kw, (q + kw) / dim, []string{"rope_half_8", "cache_write"}},
		{1, 0, kw, (q + kw) / dim, []string{"rope_half_8", "cache_write"}},
		{2, q + kw, q + 2*kw, (q + kw) / dim, []string{"rope_half_8", "cache_write"}},
		{2, q, q + kw, (q + kw + vw) / dim, []string{"rope_half_8", "cache_write"}},
	} {
		got := launched(t, func(d *Device) {
			x, slot, pos := act(d, c.rows, q+kw+vw), ints(d, c.rows), ints(d, c.rows)
			cache := &device.Cache{K: act(d, 320, kw), V: act(d, 320, vw), Table: on(d, tensor.I32, 20, 16, 16), PageSize: 16}
			d.Rope(x.Columns(0, c.heads*dim), stat(d, 128, dim), pos, device.Rope{Heads: c.heads, Dim: dim})
			d.CacheWrite(cache, x.Columns(c.from, c.to), x.Columns(q+kw, q+kw+vw), slot, pos)
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: launched %v", c, got)
		}
	}
}

// TestHeldChain: a norm, its product, their Rope and CacheWrite are one kernel where each reads what the one before left, and otherwise go as far as
// that holds, in order.
func TestHeldChain(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(s *turned)
		want []string
	}{
		{"all", func(s *turned) { s.run(true) }, []string{"matmul_normturn8_long"}},
		{"weights in shared memory", func(s *turned) {
			s.d.prologue = 0
			s.run(true)
			s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
			s.d.SwiGLU(act(s.d, 1, s.qkv.Cols/2), s.qkv)
			s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
		}, []string{"rmsnorm", "matmul_turn8_long", "rmsnorm", "matmul_gate8_long", "rmsnorm", "matmul_rows8_long"}},
		{"without a cache", func(s *turned) {
			s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
		}, []string{"matmul_norm8_long", "rope_half_8"}},
		{"queries turned alone", func(s *turned) {
			s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
			s.d.Rope(s.qkv.Columns(0, s.q), s.table, s.pos, device.Rope{Heads: 5, Dim: s.dim})
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"matmul_norm8_long", "rope_half_8", "cache_write"}},
		{"values from elsewhere", func(s *turned) {
			s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
			s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), act(s.d, 1, 32), s.slot, s.pos)
		}, []string{"matmul_norm8_long", "rope_cache_half"}},
		{"a table that was just written", func(s *turned) {
			s.d.fresh.wrote(s.table)
			s.run(true)
		}, []string{"matmul_norm8_long", "rope_cache_half"}},
	} {
		var names []string
		d, drv := fakeDevice(t)
		d.info.SMs = 8 // enough columns for blocks of 16
		d.prologue = normTurned | normGated | normPlain
		s := newTurned(t, d, 1, 64, 1536, false)
		drv.Reset()
		c.run(s)
		if err := d.Sync(); err != nil || d.held.kind != heldNone {
			t.Errorf("%s: held %v, %v", c.name, d.held.kind, err)
		}
		for _, l := range drv.Launches {
			names = append(names, l.Kernel)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: launched %v, want %v", c.name, names, c.want)
		}
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
		if !d.fresh.settled(x, 0, 0) || d.fresh.settled(y, 0, 0) {
			t.Error("what a held op writes must count as written, what it reads not")
		}
		next(d, y)
		if d.held.kind != heldNone || len(drv.Launches) == 0 || drv.Launches[0].Kernel != "rmsnorm" {
			t.Errorf("%s: launched %v", name, fmt.Sprint(drv.Launches))
		}
	}
}
