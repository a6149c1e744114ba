package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// quantised is what a cache of bytes makes of rows of heads of a width: scale·round(x/scale), scale = max|x|/127 of a
// head.
func quantised(x []float32, width int) []float64 {
	out := make([]float64, len(x))
	for h := 0; h < len(x); h += width {
		top := float32(0)
		for _, e := range x[h : h+width] {
			top = max(top, float32(math.Abs(float64(e))))
		}
		inv, scale := float32(0), float64(top/127)
		if top > 0 {
			inv = 127 / top
		}
		for i, e := range x[h : h+width] {
			out[h+i] = scale * math.RoundToEven(float64(e*inv))
		}
	}
	return out
}

// softmaxRow is Σ softmax(scale·q·k)·v over the first n of keys, rows of k and v being kw and vw apart.
func softmaxRow(q, k, v []float64, kw, vw, dv, n int, scale float64) []float64 {
	s, top, sum := make([]float64, n), math.Inf(-1), 0.0
	for i := range s {
		for e, x := range q {
			s[i] += scale * x * k[i*kw+e]
		}
		top = max(top, s[i])
	}
	out := make([]float64, dv)
	for i := range s {
		p := math.Exp(s[i] - top)
		sum += p
		for e := range out {
			out[e] += p * v[i*vw+e]
		}
	}
	for e := range out {
		out[e] /= sum
	}
	return out
}

// bytesCase is a cache of bytes of two slots whose pages are in disorder, with the keys and values that go there.
type bytesCase struct {
	t                    *testing.T
	d                    *Device
	s                    attnShape
	context, kh          int // positions of a slot; heads of keys
	c                    *device.Cache
	k, v, slot, pos, ids tensor.Tensor // ids are the cache's rows
	wantK, wantV         []float64     // as they were rounded
}

const byteGroups = 3

// newBytesCase has pages of some positions, and rows of K and of V that are padK and padV bytes further apart than they
// must be.
func newBytesCase(t *testing.T, d *Device, s attnShape, context, page, padK, padV int) *bytesCase {
	const slots = 2
	pages, n, kh := ceil(context, page), slots*context, byteGroups*s.keys
	wk, wv := device.CacheCols(tensor.I8, kh, s.d), device.CacheCols(tensor.I8, byteGroups, s.dv)
	c := &device.Cache{K: on(d, tensor.I8, slots*pages*page, wk, wk+padK),
		V: on(d, tensor.I8, slots*pages*page, wv, wv+padV), Table: ints2(d, slots, pages),
		PageSize: page, KHeads: kh, VHeads: byteGroups, D: s.d, DV: s.dv}
	table, slot, pos, rows := make([]int32, slots*pages), make([]int32, n), make([]int32, n), make([]int32, n)
	for i, p := range rand.New(rand.NewPCG(3, 4)).Perm(len(table)) {
		table[i] = int32(p)
	}
	for i := range slot {
		slot[i], pos[i] = int32(i/context), int32(i%context)
		rows[i] = table[i/context*pages+i%context/page]*int32(page) + int32(i%context%page)
	}
	x := &bytesCase{t: t, d: d, s: s, context: context, kh: kh, c: c, k: fill(d, act(d, n, kh*s.d), 1, 0, 1),
		v: fill(d, act(d, n, byteGroups*s.dv), 2, 0.3, 1), slot: ints(d, n), pos: ints(d, n), ids: ints(d, n)}
	device.WriteI32(d, c.Table, table)
	device.WriteI32(d, x.slot, slot)
	device.WriteI32(d, x.pos, pos)
	device.WriteI32(d, x.ids, rows)
	x.wantK, x.wantV = quantised(floats(d, x.k), s.d), quantised(floats(d, x.v), s.dv)
	return x
}

func (x *bytesCase) free() {
	x.release(x.c.K, x.c.V, x.c.Table, x.k, x.v, x.slot, x.pos, x.ids)
}

