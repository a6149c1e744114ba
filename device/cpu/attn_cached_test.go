package cpu

import (
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// slotRows is the number of positions of each of the two slots of a test's cache.
const slotRows = 1120

// kv is the content of both slots, position by position.
type kv struct{ k, v twin }

func (c *attnCase) kv(g geometry) kv {
	return kv{c.random(c.act(2*slotRows, g.Groups*g.keys*g.D, 0), 1.5),
		c.random(c.act(2*slotRows, g.Groups*g.DV, 0), 1)}
}

// pages writes the content into a cache of pages of the given size: in order, or in any.
func (c *attnCase) pages(x kv, size int, mixed bool) *device.Cache {
	n := 2 * slotRows / size
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	if mixed {
		c.rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	cache := &device.Cache{K: device.Empty(c.cpu, c.cpu.Types().Cache, n*size, x.k.x.Cols),
		V: device.Empty(c.cpu, c.cpu.Types().Cache, n*size, x.v.x.Cols), Table: c.ints(order).x.Reshape(2, n/2),
		PageSize: size}
	slot, pos := make([]int32, 2*slotRows), make([]int32, 2*slotRows)
	for i := range slot {
		slot[i], pos[i] = int32(i/slotRows), int32(i%slotRows)
	}
	c.cpu.CacheWrite(cache, x.k.x, x.v.x, c.ints(slot).x, c.ints(pos).x)
	return cache
}

// attend runs the cached op of either kind on rows [from,to) of p.
func (p *problem) attend(d device.Device, at func(twin) tensor.Tensor, c *device.Cache, slot, pos tensor.Tensor,
	from, to int) {
	norm := device.HeadNorm{On: p.norm, Weight: at(p.weight), Eps: 1e-5, Scale: 0.8}
	q, out := at(p.q).RowRange(from, to), at(p.out).RowRange(from, to)
	slot, pos = slot.Columns(from, to), pos.Columns(from, to)
	if p.maps == 1 {
		d.AttentionCached(&device.Attn{AttnShape: p.AttnShape, Norm: norm, Q: q, Out: out}, c, slot, pos)
		return
	}
	lam := at(p.lam)
	if lam.Rows > 1 {
		lam = lam.RowRange(from, to)
	}
	d.DiffAttentionCached(&device.DiffAttn{AttnShape: p.AttnShape, Keys: p.keys, Norm: norm, Q: q, Lam: lam, Out: out},
		c, slot, pos)
}

var cachedGeometries = []geometry{
	{AttnShape: device.AttnShape{B: 1, T: 50, Heads: 4, Groups: 2, D: 32, DV: 32}, maps: 1, keys: 1, pad: 3},
	{AttnShape: device.AttnShape{B: 1, T: 50, Heads: 4, Groups: 2, D: 16, DV: 40}, maps: 2, keys: 2, norm: true,
		weight: true},
	{AttnShape: device.AttnShape{B: 1, T: 50, Heads: 4, Groups: 1, D: 24, DV: 48}, maps: 2, keys: 1,
		rowLam: true, norm: true},
	{AttnShape: device.AttnShape{B: 1, T: 50, Heads: 3, Groups: 3, D: 64, DV: 128}, maps: 2, keys: 2,
		norm: true, pad: 1},
	{AttnShape: device.AttnShape{B: 1, T: 50, Heads: 4, Groups: 2, D: 64, DV: 64}, maps: 2, keys: 1, rowLam: true},
}

// TestCachedPages asks for the same bits from pages of any size in any order, in one batch (two rows of decoding and a
// prompt that crosses a stretch), in two chunks, and row by row.
func TestCachedPages(t *testing.T) {
	eachKind(3, func(c *attnCase, _ string) { pagesAlike(t, c) })
}

func pagesAlike(t *testing.T, c *attnCase) {
	slots, places := make([]int32, 50), make([]int32, 50)
	for i := range slots {
		slots[i], places[i] = 1, int32(490+i)
	}
	slots[0], places[0], places[1] = 0, slotRows-1, 3
	slot, pos := c.ints(slots).x, c.ints(places).x
	for _, g := range cachedGeometries {
		p, x := c.problem(g), c.kv(g)
		var want []float32
		for i, cache := range []*device.Cache{c.pages(x, slotRows, false), c.pages(x, 16, false), c.pages(x, 16, true),
			c.pages(x, 5, true)} {
			p.attend(c.cpu, onCPU, cache, slot, pos, 0, 50)
			if i == 0 {
				want = c.read(p.out)
			} else if !slices.Equal(want, c.read(p.out)) {
				t.Errorf("%v, %v: bits depend on pages of %d", c.cpu.precision, g, cache.PageSize)
			}
			c.withBudget(1, func() { p.attend(c.cpu, onCPU, cache, slot, pos, 0, 50) })
			if !slices.Equal(want, c.read(p.out)) {
				t.Errorf("%v, %v: bits depend on the room", c.cpu.precision, g)
			}
			for _, rows := range []int{1, 2} {
				for n := 0; n < 50; n += rows {
					p.attend(c.cpu, onCPU, cache, slot, pos, n, n+rows)
				}
				if !slices.Equal(want, c.read(p.out)) {
					t.Errorf("%v, %v: %d rows and all together differ in pages of %d", c.cpu.precision, g, rows,
						cache.PageSize)
				}
			}
		}
		if err := c.cpu.Sync(); err != nil {
			t.Error(err)
		}
	}
}

// TestCacheFault asks for a fault, not a crash, when a position has no page.
func TestCacheFault(t *testing.T) {
	c := newCase(1, FP32)
	defer c.cpu.Close()
	g := cachedGeometries[0]
	p, x := c.problem(g), c.pages(c.kv(g), 16, true)
	for _, bad := range []struct{ slot, pos int32 }{{2, 0}, {-1, 0}, {0, slotRows}, {1, -1}} {
		slot, pos := c.ints([]int32{bad.slot}).x, c.ints([]int32{bad.pos}).x
		p.attend(c.cpu, onCPU, x, slot, pos, 0, 1)
		if c.cpu.Sync() == nil {
			t.Errorf("no fault at slot %d position %d", bad.slot, bad.pos)
		}
		c.cpu.CacheWrite(x, device.Empty(c.cpu, tensor.F32, 1, x.K.Cols),
			device.Empty(c.cpu, tensor.F32, 1, x.V.Cols), slot, pos)
		if c.cpu.Sync() == nil {
			t.Errorf("no fault writing at slot %d position %d", bad.slot, bad.pos)
		}
	}
	tensor.Host[int32](x.Table)[3] = 1000 // a page that is not there, in the middle of slot 0
	slot, pos := c.ints([]int32{0, 0}).x, c.ints([]int32{2*16 + 5, 5*16 + 1}).x
	p.attend(c.cpu, onCPU, x, slot, pos, 0, 1)
	if err := c.cpu.Sync(); err != nil {
		t.Errorf("rows before the broken page: %v", err)
	}
	p.attend(c.cpu, onCPU, x, slot, pos, 0, 2)
	if c.cpu.Sync() == nil {
		t.Error("no fault behind a broken page")
	}
}
