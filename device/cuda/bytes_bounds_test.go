package cuda

import (
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// Rope waits for CacheWrite where both are wide, and is one kernel with a product only of the product's first columns;
// in all other cases each op has its own.
func TestTurnsThatWait(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(s *turned)
		want []string
	}{
		"unfused":  {func(s *turned) { s.d.unfused = true; s.turn() }, []string{"rope_half_8", "cache_write"}},
		"together": {func(s *turned) { s.turn() }, []string{"rope_cache_half"}},
		"a product of other rows": {func(s *turned) {
			s.d.MatMul(act(s.d, s.rows, s.qkv.Cols), s.h, s.w, product)
			s.turn()
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
		"queries and keys that do not begin the product": {func(s *turned) {
			wide := act(s.d, s.rows, s.qkv.Cols+64)
			s.d.MatMul(wide, s.h, act(s.d, wide.Cols, s.h.Cols), product)
			s.qkv = wide.Columns(64, wide.Cols)
			s.turn()
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
		"heads of 8": {func(s *turned) {
			s.table = stat(s.d, 16, 8)
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: (s.q + s.kw) / 8, Dim: 8})
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"rope_half_1", "cache_write"}},
		"a cache that is not aligned": {func(s *turned) {
			s.cache.V = off(s.d, s.cache.V.Rows, s.cache.V.Cols)
			s.turn()
		}, []string{"rope_half_8", "cache_write"}},
		"keys of the cache in the product's rows": {func(s *turned) {
			s.cache.K = on(s.d, tensor.BF16, s.cache.K.Rows, s.kw, s.h.Cols)
			s.h = tensor.Tensor{Buf: s.cache.K.Buf, Type: tensor.BF16, Rows: s.rows, Cols: s.h.Cols, Ld: s.h.Cols}
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.turn()
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
		"keys that Rope did not turn, after a product": {func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.d.Rope(s.qkv.Columns(0, s.q+s.kw), s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
			s.d.CacheWrite(s.cache, act(s.d, s.rows, s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"matmul_rows8_short", "rope_half_8", "cache_write"}},
		"values of the product, keys of elsewhere": {func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, product)
			x := act(s.d, s.rows, s.q+s.kw)
			s.d.Rope(x, s.table, s.pos, device.Rope{Heads: 7, Dim: s.dim})
			s.d.CacheWrite(s.cache, x.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"matmul_rows8_short", "rope_cache_half"}},
		"the same keys again": {func(s *turned) {
			s.turn()
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"rope_cache_half", "cache_write"}},
		"another op's product": {func(s *turned) {
			s.d.MatMul(s.qkv, s.h, s.w, product)
			s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, s.q+s.kw), s.qkv.Columns(s.q+s.kw, s.qkv.Cols), s.slot, s.pos)
		}, []string{"matmul_rows8_short", "cache_write"}},
	} {
		if got := turnedLaunches(t, 2, 768, c.run); !slices.Equal(got, c.want) {
			t.Errorf("%s: launched %v, want %v", name, got, c.want)
		}
	}
}

// byteCall is a Rope and a CacheWrite into a cache of bytes.
type byteCall struct {
	qkv, k, v  tensor.Tensor
	cache      *device.Cache
	heads, dim int
}

// newByteCall has four heads of queries, two of keys and two of values.
func newByteCall(d *Device, dim, dv int) *byteCall {
	d.types.Cache = tensor.I8
	kw, vw := device.CacheCols(tensor.I8, 2, dim), device.CacheCols(tensor.I8, 2, dv)
	b := &byteCall{qkv: act(d, 3, 6*dim+2*dv), heads: 6, dim: dim,
		cache: &device.Cache{K: on(d, tensor.I8, 64, kw, kw), V: on(d, tensor.I8, 64, vw, vw),
			Table: on(d, tensor.I32, 4, 1, 1), PageSize: 16, KHeads: 2, VHeads: 2, D: dim, DV: dv}}
	b.k, b.v = b.qkv.Columns(4*dim, 6*dim), b.qkv.Columns(6*dim, 6*dim+2*dv)
	return b
}

// Into a cache of bytes Rope and CacheWrite are one kernel up to heads of 128 and values of 256, in whole pieces of 8,
// where the keys are what Rope turned and nothing overlaps; in all other cases each has its own.
func TestBytesTogether(t *testing.T) {
	for name, c := range map[string]struct {
		dim, dv int
		change  func(d *Device, b *byteCall)
		one     bool
	}{
		"together": {dim: 64, dv: 64, one: true}, "the widest": {dim: 128, dv: 256, one: true},
		"wider heads": {dim: 144, dv: 64}, "wider values": {dim: 64, dv: 264},
		"odd values":             {dim: 64, dv: 60},
		"heads of another width": {dim: 64, dv: 64, change: func(d *Device, b *byteCall) { b.heads, b.dim = 12, 32 }},
		"values that lie askew":  {dim: 64, dv: 64, change: func(d *Device, b *byteCall) { b.v = off(d, 3, 128) }},
		"values elsewhere": {dim: 64, dv: 64, change: func(d *Device, b *byteCall) { b.v = act(d, 3, 128) },
			one: true},
		"keys elsewhere": {dim: 64, dv: 64, change: func(d *Device, b *byteCall) { b.k = act(d, 3, 128) }},
		"a cache that lies askew": {dim: 64, dv: 64,
			change: func(d *Device, b *byteCall) { b.cache.V.Off += 8; b.cache.V.Rows--; b.cache.K.Rows-- }},
		"a cache in the same rows": {dim: 64, dv: 64,
			change: func(d *Device, b *byteCall) { b.cache.K.Buf = b.qkv.Buf }},
	} {
		got := launched(t, func(d *Device) {
			b := newByteCall(d, c.dim, c.dv)
			if c.change != nil {
				c.change(d, b)
			}
			at := ints(d, 3)
			d.Rope(b.qkv.Columns(0, 6*c.dim), stat(d, 64, b.dim), at, device.Rope{Heads: b.heads, Dim: b.dim})
			d.CacheWrite(b.cache, b.k, b.v, at, at)
		})
		want := []string{"rope_half_8", "cache_write_bytes"}
		if c.one {
			want = []string{"rope_bytes_half"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: launched %v, want %v", name, got, want)
		}
	}
	got := launched(t, func(d *Device) { // without a Rope, with a product before it, and again
		d.info.SMs = 8
		b, at := newByteCall(d, 64, 64), ints(d, 3)
		d.CacheWrite(b.cache, b.k, b.v, at, at)
		d.MatMul(b.qkv, act(d, 3, 768), act(d, b.qkv.Cols, 768), device.MatMul{TransB: true})
		d.Rope(b.qkv.Columns(0, 384), stat(d, 64, 64), at, device.Rope{Heads: 6, Dim: 64})
		d.CacheWrite(b.cache, b.k, b.v, at, at)
		d.CacheWrite(b.cache, b.k, b.v, at, at)
	})
	if want := []string{"cache_write_bytes", "matmul_rows8_short", "rope_bytes_half",
		"cache_write_bytes"}; !slices.Equal(got, want) {
		t.Errorf("launched %v, want %v", got, want)
	}
}

// Rows of either cache are read by the kernel of its type, none for no rows.
func TestCacheReads(t *testing.T) {
	got := launched(t, func(d *Device) {
		k, v := act(d, 3, 128), act(d, 3, 128)
		d.CacheRead(k, v, &device.Cache{K: act(d, 64, 128), V: act(d, 64, 128)}, ints(d, 3))
		b := newByteCall(d, 64, 64)
		d.CacheRead(k, v, b.cache, ints(d, 3))
		d.CacheRead(k.RowRange(0, 0), v.RowRange(0, 0), b.cache, ints(d, 0))
	})
	if want := []string{"embed", "embed", "cache_read_bytes"}; !slices.Equal(got, want) {
		t.Errorf("launched %v, want %v", got, want)
	}
}
