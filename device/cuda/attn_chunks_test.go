package cuda

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// chunked is attention of chunks of prompts over a cache. The pages of every second chunk are neighbours, the others'
// in disorder.
type chunked struct {
	d                       *Device
	call                    attnCall
	cache                   device.Cache
	slots, positions, where tensor.Tensor // where has a row per chunk: first row, row after the last, past, slot
	last                    []int32       // of each slot
	in                      []bool        // rows that are in a chunk
	longest                 int
}

// newChunked takes chunks as {rows before it that are in no chunk, rows, past}.
func newChunked(d *Device, s attnShape, page int, chunks [][3]int) *chunked {
	const heads, groups = 4, 2
	x, n, pages := &chunked{d: d}, 0, 0
	for _, c := range chunks {
		n += c[0] + c[1]
		pages, x.longest = max(pages, ceil(c[1]+c[2], page)), max(x.longest, c[1])
	}
	x.cache = device.Cache{PageSize: page, Table: ints2(d, len(chunks), pages),
		K: fill(d, act(d, len(chunks)*pages*page, groups*s.keys*s.d), 1, 0, 1),
		V: fill(d, act(d, len(chunks)*pages*page, groups*s.dv), 2, 0, 1)}
	order := rand.New(rand.NewPCG(3, 4)).Perm(len(chunks) * pages)
	table := make([]int32, len(order))
	for i, p := range order {
		table[i] = int32(p)
	}
	for i := 1; i < len(chunks); i += 2 {
		inOrder(table, i*pages, pages)
	}
	device.WriteI32(d, x.cache.Table, table)
	x.call = attnCall{AttnShape: device.AttnShape{B: n, T: 1, Heads: heads, Groups: groups, D: s.d, DV: s.dv,
		Scale: 1 / math.Sqrt(float64(s.d))}, maps: s.maps, keys: s.keys,
		q: fill(d, act(d, n, heads*s.maps*s.d), 5, 0, 1), out: act(d, n, heads*s.dv), weight: true,
		norm: device.HeadNorm{On: true, Weight: fill(d, act(d, 1, s.dv), 6, 1, 0.3), Eps: 1e-5, Scale: 0.8}}
	if s.maps == 2 {
		x.call.lam, x.call.eachLam = fill(d, stat(d, n, heads), 7, 0.5, 0.1), true
	}
	x.place(n, chunks)
	return x
}

// inOrder makes n pages from at on those from at on of the cache, which changes places with others.
func inOrder(table []int32, at, n int) {
	for i := at; i < at+n; i++ {
		j := slices.Index(table, int32(i))
		table[i], table[j] = table[j], table[i]
	}
}

// place writes where each of n rows belongs: by row, and by chunk.
func (x *chunked) place(n int, chunks [][3]int) {
	var list []int32
	slot, pos, at := make([]int32, n), make([]int32, n), 0
	x.in = make([]bool, n)
	for i, c := range chunks {
		at += c[0]
		list = append(list, int32(at), int32(at+c[1]), int32(c[2]), int32(i))
		for r := range c[1] {
			slot[at+r], pos[at+r], x.in[at+r] = int32(i), int32(c[2]+r), true
		}
		at += c[1]
		x.last = append(x.last, int32(c[1]+c[2]-1))
	}
	x.slots, x.positions, x.where = ints(x.d, n), ints(x.d, n), ints2(x.d, len(chunks), 4)
	device.WriteI32(x.d, x.slots, slot)
	device.WriteI32(x.d, x.positions, pos)
	device.WriteI32(x.d, x.where, list)
}

func (x *chunked) free() {
	for _, y := range []tensor.Tensor{x.cache.K, x.cache.V, x.cache.Table, x.call.q, x.call.out, x.call.lam,
		x.call.norm.Weight, x.slots, x.positions, x.where} {
		if y.Ok() {
			x.d.Free(y.Buf)
		}
	}
}

// chunksAgree wants the rows of chunks within bf16's error of the same rows one by one, the rows between chunks
// untouched, and all of it also where what lies beyond the ends of sequences is NaN, with the same bits.
func chunksAgree(t *testing.T, d *Device, s attnShape, page int, chunks [][3]int) {
	t.Helper()
	x := newChunked(d, s, page, chunks)
	defer x.free()
	x.agree(t, s)
}

