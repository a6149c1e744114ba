package devicetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// pages is the layout of a test's cache: which slot and position each row means, and where the pages lie.
type pages struct {
	size  int // positions of a page
	slots int
	per   int // pages of a slot
	slot  []int32
	pos   []int32
}

// prompt is rows 0…n−1 of one slot, as prefill sends them.
func prompt(n, size int) pages {
	p := pages{size: size, slots: 2, per: n/size + 2}
	for i := range n {
		p.slot, p.pos = append(p.slot, 1), append(p.pos, int32(i))
	}
	return p
}

// step is one row for each of the given last positions, slots in falling order.
func step(size int, pos ...int32) pages {
	p := pages{size: size, slots: len(pos) + 1, pos: pos}
	for i, q := range pos {
		p.slot = append(p.slot, int32(len(pos)-i))
		p.per = max(p.per, int(q)/size+1)
	}
	return p
}

func (p pages) rows() int { return (p.slots*p.per + 3) * p.size }

// table is a permutation of the pages: neighbours in a slot lie anywhere in the cache.
func (p pages) table(r *rand.Rand) []int32 {
	t := make([]int32, p.slots*p.per)
	for i, page := range r.Perm(p.slots*p.per + 3)[:len(t)] {
		t[i] = int32(page)
	}
	return t
}

// filled says which rows of the cache hold a position that some row attends to.
func (p pages) filled(table []int32) []bool {
	used := make([]bool, p.rows())
	for i, last := range p.pos {
		for q := range int(last) + 1 {
			used[int(table[int(p.slot[i])*p.per+q/p.size])*p.size+q%p.size] = true
		}
	}
	return used
}

// cacheArgs are the handles of a cache and of the addresses of n rows in it.
type cacheArgs struct{ k, v, table, slot, pos int }

// readable adds a cache of which only the filled rows hold numbers; to look at any other gives NaN.
func (p pages) readable(c *Case, kw, vw int) (a cacheArgs) {
	table := p.table(c.random())
	used := p.filled(table)
	sparse := func(cols int) option {
		return func(a *arg) {
			a.fill = func(r *rand.Rand, i int) float64 {
				if used[i/cols] {
					return r.NormFloat64()
				}
				return math.NaN()
			}
		}
	}
	a.k, a.v = c.in("K", cached, p.rows(), kw, sparse(kw)), c.in("V", cached, p.rows(), vw, sparse(vw))
	p.address(c, &a, table)
	return a
}

func (p pages) address(c *Case, a *cacheArgs, table []int32) {
	a.table = c.ints("table", p.slots, p.per, table, anyRows, anyCols)
	a.slot, a.pos = c.ints("slot", 1, len(p.pos), p.slot, perCol(1)), c.ints("pos", 1, len(p.pos), p.pos, perCol(1))
}

func (a cacheArgs) cache(x []tensor.Tensor, size int) *device.Cache {
	return &device.Cache{K: x[a.k], V: x[a.v], Table: x[a.table], PageSize: size}
}

func cacheWriteCase(p pages, kw, vw int) *Case {
	c := newCase("write,page=%d,N=%d,K=%d,V=%d", p.size, len(p.pos), kw, vw)
	c.touch = 2 * len(p.pos) * (kw + vw)
	a := cacheArgs{k: c.acc("K", cached, p.rows(), kw, exact), v: c.acc("V", cached, p.rows(), vw, exact)}
	p.address(c, &a, p.table(c.random()))
	k, v := c.in("k", act, len(p.pos), kw, perRow(1)), c.in("v", act, len(p.pos), vw, perRow(1))
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		cache := a.cache(x, p.size)
		return func(d device.Device) { d.CacheWrite(cache, x[k], x[v], x[a.slot], x[a.pos]) }
	}
	return c
}

// cachedCase is AttentionCached, or DiffAttentionCached where the spec has key heads.
func cachedCase(s attnSpec, p pages) *Case {
	n := len(p.pos)
	c := newCase("attend,page=%d,N=%d,last=%d,%v", p.size, n, p.pos[n-1], s)
	kh, qh := s.g*max(1, s.keys), s.h
	if s.keys > 0 {
		qh *= 2
	}
	var a attnArgs
	a.q = c.in("q", act, n, qh*s.d, perRow(1))
	if s.norm == "affine" {
		a.weight = c.in("norm", act, 1, s.dv, normal(1, 0.3))
	}
	a.out = c.out("out", act, n, s.h*s.dv, loose, perRow(1))
	if s.norm == "plain" { // scratch, absent with the other norm
		a.raw, a.rstd = c.add("raw", scratch, act, n, s.h*s.dv, []option{perRow(1)}),
			c.add("rstd", scratch, stat, n, s.h, []option{perRow(1)})
	}
	if s.keys > 0 && s.scalar {
		a.lam = c.in("lam", stat, 1, 1, uniform(0.1, 0.9))
	} else if s.keys > 0 {
		a.lam = c.in("lam", stat, n, s.h, uniform(0.1, 0.9), perRow(1))
	}
	where := p.readable(c, kh*s.d, s.g*s.dv)
	c.unit = cached
	for _, last := range p.pos {
		c.touch += (int(last) + 1) * (kh*s.d + s.g*s.dv)
	}
	c.bind = func(x []tensor.Tensor) func(device.Device) { return s.cached(x, a, where, p.size) }
	return c
}

func (s attnSpec) cached(x []tensor.Tensor, a attnArgs, w cacheArgs, size int) func(device.Device) {
	cache, slot, pos := w.cache(x, size), x[w.slot], x[w.pos]
	s.t = 1
	if s.keys > 0 {
		at := s.diff(x, a)
		return func(d device.Device) { d.DiffAttentionCached(at, cache, slot, pos) }
	}
	at := s.attn(x, a)
	return func(d device.Device) { d.AttentionCached(at, cache, slot, pos) }
}