func (x *bytesCase) release(all ...tensor.Tensor) {
	for _, y := range all {
		x.d.Free(y.Buf)
	}
}

// written wants keys and values back as they were rounded.
func (x *bytesCase) written() {
	x.t.Helper()
	x.d.CacheWrite(x.c, x.k, x.v, x.slot, x.pos)
	gotK, gotV := act(x.d, x.k.Rows, x.k.Cols), act(x.d, x.v.Rows, x.v.Cols)
	x.d.CacheRead(gotK, gotV, x.c, x.ids)
	near(x.t, x.d, fmt.Sprintf("%+v keys", x.s), gotK, x.wantK, 4e-3)
	near(x.t, x.d, fmt.Sprintf("%+v values", x.s), gotV, x.wantV, 4e-3)
	x.release(gotK, gotV)
}

// head is attention of a query over a slot's positions up to last, by map m with the group's keys.
func (x *bytesCase) head(q []float32, slot, group, m, last int) []float64 {
	s, first := x.s, slot*x.context
	wide := make([]float64, s.d)
	for e := range wide {
		wide[e] = float64(q[e])
	}
	from := first*x.kh*s.d + (group*s.keys+min(m, s.keys-1))*s.d
	return softmaxRow(wide, x.wantK[from:], x.wantV[(first*byteGroups+group)*s.dv:], x.kh*s.d, byteGroups*s.dv, s.dv,
		last+1, 1/math.Sqrt(float64(s.d)))
}

// call is attention of rows at some positions of slots, with share heads of a group. Queries are columns of a wider
// tensor.
func (x *bytesCase) call(share int, slots, last []int32) (call attnCall, slot, pos tensor.Tensor) {
	d, s, n, heads := x.d, x.s, len(slots), byteGroups*share
	slot, pos = x.slot.Columns(0, n), x.pos.Columns(0, n)
	device.WriteI32(d, slot, slots)
	device.WriteI32(d, pos, last)
	wide := heads * s.maps * s.d
	return attnCall{AttnShape: device.AttnShape{B: n, T: 1, Heads: heads, Groups: byteGroups, D: s.d, DV: s.dv,
		Scale: 1 / math.Sqrt(float64(s.d))}, maps: s.maps, keys: s.keys, q: fill(d, on(d, tensor.BF16, n, wide, wide+8),
		3, 0, 1), lam: fill(d, stat(d, n, heads), 4, 0.5, 0.1), eachLam: true, out: act(d, n, heads*s.dv)}, slot, pos
}

// want is what float64 makes of a call.
func (x *bytesCase) want(c *attnCall, slots, last []int32) []float64 {
	s, hq, hl, want := x.s, floats(x.d, c.q), floats(x.d, c.lam), make([]float64, c.out.Len())
	for i := range c.q.Rows * c.Heads { // row, head
		for m := range s.maps {
			f := 1.0
			if m == 1 {
				f = -float64(hl[i])
			}
			o := x.head(hq[(i*s.maps+m)*s.d:], int(slots[i/c.Heads]), i%c.Heads/(c.Heads/c.Groups), m,
				int(last[i/c.Heads]))
			for e, y := range o {
				want[i*s.dv+e] += f * y
			}
		}
	}
	return want
}

// attended wants attention over the cache as float64 has it, with share heads of a group, and its bits also where a
// block takes several splits and where what lies beyond the last position of a slot is NaN.
func (x *bytesCase) attended(share int) {
	x.t.Helper()
	d, s, slots, last := x.d, x.s, []int32{1, 0, 1}, []int32{int32(x.context) - 1, int32(x.context) / 2, 0}
	call, slot, pos := x.call(share, slots, last)
	d.attendCached(&call, x.c, slot, pos)
	near(x.t, d, fmt.Sprintf("%+v attention", s), call.out, x.want(&call, slots, last), 8e-3)
	all := read(d, call.out)
	sms := d.info.SMs
	d.info.SMs = 1 // so that a block takes several splits
	d.Zero(call.out)
	d.attendCached(&call, x.c, slot, pos)
	d.info.SMs = sms
	if !bytes.Equal(read(d, call.out), all) {
		x.t.Errorf("bytes %+v: other bits where a block takes several splits", s)
	}
	spoil(d, x.c, []int32{last[1], last[0]})
	d.attendCached(&call, x.c, slot, pos)
	if !bytes.Equal(read(d, call.out), all) {
		x.t.Errorf("bytes %+v: other bits with NaN beyond the last position", s)
	}
	if err := d.Sync(); err != nil {
		x.t.Fatal(err)
	}
	x.release(call.q, call.lam, call.out)
}

