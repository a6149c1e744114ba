package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// chunksAgree wants the rows of chunks over pages in disorder within bf16's error of the same rows one by one, and the
// rows between chunks untouched. chunks are {rows before it that are in no chunk, rows, past}.
func chunksAgree(t *testing.T, d *Device, s attnShape, page int, chunks [][3]int) {
	t.Helper()
	const heads, groups = 4, 2
	defer wgmma(d, true)()
	n, pages, longest := 0, 0, 0
	for _, c := range chunks {
		n += c[0] + c[1]
		pages, longest = max(pages, ceil(c[1]+c[2], page)), max(longest, c[1])
	}
	cache := device.Cache{PageSize: page, Table: ints2(d, len(chunks), pages),
		K: fill(d, act(d, len(chunks)*pages*page, groups*s.keys*s.d), 1, 0, 1),
		V: fill(d, act(d, len(chunks)*pages*page, groups*s.dv), 2, 0, 1)}
	order := rand.New(rand.NewPCG(3, 4)).Perm(len(chunks) * pages)
	table, list, slot, pos := make([]int32, len(order)), []int32{}, make([]int32, n), make([]int32, n)
	for i, p := range order {
		table[i] = int32(p)
	}
	at := 0
	for i, c := range chunks {
		at += c[0]
		list = append(list, int32(at), int32(at+c[1]), int32(c[2]), int32(i))
		for r := range c[1] {
			slot[at+r], pos[at+r] = int32(i), int32(c[2]+r)
		}
		at += c[1]
	}
	device.WriteI32(d, cache.Table, table)
	call := attnCall{AttnShape: device.AttnShape{B: n, T: 1, Heads: heads, Groups: groups, D: s.d, DV: s.dv,
		Scale: 1 / math.Sqrt(float64(s.d))}, maps: s.maps, keys: s.keys,
		q: fill(d, act(d, n, heads*s.maps*s.d), 5, 0, 1), out: act(d, n, heads*s.dv), weight: true,
		norm: device.HeadNorm{On: true, Weight: fill(d, act(d, 1, s.dv), 6, 1, 0.3), Eps: 1e-5, Scale: 0.8}}
	if s.maps == 2 {
		call.lam, call.eachLam = fill(d, stat(d, n, heads), 7, 0.5, 0.1), true
	}
	slots, positions, chunkList := ints(d, n), ints(d, n), ints2(d, len(chunks), 4)
	device.WriteI32(d, slots, slot)
	device.WriteI32(d, positions, pos)
	device.WriteI32(d, chunkList, list)
	want, got := make([]float32, call.out.Len()), make([]float32, call.out.Len())
	d.attendCached(&call, &cache, slots, positions)
	device.ReadFloats(d, want, call.out)
	d.Zero(call.out)
	if !d.attendChunks(&call, &cache, chunkList, longest) {
		t.Fatalf("%+v over pages of %d has no kernel", s, page)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	device.ReadFloats(d, got, call.out)
	in := make([]bool, n)
	for i := 0; i < len(list); i += 4 {
		for r := list[i]; r < list[i+1]; r++ {
			in[r] = true
		}
	}
	for r := range n {
		diff, norm := 0.0, 0.0
		for c := range call.out.Cols {
			g, w := float64(got[r*call.out.Cols+c]), float64(want[r*call.out.Cols+c])
			if !in[r] {
				w = 0
			}
			diff, norm = diff+(g-w)*(g-w), norm+w*w
		}
		if !(diff <= 1e-4*norm) {
			t.Fatalf("%+v over pages of %d: row %d (chunk row %v) is off by %g of %g", s, page, r, in[r],
				math.Sqrt(diff), math.Sqrt(norm))
		}
	}
	for _, x := range []tensor.Tensor{cache.K, cache.V, cache.Table, call.q, call.out, call.lam, call.norm.Weight,
		slots, positions, chunkList} {
		if x.Ok() {
			d.Free(x.Buf)
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
		})
	}
}
