package cuda

import (
	"bytes"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// leftRight checks products that make their rows by a norm against the bits of two ops, and what the norm writes too;
// and those that go through Sigmoid.
func leftRight(t *testing.T, d *Device) {
	for _, k := range []int{8, 104, 768, 1024, 1536} {
		for _, rows := range []int{1, 2} {
			b := newBeside(t, d)
			random := func(dt tensor.DType, r, c int) tensor.Tensor { return b.random(dt, r, c, 0, 1)[0] }
			const n = 50
			w, gain, x, delta := random(tensor.BF16, n, k), random(tensor.BF16, 1, k), random(tensor.BF16, rows, k),
				random(tensor.BF16, rows, k)
			h, sum, rstd, c, op := random(tensor.BF16, rows, k), random(tensor.BF16, rows, k),
				random(tensor.F32, 1, rows), random(tensor.F32, rows, n), device.MatMul{TransB: true}
			noise := read(d, h)
			both := func(what string, two, one func()) {
				two()
				want := read(d, c, h, sum, rstd)
				for _, y := range []tensor.Tensor{c, sum, rstd} {
					d.Zero(y)
				}
				d.Write(h, noise)
				one()
				if got := read(d, c, h, sum, rstd); !bytes.Equal(got, want) {
					t.Errorf("%s, %d rows of %d: other bits than two ops", what, rows, k)
				}
			}
			for _, norm := range []normCall{{h, rstd, sum, x, delta, gain, 1e-5},
				{h, tensor.Tensor{}, tensor.Tensor{}, x, tensor.Tensor{}, gain, 1e-5}} {
				if k > maxShort {
					break
				}
				if !norm.rstd.Ok() {
					d.Zero(sum)
					d.Zero(rstd)
				}
				both("norm", func() { d.normalize(&norm); d.streamBy(rowsShort, c, h, w, k, op) }, func() {
					d.held.norm = norm
					d.multiplyRows(&productCall{rowsShort, c, h, w, k, op, true})
				})
			}
			d.Write(h, noise) // which this leaves alone
			d.Zero(sum)
			d.Zero(rstd)
			for _, s := range []rowsKernel{rowsShort, rowsLong} {
				both("sigmoid in "+s.name(), func() { d.streamBy(s, c, x, w, k, op); d.Sigmoid(c, c) },
					func() { d.launchRows(&productCall{s, c, x, w, k, op, false}, s.alone, rowsSigmoid) })
			}
		}
	}
}

// gatedRight holds products that go through SwiGLU, with the norm before them and without, to the bits of three ops.
func gatedRight(t *testing.T, d *Device) {
	for _, c := range []struct {
		s       rowsKernel
		k, rows int
		made    bool
	}{{rowsShort, 104, 1, true}, {rowsShort, 1024, 2, true}, {rowsShort, 104, 5, false}, {rowsLong, 1536, 1, false},
		{rowsLong, 104, 5, false}, {rowsStaged[0][0], 104, 17, false}, {rowsStaged[0][1], 520, 32, false},
		{rowsStaged[0][2], 8, 70, false}, {rowsStaged[0][3], 104, 30, false}, {rowsStaged[1][0], 104, 64, false},
		{rowsStaged[1][1], 1048, 33, false}, {rowsStaged[1][2], 520, 70, false}, {rowsStaged[1][3], 104, 61, false}} {
		b := newBeside(t, d)
		random := func(r, c int) tensor.Tensor { return b.random(tensor.BF16, r, c, 8, 1)[0] }
		const inner = 40
		norm := normCall{random(c.rows, c.k), tensor.Tensor{}, random(c.rows, c.k), random(c.rows, c.k),
			random(c.rows, c.k), random(1, c.k), 1e-5}
		gu, a, w, op := random(c.rows, 2*inner), random(c.rows, inner), random(2*inner, c.k),
			device.MatMul{TransB: true}
		d.normalize(&norm)
		d.streamBy(c.s, gu, norm.y, w, c.k, op)
		d.SwiGLU(a, gu)
		want := read(d, gu, a, norm.y, norm.sum)
		for _, y := range []tensor.Tensor{gu, a, norm.y, norm.sum} {
			d.Zero(y)
		}
		if d.held.norm = norm; !c.made {
			d.normalize(&norm)
		}
		d.multiplyGated(&productCall{c.s, gu, norm.y, w, c.k, op, c.made}, a)
		if got := read(d, gu, a, norm.y, norm.sum); !bytes.Equal(got, want) {
			t.Errorf("%s with SwiGLU, norm %v, %d rows of %d: other bits than three ops", c.s.name(),
				c.made, c.rows, c.k)
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
	const page, pages = 4, 20
	s := &turned{d: d, q: 5 * dim, kw: 2 * dim, dim: dim, rows: rows, interleaved: interleaved}
	vw := 32 + (s.q+s.kw)%16 // so that the product's columns are whole tiles, whatever the heads are
	n := s.q + s.kw + vw
	s.x, s.delta, s.sum, s.gain = random(tensor.BF16, rows, k, 0), random(tensor.BF16, rows, k, 0),
		random(tensor.BF16, rows, k, 0), random(tensor.BF16, 1, k, 0)
	s.h, s.w, s.qkv, s.table = random(tensor.BF16, rows, k, 0), random(tensor.BF16, n, k, 0),
		random(tensor.BF16, rows, n, 0), random(tensor.F32, 16, dim, 0)
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
		s.project()
	}
	s.turn()
	return read(d, s.written()...)
}

// project is the norm and the product.
func (s *turned) project() {
	s.d.RMSNorm(s.h, tensor.Tensor{}, s.sum, s.x, s.delta, s.gain, 1e-5)
	s.d.MatMul(s.qkv, s.h, s.w, device.MatMul{TransB: true})
}

// turn is the Rope of queries and keys, and the CacheWrite.
func (s *turned) turn() {
	to := s.q + s.kw
	s.d.Rope(s.qkv.Columns(0, to), s.table, s.pos,
		device.Rope{Heads: to / s.dim, Dim: s.dim, Interleaved: s.interleaved})
	s.d.CacheWrite(s.cache, s.qkv.Columns(s.q, to), s.qkv.Columns(to, s.qkv.Cols), s.slot, s.pos)
}

// turnedRight holds Rope and CacheWrite in one kernel, by themselves and with the norm and the product before them, to
// the bits of a kernel for each.
func turnedRight(t *testing.T, d *Device) {
	for _, interleaved := range []bool{false, true} {
		for _, rows := range []int{1, 2, 3, 8} {
			for _, dim := range []int{16, 24, 48} {
				for _, k := range []int{0, 104, 1536} {
					s := newTurned(t, d, rows, dim, max(k, 8), interleaved)
					d.unfused = true
					want := s.run(k > 0)
					d.unfused = false
					if got := s.run(k > 0); !bytes.Equal(got, want) {
						t.Errorf("%d rows of %d, heads of %d, interleaved %v: other bits than op by op", rows, k,
							dim, interleaved)
					}
					if err := d.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

// faultsRight checks ops in one kernel against the faults and the bits of one kernel for each, where positions lie
// outside the table, the pages or both.
func faultsRight(t *testing.T, d *Device) {
	for _, c := range []struct {
		what       string
		table, pos int // rows of the table; a row's position, of 8 that the cache has
	}{{"both", 16, 99}, {"the table", 4, 6}, {"the cache", 16, 9}, {"before both", 16, -1}} {
		for _, k := range []int{0, 104, 1536} {
			for i := range 6 { // blocks take turns in another order each time
				s := newTurned(t, d, 2, 16, max(k, 8), i%2 == 0)
				s.table = s.table.RowRange(0, c.table)
				device.WriteI32(d, s.pos, []int32{3, int32(c.pos)})
				d.unfused = true
				want := s.run(k > 0)
				wanted := d.Sync()
				d.unfused = false
				got := s.run(k > 0)
				if err := d.Sync(); err == nil || wanted == nil || err.Error() != wanted.Error() {
					t.Errorf("a position outside %s, behind a product of %d: %v, op by op %v", c.what, k, err, wanted)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("a position outside %s, behind a product of %d: other bits than op by op", c.what, k)
				}
			}
		}
	}
}
