package cuda

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

func TestDecode(t *testing.T) {
	d := gpu(t, nil)
	rowsRight(t, d)
	heldRight(t, d)
	cachedRight(t, d, 700, func(attnShape) bool { return false })
	leftRight(t, d)
	gatedRight(t, d)
	turnedRight(t, d)
	faultsRight(t, d)
}

// Kernels that start before their turn leave the bits that they leave one by one: as a stream of launches, and as a
// graph.
func TestDecodeChained(t *testing.T) {
	d := gpu(t, nil)
	for _, arch := range []string{"plain", "diff", "diff2"} {
		for _, rows := range []int{1, 3, 40} {
			s := newDecodeStep(d, 0, arch, rows, 512)
			newest := (7*7919+13)%(8*rows)*64 + 63 // slot 0's last, see decodePages
			s.run(func() {
				if err := d.Sync(); err != nil {
					t.Fatal(err)
				}
			})
			want := read(d, s.logit, s.layers[11].cache.K)
			step := func() { s.run(func() {}) }
			g, err := d.Record(step)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				d.Zero(s.logit)
				for _, l := range s.layers { // the newest key must come from this step
					d.Zero(l.cache.K.RowRange(newest, newest+1))
				}
				if i%2 == 0 {
					g.Launch()
				} else {
					step()
				}
				if got := read(d, s.logit, s.layers[11].cache.K); !bytes.Equal(got, want) {
					t.Fatalf("%s, %d rows: run %d has other bits than op by op", arch, rows, i)
				}
			}
			if err := g.Free(); err != nil {
				t.Error(err)
			}
			s.free()
		}
	}
}

func (s rowsKernel) name() string { return registry[s.alone.stored].name }

// streamBy multiplies with a given kernel.
func (d *Device) streamBy(s rowsKernel, c, x, w tensor.Tensor, k int, op device.MatMul) {
	d.flush()
	d.multiplyRows(&productCall{s: s, c: c, x: x, w: w, k: k, op: op})
}

// rowsRight holds every kernel for few rows to the oracle, and each row to the bits that it has alone.
func rowsRight(t *testing.T, d *Device) {
	for _, k := range []int{8, 104, 1536, 2120} {
		b := newBeside(t, d)
		const n = 50
		x, w := b.random(tensor.BF16, 70, k, 3, 1), b.random(tensor.BF16, n, k, 8, 1)
		y, op := b.random(tensor.F32, 70, n, 0, 1), device.MatMul{TransB: true}
		b.oracle.MatMul(y[1], x[1], w[1], op)
		var first []byte
		all := slices.Concat([]rowsKernel{rowsLong, rowsHalf, rowsShort, rowsAny, rowsSecond}, rowsStaged[0],
			rowsStaged[1])
		for i, s := range all {
			d.Zero(y[0])
			d.streamBy(s, y[0], x[0], w[0], k, op)
			name := fmt.Sprintf("%s of k=%d", s.name(), k)
			b.same(name, y, 1e-5)
			if got := read(d, y[0]); i == 0 {
				first = got
			} else if !bytes.Equal(got, first) {
				t.Errorf("%s: other bits than %s", name, rowsLong.name())
			}
		}
		one := y[0].RowRange(69, 70)
		d.stream(one, x[0].RowRange(69, 70), w[0], k, op)
		if got := read(d, one); !bytes.Equal(got, first[69*n*4:]) {
			t.Errorf("the last of 70 rows has other bits alone, k=%d", k)
		}
	}
}

// heldRight holds products of more than 16 rows, aligned, to the same bits with all weights held as with rings of three
// half pieces, and two or three of x, and with none, which up to 16 rows have: in fp32 and bf16, stored and added, to
// rows of c of which every other one is aligned.
func heldRight(t *testing.T, d *Device) {
	defer func(most int) { d.info.Shared = most }(d.info.Shared)
	b := newBeside(t, d)
	for _, k := range []int{72, 2120} {
		const n = 70
		x, w := b.random(tensor.BF16, n, k, 8, 1)[0], b.random(tensor.BF16, n, k, 8, 1)[0]
		for _, to := range []tensor.DType{tensor.F32, tensor.BF16} {
			before, y := b.random(to, n, n, 0, 10)[0], on(d, to, n, n, n)
			for _, add := range []bool{false, true} {
				b.heldSame(fmt.Sprintf("k=%d to %v, added %v", k, to, add), func(s rowsKernel) []byte {
					d.Copy(y, before)
					d.streamBy(s, y, x, w, k, device.MatMul{TransB: true, Accumulate: add})
					return read(d, y)
				}, k)
			}
		}
	}
}

// heldSame holds what multiply returns for each staged kernel, with three sizes of shared memory, to the bits for
// up to 16 rows.
func (b *beside) heldSame(name string, multiply func(rowsKernel) []byte, k int) {
	want := multiply(rowsSecond)
	for _, s := range slices.Concat(rowsStaged[0], rowsStaged[1]) {
		for _, most := range []int{1, 160 << 10, 227 << 10} {
			if b.d.info.Shared = most; !bytes.Equal(multiply(s), want) {
				held, inputs := s.rings(k, most)
				b.t.Errorf("%s, %s, with %d of its weights and %d of x held: other bits", s.name(), name, held, inputs)
			}
		}
	}
}