// poisoned wants a NaN of a query in all of its head's output, and in no other.
func (x *bytesCase) poisoned() {
	x.t.Helper()
	d, s := x.d, x.s
	bad := s.maps*s.d + s.d - 1 // of the second head
	call, slot, pos := x.call(1, []int32{1}, []int32{int32(x.context) - 1})
	device.WriteFloats(d, call.q.Columns(bad, bad+1), []float32{float32(math.NaN())})
	d.attendCached(&call, x.c, slot, pos)
	for i, y := range floats(d, call.out) {
		if nan := math.IsNaN(float64(y)); nan != (i/s.dv == 1) {
			x.t.Fatalf("bytes %+v: element %d of head %d is %g", s, i%s.dv, i/s.dv, y)
		}
	}
	x.release(call.q, call.lam, call.out)
}

// bytesRight writes keys and values to a cache of bytes, wants them back as they were rounded, and attention over them
// as float64 has it.
func bytesRight(t *testing.T, d *Device, s attnShape, context, share int) {
	t.Helper()
	old := d.types.Cache
	d.types.Cache = tensor.I8
	defer func() { d.types.Cache = old }()
	x := newBytesCase(t, d, s, context, 16, 0, 0)
	x.written()
	x.attended(share)
	x.poisoned()
	x.free()
}

// floats reads a tensor.
func floats(d *Device, x tensor.Tensor) []float32 {
	out := make([]float32, x.Len())
	device.ReadFloats(d, out, x)
	return out
}

// near wants every element within f of the row's largest.
func near(t *testing.T, d *Device, what string, x tensor.Tensor, want []float64, f float64) {
	t.Helper()
	got := floats(d, x)
	for r := range x.Rows {
		top := 1e-6
		for _, w := range want[r*x.Cols : (r+1)*x.Cols] {
			top = max(top, math.Abs(w))
		}
		for c := range x.Cols {
			if g, w := float64(got[r*x.Cols+c]), want[r*x.Cols+c]; !(math.Abs(g-w) <= f*top) {
				t.Fatalf("%s: element %d of row %d is %g, want %g", what, c, r, g, w)
			}
		}
	}
}

// byteShapes are those with kernels of their own and some that go through the general ones.
func byteShapes() []attnShape {
	return []attnShape{{2, 2, 32, 64}, {1, 1, 64, 64}, {2, 2, 64, 128}, {2, 2, 96, 192}, {2, 1, 128, 128},
		{2, 2, 128, 256}, {1, 1, 72, 40}}
}

// TestBytes: a cache of bytes on a GPU.
func TestBytes(t *testing.T) {
	d := gpu(t, nil)
	for _, s := range byteShapes() {
		bytesRight(t, d, s, 1000, 1)
		bytesRight(t, d, s, 300, 3)
	}
}