func cacheCases() []*Case {
	return []*Case{
		cacheWriteCase(step(4, 3), 8, 16),
		cacheWriteCase(step(1, 0, 5, 2), 7, 13),
		cacheWriteCase(prompt(37, 16), 48, 24),
		cachedCase(attnSpec{h: 1, g: 1, d: 8, dv: 8, norm: "off"}, step(4, 0)),
		cachedCase(attnSpec{h: 4, g: 2, d: 24, dv: 16, norm: "plain"}, step(16, 15, 0, 16, 64)),
		cachedCase(attnSpec{h: 2, g: 1, d: 64, dv: 64, norm: "affine"}, step(16, 200, 65, 1)),
		cachedCase(attnSpec{h: 3, g: 3, d: 40, dv: 40, norm: "off"}, prompt(39, 8)),
		cachedCase(attnSpec{h: 1, g: 1, d: 128, dv: 128, norm: "off"}, prompt(130, 32)),
		cachedCase(attnSpec{h: 1, g: 1, d: 8, dv: 16, norm: "off", keys: 2, scalar: true}, step(4, 0, 9, 3)),
		cachedCase(attnSpec{h: 4, g: 2, d: 24, dv: 48, norm: "plain", keys: 2}, step(16, 15, 0, 16, 64)),
		cachedCase(attnSpec{h: 2, g: 1, d: 64, dv: 128, norm: "affine", keys: 2, scalar: true}, step(16, 200, 65, 1)),
		cachedCase(attnSpec{h: 4, g: 2, d: 40, dv: 40, norm: "off", keys: 1}, prompt(39, 8)),
		cachedCase(attnSpec{h: 2, g: 1, d: 96, dv: 96, norm: "affine", keys: 1, scalar: true}, prompt(130, 32)),
	}
}

// cacheExtra: rows written to a cache and attended to there give what attention over the whole sequences gives.
func cacheExtra(t *testing.T, d device.Device) {
	for _, s := range []attnSpec{
		{b: 2, t: 37, h: 4, g: 2, d: 16, dv: 24, norm: "affine"},
		{b: 2, t: 37, h: 4, g: 2, d: 16, dv: 32, norm: "affine", keys: 2},
		{b: 2, t: 37, h: 2, g: 1, d: 40, dv: 40, norm: "off", keys: 1, scalar: true},
	} {
		full := attentionCase(s)
		if s.keys > 0 {
			full = diffattentionCase(s)
		}
		v := full.values(d.Types())
		p := full.place(d, v, false).call(t)
		through(t, d, s, full, p)
		p.free()
	}
}

// through sends a placed forward case through a cache of permuted pages, and compares.
func through(t *testing.T, d device.Device, s attnSpec, full *Case, p *placed) {
	n, where := s.b*s.t, pages{size: 8, slots: s.b + 1, per: s.t/8 + 1}
	for i := range n {
		where.slot, where.pos = append(where.slot, int32(s.b-i/s.t)), append(where.pos, int32(i%s.t))
	}
	x := map[string]tensor.Tensor{}
	for i, a := range full.args {
		x[a.name] = p.x[i]
	}
	ids := func(rows, cols int, v []int32) tensor.Tensor {
		t := device.Empty(d, tensor.I32, rows, cols)
		device.WriteI32(d, t, v)
		return t
	}
	act, kv := d.Types().Act, d.Types().Cache
	cache := &device.Cache{K: device.Empty(d, kv, where.rows(), x["k"].Cols),
		V:     device.Empty(d, kv, where.rows(), x["v"].Cols),
		Table: ids(where.slots, where.per, where.table(full.random())), PageSize: where.size}
	slot, pos, out := ids(1, n, where.slot), ids(1, n, where.pos), device.Empty(d, act, n, s.h*s.dv)
	d.CacheWrite(cache, x["k"], x["v"], slot, pos)
	if s.keys > 0 {
		d.DiffAttentionCached(&device.DiffAttn{AttnShape: s.shape(0), Keys: s.keys, Norm: s.headNorm(x["norm"]),
			Q: x["q"], Lam: x["lam"], Out: out}, cache, slot, pos)
	} else {
		d.AttentionCached(&device.Attn{AttnShape: s.shape(0), Norm: s.headNorm(x["norm"]), Q: x["q"], Out: out},
			cache, slot, pos)
	}
	got, want := make([]float64, out.Len()), make([]float64, out.Len())
	device.ReadFloats(d, got, out)
	device.ReadFloats(d, want, x["out"])
	close(t, "cached", got, want, out.Cols, full.tolerance(&arg{product: true, coarse: d.Types().Cache}, d), 0)
	for _, b := range []tensor.Tensor{cache.K, cache.V, cache.Table, slot, pos, out} {
		d.Free(b.Buf)
	}
}

func cacheBench() []*Case {
	return []*Case{
		cacheWriteCase(step(16, 511, 511, 511, 511), 512, 512),
		cachedCase(attnSpec{h: 8, g: 8, d: 64, dv: 64, norm: "off"}, step(16, 511, 511, 511, 511)),
		cachedCase(attnSpec{h: 4, g: 4, d: 64, dv: 128, norm: "affine", keys: 2, scalar: true},
			step(16, 511, 511, 511, 511)),
		cachedCase(attnSpec{h: 8, g: 4, d: 64, dv: 64, norm: "off", keys: 1}, step(16, 511, 511, 511, 511)),
	}
}
