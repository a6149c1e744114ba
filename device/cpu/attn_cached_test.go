package cpu

import (
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// pages is a cache of two slots whose pages lie in mixed order, with room for 320 positions each.
const pageSize, slotPages = 16, 20

func (c *attnCase) pages(g geometry) (x, y *device.Cache) {
	rows := 2 * slotPages * pageSize
	k, v := c.random(rows, g.Groups*g.keys*g.D, g.pad, 1.5), c.random(rows, g.Groups*g.DV, g.pad, 1)
	order := make([]int32, 2*slotPages)
	for i, p := range c.rng.Perm(len(order)) {
		order[i] = int32(p)
	}
	t := c.ints(order)
	x = &device.Cache{K: k.x, V: v.x, Table: t.x.Reshape(2, slotPages), PageSize: pageSize}
	y = &device.Cache{K: k.y, V: v.y, Table: t.y.Reshape(2, slotPages), PageSize: pageSize}
	return x, y
}

// attend runs the cached op of either kind on rows [from,to) of p.
func (p *problem) attend(d device.Device, at func(twin) tensor.Tensor, c *device.Cache, slot, pos tensor.Tensor, from, to int) {
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
	d.DiffAttentionCached(&device.DiffAttn{AttnShape: p.AttnShape, Keys: p.keys, Norm: norm, Q: q, Lam: lam, Out: out}, c, slot, pos)
}

var cachedGeometries = []geometry{
	{AttnShape: device.AttnShape{B: 1, T: 9, Heads: 4, Groups: 2, D: 32, DV: 32}, maps: 1, keys: 1, pad: 3},
	{AttnShape: device.AttnShape{B: 1, T: 9, Heads: 4, Groups: 2, D: 16, DV: 40}, maps: 2, keys: 2, norm: true, weight: true},
	{AttnShape: device.AttnShape{B: 1, T: 9, Heads: 4, Groups: 1, D: 24, DV: 48}, maps: 2, keys: 1, rowLam: true, norm: true},
}

// TestCachedRows compares with the oracle and asks for the same bits from rows alone and in a batch, among them a
// piece of a prompt (rows 3…8).
func TestCachedRows(t *testing.T) {
	c := newCase(2)
	defer c.cpu.Close()
	for _, g := range cachedGeometries {
		p := c.problem(g)
		x, y := c.pages(g)
		slot := c.ints([]int32{0, 1, 0, 1, 1, 1, 1, 1, 1})
		pos := c.ints([]int32{0, 17, 319, 125, 126, 127, 128, 129, 130})
		p.attend(c.cpu, onCPU, x, slot.x, pos.x, 0, 9)
		p.attend(c.ref, onRef, y, slot.y, pos.y, 0, 9)
		c.compare(t, g.String(), p.out)
		batch := make([]float32, p.out.x.Len())
		device.ReadFloats(c.cpu, batch, p.out.x)
		alone := make([]float32, p.out.x.Len())
		for n := range 9 {
			p.attend(c.cpu, onCPU, x, slot.x, pos.x, n, n+1)
		}
		device.ReadFloats(c.cpu, alone, p.out.x)
		if !slices.Equal(batch, alone) {
			t.Errorf("%v: rows alone and in a batch differ", g)
		}
		if err := c.cpu.Sync(); err != nil {
			t.Error(err)
		}
	}
}

// TestCacheFault asks for a fault, not a crash, when a position has no page.
func TestCacheFault(t *testing.T) {
	c := newCase(1)
	defer c.cpu.Close()
	g := cachedGeometries[0]
	p := c.problem(g)
	x, _ := c.pages(g)
	for _, bad := range []struct{ slot, pos int32 }{{2, 0}, {-1, 0}, {0, slotPages * pageSize}, {1, -1}} {
		slot, pos := c.ints([]int32{bad.slot}), c.ints([]int32{bad.pos})
		p.attend(c.cpu, onCPU, x, slot.x, pos.x, 0, 1)
		if c.cpu.Sync() == nil {
			t.Errorf("no fault at slot %d position %d", bad.slot, bad.pos)
		}
		c.cpu.CacheWrite(x, device.Empty(c.cpu, tensor.F32, 1, x.K.Cols), device.Empty(c.cpu, tensor.F32, 1, x.V.Cols), slot.x, pos.x)
		if c.cpu.Sync() == nil {
			t.Errorf("no fault writing at slot %d position %d", bad.slot, bad.pos)
		}
	}
	tensor.Host[int32](x.Table)[3] = 1000 // a page that is not there, in the middle of slot 0
	slot, pos := c.ints([]int32{0, 0}), c.ints([]int32{2*pageSize + 5, 5*pageSize + 1})
	p.attend(c.cpu, onCPU, x, slot.x, pos.x, 0, 1)
	if err := c.cpu.Sync(); err != nil {
		t.Errorf("rows before the broken page: %v", err)
	}
	p.attend(c.cpu, onCPU, x, slot.x, pos.x, 0, 2)
	if c.cpu.Sync() == nil {
		t.Error("no fault behind a broken page")
	}
}

// TestCacheWrite writes a prompt and reads it back from its pages.
func TestCacheWrite(t *testing.T) {
	c := newCase(2)
	defer c.cpu.Close()
	g := cachedGeometries[0]
	x, y := c.pages(g)
	k, v := c.random(40, x.K.Cols, 2, 1), c.random(40, x.V.Cols, 1, 1)
	var slots, places []int32
	for i := range 40 {
		slots, places = append(slots, int32(i%2)), append(places, int32(7+3*i))
	}
	slot, pos := c.ints(slots), c.ints(places)
	c.cpu.CacheWrite(x, k.x, v.x, slot.x, pos.x)
	c.ref.CacheWrite(y, k.y, v.y, slot.y, pos.y)
	c.compare(t, "keys", twin{x.K, y.K})
	c.compare(t, "values", twin{x.V, y.V})
}

func TestProbs(t *testing.T) {
	c := newCase(2)
	defer c.cpu.Close()
	q, k := c.random(2*50, 3*12, 4, 2), c.random(2*50, 2*12, 1, 2)
	for _, logits := range []bool{false, true} {
		p := device.Probs{T: 50, D: 12, Seq: 1, Row: 13, QHead: 2, KHead: 1, Scale: 1 / math.Sqrt(12), Logits: logits}
		out := c.make(30, 50, 2)
		c.cpu.AttentionProbs(out.x, q.x, k.x, p)
		c.ref.AttentionProbs(out.y, q.y, k.y, p)
		c.compare(t, "probs", out)
	}
}