// joinedRight holds Rope and CacheWrite in one kernel, into a cache of bytes and of bf16 and for more rows than a
// product's, to the bits of a kernel for each; also where a position lies outside the table or the pages.
func joinedRight(t *testing.T, d *Device) {
	old := d.types.Cache
	defer func() { d.types.Cache = old }()
	for _, kind := range []tensor.DType{tensor.I8, tensor.BF16} {
		for _, dim := range []int{16, 24, 96, 128} {
			for i, rows := range []int{1, 3, 20, 20} {
				s := newTurned(t, d, rows, dim, 104, dim != 24 && i%2 == 0)
				if d.types.Cache = kind; kind == tensor.I8 {
					vw := s.qkv.Cols - s.q - s.kw
					s.cache.K, s.cache.V = on(d, kind, 80, device.CacheCols(kind, 2, dim),
						device.CacheCols(kind, 2, dim)),
						on(d, kind, 80, device.CacheCols(kind, 1, vw), device.CacheCols(kind, 1, vw))
					s.cache.KHeads, s.cache.VHeads, s.cache.D, s.cache.DV = 2, 1, dim, vw
					s.before[1], s.before[2] = read(d, s.cache.K), read(d, s.cache.V)
				}
				slot, pos := make([]int32, rows), make([]int32, rows)
				for r := range slot {
					slot[r], pos[r] = int32(r%8), int32(r/8)
				}
				if i == 3 {
					pos[17] = 99
				}
				device.WriteI32(d, s.slot, slot)
				device.WriteI32(d, s.pos, pos)
				d.unfused = true
				want := s.run(rows < 9)
				wanted := d.Sync()
				d.unfused = false
				if got := s.run(rows < 9); !bytes.Equal(got, want) {
					t.Errorf("%v: %d rows, heads of %d: other bits than op by op", kind, rows, dim)
				}
				if err := d.Sync(); fmt.Sprint(err) != fmt.Sprint(wanted) || (err != nil) != (i == 3) {
					t.Errorf("%v: %d rows, heads of %d: %v, op by op %v", kind, rows, dim, err, wanted)
				}
			}
		}
	}
}

// TestJoined: Rope and CacheWrite in one kernel on a GPU.
func TestJoined(t *testing.T) { joinedRight(t, gpu(t, nil)) }

// attendBytes is attention of 64 rows over a cache of bytes of six groups, by so many heads.
func attendBytes(heads int) func(d *Device) {
	return func(d *Device) {
		a, _ := diffOn(d, 64, 1, heads, 6, 64, 128, 2)
		const rows, page, pages = 64 * 1056, 16, 66
		d.types.Cache = tensor.I8
		c := &device.Cache{K: on(d, tensor.I8, rows, 816, 816), V: on(d, tensor.I8, rows, 800, 800),
			Table: on(d, tensor.I32, 64, pages, pages), PageSize: page, KHeads: 12, VHeads: 6, D: 64, DV: 128}
		d.DiffAttentionCached(a, c, ints(d, 64), ints(d, 64))
	}
}

// TestBytesLaunches checks the launchers of a cache of bytes against their geometry.
func TestBytesLaunches(t *testing.T) {
	for _, c := range []launchCase{
		{"bytes", attendBytes(6), []string{"diffattention_bytes 396,1,1 × 128 + 53248",
			"diffattention_join 6,64,1 × 384 + 6216"}},
		{"bytes of heads that share keys", attendBytes(12), []string{"diffattention_splits 6,4,64 × 256 + 48832",
			"diffattention_join 12,64,1 × 384 + 6216"}},
		{"Rope and CacheWrite", func(d *Device) {
			qkv, at := act(d, 64, 2304), ints(d, 64)
			d.types.Cache = tensor.I8
			c := &device.Cache{K: on(d, tensor.I8, 1024, 816, 816), V: on(d, tensor.I8, 1024, 800, 800),
				Table: on(d, tensor.I32, 64, 1, 1), PageSize: 16, KHeads: 12, VHeads: 6, D: 64, DV: 128}
			d.Rope(qkv.Columns(0, 1536), stat(d, 64, 64), at, device.Rope{Heads: 24, Dim: 64, Interleaved: true})
			d.CacheWrite(c, qkv.Columns(768, 1536), qkv.Columns(1536, 2304), at, at)
		}, []string{"rope_bytes_pairs 240,1,1 × 128 + 0"}},
	} {
		d, drv := fakeDevice(t)
		c.holds(t, d, drv)
	}
}