// cachedCase is cached attention on a device and on the oracle, with share heads of a group.
type cachedCase struct {
	*beside
	s                       attnShape
	context, pages, heads   int
	k, v, q, out, lam, gain [2]tensor.Tensor
}

const cachedPage, cachedGroups, cachedRows = 16, 2, 3

func newCachedCase(t *testing.T, d *Device, s attnShape, context, share int) *cachedCase {
	b, heads, pages := newBeside(t, d), cachedGroups*share, ceil(context, cachedPage)
	return &cachedCase{beside: b, s: s, context: context, pages: pages, heads: heads,
		k:    b.random(tensor.BF16, cachedRows*pages*cachedPage, cachedGroups*s.keys*s.d, 8, 1),
		v:    b.random(tensor.BF16, cachedRows*pages*cachedPage, cachedGroups*s.dv, 0, 1),
		q:    b.random(tensor.BF16, cachedRows, heads*s.maps*s.d, 0, 1),
		out:  b.random(tensor.BF16, cachedRows, heads*s.dv, 0, 1),
		lam:  b.random(tensor.F32, cachedRows, heads, 0, 0.5),
		gain: b.random(tensor.BF16, 1, s.dv, 0, 1)}
}

// attend takes the rows from and before to on device i, d.
func (c *cachedCase) attend(d device.Device, i, from, to int) {
	table, slot, pos := device.Empty(d, tensor.I32, cachedRows, c.pages), device.Empty(d, tensor.I32, 1, cachedRows),
		device.Empty(d, tensor.I32, 1, cachedRows)
	at := make([]int32, cachedRows*c.pages)
	for j := range at {
		at[j] = int32((j + 5) % len(at))
	}
	device.WriteI32(d, table, at)
	device.WriteI32(d, slot, []int32{2, 0, 1})
	device.WriteI32(d, pos, []int32{int32(c.context) - 1, 0, int32(c.context)/2 + 1})
	cache := &device.Cache{K: c.k[i], V: c.v[i], Table: table, PageSize: cachedPage}
	shape := device.AttnShape{Heads: c.heads, Groups: cachedGroups, D: c.s.d, DV: c.s.dv, Scale: 0.1}
	norm := device.HeadNorm{On: true, Weight: c.gain[i], Eps: 1e-5, Scale: 0.3}
	slot, pos = slot.Columns(from, to), pos.Columns(from, to)
	if c.s.maps == 1 {
		d.AttentionCached(&device.Attn{AttnShape: shape, Norm: norm, Q: c.q[i].RowRange(from, to),
			Out: c.out[i].RowRange(from, to)}, cache, slot, pos)
		return
	}
	d.DiffAttentionCached(&device.DiffAttn{AttnShape: shape, Keys: c.s.keys, Norm: norm,
		Q: c.q[i].RowRange(from, to), Lam: c.lam[i].RowRange(from, to), Out: c.out[i].RowRange(from, to)},
		cache, slot, pos)
}

// right holds the case to the oracle, and to the same bits for a row alone and for other blocks. general: so also with
// the general kernels.
func (c *cachedCase) right(general bool) {
	d, t, s := c.d, c.t, c.s
	c.both(func(d device.Device, i int) { c.attend(d, i, 0, cachedRows) })
	c.same(fmt.Sprintf("cached %+v, %d heads", s, c.heads), c.out, 1e-2)
	all := read(d, c.out[0])
	c.attend(d, 0, 2, 3)
	if got := read(d, c.out[0]); !bytes.Equal(got, all) {
		t.Errorf("cached %+v: a row has other bits alone", s)
	}
	sms := d.info.SMs
	d.info.SMs = 1 // so that a block takes several splits
	d.Zero(c.out[0])
	c.attend(d, 0, 0, cachedRows)
	d.info.SMs = sms
	if got := read(d, c.out[0]); !bytes.Equal(got, all) {
		t.Errorf("cached %+v: other bits where a block takes several splits", s)
	}
	kernels, ok := cachedShapes[false][s]
	if !ok || !general {
		return
	}
	d.Zero(c.out[0])
	delete(cachedShapes[false], s)
	c.attend(d, 0, 0, cachedRows)
	cachedShapes[false][s] = kernels
	if got := read(d, c.out[0]); !bytes.Equal(got, all) {
		t.Errorf("cached %+v: other bits than the general kernels'", s)
	}
}

// cachedRight holds cached attention of every shape that the compiler knows, and of some that it does not (widths that
// are no multiple of 16, values wider than a join has threads), to the oracle, with heads that share keys and without,
// and its rows to the bits they have alone. same tells the shapes whose kernels must come to the bits of the general
// ones, which pack P again for every 16 columns.
func cachedRight(t *testing.T, d *Device, context int, same func(attnShape) bool) {
	for _, s := range append(slices.Collect(maps.Keys(cachedShapes[false])), attnShape{1, 1, 72, 40},
		attnShape{2, 2, 200, 400}) {
		for _, share := range []int{1, 3} {
			newCachedCase(t, d, s, context, share).right(same(s))
		}
	}
}