// tilesAgree is chunksAgree for tiles whose pages are almost neighbours: all but the first, the last or one between,
// the halves, or one page over and over. Another slot has all in order, and ends in the last page of its last tile; the
// second chunk ends a page before that.
func tilesAgree(t *testing.T, d *Device, s attnShape, page int) {
	t.Helper()
	keys := hopperShapes[s].tile.keys
	per, slot := keys/page, 8*keys/page // pages of a tile, of a slot
	x := newChunked(d, s, page, [][3]int{{0, 3, 8*keys - 5 - 3}, {1, 9, 8*keys - page - 3 - 9}})
	defer x.free()
	table := make([]int32, 2*slot)
	for i := range table {
		table[i] = int32(i)
	}
	astray := func(tile, i int) { table[slot+tile*per+i] = int32(tile*per + i) } // a page of the other slot
	astray(1, 0)
	astray(2, per-1)
	astray(3, per/2)
	for i := range per / 2 {
		astray(4, i)
		astray(5, per-1-i)
	}
	for i := range per {
		table[slot+i] = table[slot]
	}
	device.WriteI32(d, x.cache.Table, table)
	x.agree(t, s)
}

// chunksRefused wants pages that are no whole rows of the swizzle pattern or no divisor of a tile, rows that lie askew
// and a cache of bytes left to others.
func chunksRefused(t *testing.T, d *Device) {
	t.Helper()
	defer wgmma(d, true)()
	for name, c := range map[string]struct {
		page   int
		change func(c *device.Cache)
		ok     bool
	}{"8": {page: 8, ok: true}, "4": {page: 4}, "12": {page: 12}, "48": {page: 48}, "256": {page: 256},
		"a page in a tile": {page: 128, ok: true},
		"keys askew":       {page: 16, change: func(c *device.Cache) { c.K.Off += 8; c.K.Rows-- }},
		"values askew":     {page: 16, change: func(c *device.Cache) { c.V.Off += 8; c.V.Rows-- }},
		"bytes":            {page: 16, change: func(c *device.Cache) { c.K.Type, c.V.Type = tensor.I8, tensor.I8 }}} {
		x := newChunked(d, attnShape{1, 1, 64, 64}, c.page, [][3]int{{0, 2, 9}})
		if c.change != nil {
			c.change(&x.cache)
		}
		if ok := d.attendChunks(&x.call, &x.cache, x.where, x.longest); ok != c.ok {
			t.Errorf("pages %s: taken is %v", name, ok)
		}
		x.free()
	}
}

func (x *chunked) agree(t *testing.T, s attnShape) {
	t.Helper()
	d := x.d
	defer wgmma(d, true)()
	clean := x.together(t, s)
	spoil(d, &x.cache, x.last)
	d.attendCached(&x.call, &x.cache, x.slots, x.positions)
	want := floats(d, x.call.out)
	if !bytes.Equal(x.together(t, s), clean) {
		t.Errorf("%+v over pages of %d: other bits with NaN beyond the ends", s, x.cache.PageSize)
	}
	x.near(t, s, floats(d, x.call.out), want)
}

// together attends from all chunks.
func (x *chunked) together(t *testing.T, s attnShape) []byte {
	t.Helper()
	x.d.Zero(x.call.out)
	if !x.d.attendChunks(&x.call, &x.cache, x.where, x.longest) {
		t.Fatalf("%+v over pages of %d has no kernel", s, x.cache.PageSize)
	}
	if err := x.d.Sync(); err != nil {
		t.Fatal(err)
	}
	return read(x.d, x.call.out)
}

// near wants rows that are in a chunk within bf16's error of others, and the rest zeros.
func (x *chunked) near(t *testing.T, s attnShape, got, want []float32) {
	t.Helper()
	cols := x.call.out.Cols
	for r, in := range x.in {
		diff, norm := 0.0, 0.0
		for c := range cols {
			g, w := float64(got[r*cols+c]), float64(want[r*cols+c])
			if !in {
				w = 0
			}
			diff, norm = diff+(g-w)*(g-w), norm+w*w
		}
		if !(diff <= 1e-4*norm) {
			t.Fatalf("%+v over pages of %d: row %d (chunk row %v) is off by %g of %g", s, x.cache.PageSize, r, in,
				math.Sqrt(diff), math.Sqrt(norm))
		}
	}
}

// ints2 allocates I32 [rows,cols].
func ints2(d *Device, rows, cols int) tensor.Tensor { return device.Empty(d, tensor.I32, rows, cols) }

// Chunks of every Hopper shape over pages, on a GPU.
func TestHopperChunks(t *testing.T) {
	d := gpu(t, nil)
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		t.Run(s.String(), func(t *testing.T) {
			chunksAgree(t, d, s, 16, [][3]int{{0, 700, 0}, {3, 300, 1000}, {0, 129, 31}, {1, 40, 2000}})
			chunksAgree(t, d, s, 32, [][3]int{{0, 33, 500}})
			tilesAgree(t, d, s, 16)
		})
	}
}
