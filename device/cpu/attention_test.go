package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// twin is one tensor on the device under test and on the oracle.
type twin struct{ x, y tensor.Tensor }

// attnCase makes twins of strided, NaN-surrounded memory for one geometry.
type attnCase struct {
	cpu *Device
	ref *ref.Device
	rng *rand.Rand
}

func newCase(threads int, p Precision) *attnCase {
	return &attnCase{New(Options{Threads: threads, Precision: p}), ref.New(), rand.New(rand.NewPCG(1, 2))}
}

// eachKind runs f on factors of either kind, and on tensors of either that hold bfloat16 ones.
func eachKind(threads int, f func(c *attnCase, name string)) {
	for _, p := range []Precision{FP32, BF16} {
		for act := tensor.F32; ; act = tensor.BF16 {
			c := newCase(threads, p)
			c.cpu.act = act
			f(c, p.String()+"_"+act.String())
			_ = c.cpu.Close()
			if act == c.cpu.Products() {
				break
			}
		}
	}
}

// act and stat allocate rows × cols with pad unused columns, all NaN.
func (c *attnCase) act(rows, cols, pad int) twin  { return c.make(c.cpu.Types().Act, rows, cols, pad) }
func (c *attnCase) stat(rows, cols, pad int) twin { return c.make(c.cpu.Types().Stat, rows, cols, pad) }

func (c *attnCase) make(dtype tensor.DType, rows, cols, pad int) twin {
	t := twin{device.Empty(c.cpu, dtype, rows, cols+pad), device.Empty(c.ref, tensor.F64, rows, cols)}
	nan := make([]float32, t.x.Len())
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	device.WriteFloats(c.cpu, t.x, nan)
	t.x = t.x.Columns(0, cols)
	return t
}

// random is t filled with normal numbers of the given spread.
func (c *attnCase) random(t twin, spread float64) twin {
	v := make([]float32, t.x.Len())
	for i := range v {
		v[i] = float32(spread * c.rng.NormFloat64())
	}
	device.WriteFloats(c.cpu, t.x, v)
	device.ReadFloats(c.cpu, v, t.x)
	device.WriteFloats(c.ref, t.y, v)
	return t
}

func (c *attnCase) ints(v []int32) twin {
	t := twin{device.Empty(c.cpu, tensor.I32, 1, len(v)), device.Empty(c.ref, tensor.I32, 1, len(v))}
	device.WriteI32(c.cpu, t.x, v)
	device.WriteI32(c.ref, t.y, v)
	return t
}

// starts cuts every sequence into documents of random lengths.
func (c *attnCase) starts(b, t int) twin {
	v := make([]int32, b*t)
	for i := range v {
		if i%t != 0 && c.rng.IntN(60) > 0 {
			v[i] = v[i-1]
		} else {
			v[i] = int32(i % t)
		}
	}
	return c.ints(v)
}

// compare allows for rounding: of sums, and at BF16 of factors. Logits, of magnitude 10 here, then err by a few
// hundredths.
func (c *attnCase) compare(t *testing.T, name string, w twin) {
	t.Helper()
	tol := 3e-6
	if c.cpu.precision == BF16 {
		tol = 0.04
	}
	got, want := make([]float64, w.x.Len()), make([]float64, w.x.Len())
	device.ReadFloats(c.cpu, got, w.x)
	device.ReadFloats(c.ref, want, w.y)
	var norm float64
	for _, x := range want {
		norm = max(norm, math.Abs(x))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol*(1+norm)) {
			t.Errorf("%s[%d,%d] = %g, want %g (largest %g)", name, i/w.x.Cols, i%w.x.Cols, got[i], want[i], norm)
			return
		}
	}
}

// geometry is one case of the differential and, with maps 1, of the plain op.
type geometry struct {
	device.AttnShape
	maps, keys, pad int
	norm, weight    bool
	rowLam, docs    bool
}

func (g geometry) String() string {
	return fmt.Sprintf("%dx%d_h%d_g%d_d%d_%d_maps%d_keys%d_pad%d_norm%t%t_lam%t_docs%t", g.B, g.T, g.Heads,
		g.Groups, g.D, g.DV, g.maps, g.keys, g.pad, g.norm, g.weight, g.rowLam, g.docs)
}

// geometries are those that the conformance cases are too small for: more key tiles than blocks of dQ, and documents
// that end in the middle of everything.
var geometries = []geometry{
	{AttnShape: device.AttnShape{B: 2, T: 1100, Heads: 2, Groups: 1, D: 4, DV: 5}, maps: 1, keys: 1,
		pad: 3, docs: true},
	{AttnShape: device.AttnShape{B: 1, T: 1200, Heads: 1, Groups: 1, D: 4, DV: 8}, maps: 2, keys: 1, rowLam: true,
		docs: true, norm: true, weight: true},
	{AttnShape: device.AttnShape{B: 1, T: 700, Heads: 2, Groups: 1, D: 40, DV: 72}, maps: 2, keys: 1,
		rowLam: true, docs: true},
	{AttnShape: device.AttnShape{B: 2, T: 333, Heads: 2, Groups: 2, D: 64, DV: 64}, maps: 1, keys: 1},
	{AttnShape: device.AttnShape{B: 4, T: 150, Heads: 2, Groups: 1, D: 20, DV: 40}, maps: 2, keys: 2, norm: true,
		weight: true, docs: true},
	{AttnShape: device.AttnShape{B: 3, T: 1030, Heads: 2, Groups: 1, D: 4, DV: 8}, maps: 2, keys: 2, norm: true,
		weight: true, pad: 2},
}

// problem is all tensors of one case.
type problem struct {
	geometry
	q, k, v, lam, start, weight   twin
	out, raw, out2, lse, rstd     twin
	dout, dq, dk, dv, dlam, dnorm twin
}

func (c *attnCase) problem(g geometry) *problem {
	n, p := g.B*g.T, &problem{geometry: g}
	g.Scale = 1 / math.Sqrt(float64(g.D))
	p.geometry = g
	p.q, p.k = c.random(c.act(n, g.Heads*g.maps*g.D, g.pad), 1.5), c.random(c.act(n, g.Groups*g.keys*g.D, g.pad), 1.5)
	p.v, p.dout = c.random(c.act(n, g.Groups*g.DV, g.pad), 1), c.random(c.act(n, g.Heads*g.DV, g.pad), 1)
	p.lam = c.random(c.stat(1, 1, 0), 0.5)
	if g.rowLam {
		p.lam = c.random(c.stat(n, g.Heads, g.pad), 0.5)
	}
	if g.docs {
		p.start = c.starts(g.B, g.T)
	}
	p.out, p.lse = c.act(n, g.Heads*g.DV, g.pad), c.stat(n, g.Heads*g.maps, g.pad)
	if g.maps == 2 {
		p.out2, p.dlam = c.act(n, g.Heads*g.DV, g.pad), c.stat(n, g.Heads, g.pad)
	}
	if g.norm {
		p.raw, p.rstd = c.act(n, g.Heads*g.DV, g.pad), c.stat(n, g.Heads, g.pad)
	}
	if g.weight {
		p.weight, p.dnorm = c.random(c.act(1, g.DV, 0), 1), c.random(c.stat(1, g.DV, 0), 1)
	}
	p.dq, p.dk, p.dv = c.act(n, p.q.x.Cols, g.pad), c.act(n, p.k.x.Cols, g.pad), c.act(n, p.v.x.Cols, g.pad)
	return p
}

// ops are forward and backward on one device; at picks that device's side of a twin.
func (p *problem) ops(d device.Device, at func(twin) tensor.Tensor) (forward, backward func()) {
	norm := device.HeadNorm{On: p.norm, Weight: at(p.weight), Eps: 1e-5, Scale: 0.8}
	if p.maps == 1 {
		a := &device.Attn{AttnShape: p.AttnShape, Norm: norm, Q: at(p.q), K: at(p.k), V: at(p.v), Start: at(p.start),
			Out: at(p.out), Raw: at(p.raw), LSE: at(p.lse), Rstd: at(p.rstd)}
		g := &device.AttnGrad{DOut: at(p.dout), DQ: at(p.dq), DK: at(p.dk), DV: at(p.dv), DNorm: at(p.dnorm)}
		return func() { d.Attention(a) }, func() { d.AttentionBackward(a, g) }
	}
	a := &device.DiffAttn{AttnShape: p.AttnShape, Keys: p.keys, Norm: norm, Q: at(p.q), K: at(p.k), V: at(p.v),
		Lam: at(p.lam), Start: at(p.start), Out: at(p.out), Raw: at(p.raw), Out2: at(p.out2), LSE: at(p.lse),
		Rstd: at(p.rstd)}
	g := &device.DiffAttnGrad{DOut: at(p.dout), DQ: at(p.dq), DK: at(p.dk), DV: at(p.dv), DLam: at(p.dlam),
		DNorm: at(p.dnorm)}
	return func() { d.DiffAttention(a) }, func() { d.DiffAttentionBackward(a, g) }
}

func (p *problem) run(d device.Device, at func(twin) tensor.Tensor) {
	forward, backward := p.ops(d, at)
	forward()
	backward()
}

func onCPU(t twin) tensor.Tensor { return t.x }
func onRef(t twin) tensor.Tensor { return t.y }

func (p *problem) results() map[string]twin {
	all := map[string]twin{"out": p.out, "raw": p.raw, "out2": p.out2, "lse": p.lse, "rstd": p.rstd,
		"dq": p.dq, "dk": p.dk, "dv": p.dv, "dlam": p.dlam, "dnorm": p.dnorm}
	for name, t := range all {
		if !t.x.Ok() {
			delete(all, name)
		}
	}
	return all
}

func TestAttentionLong(t *testing.T) {
	eachKind(2, func(c *attnCase, name string) {
		for _, g := range geometries {
			t.Run(name+"/"+g.String(), func(t *testing.T) {
				p := c.problem(g)
				p.run(c.cpu, onCPU)
				p.run(c.ref, onRef)
				for name, w := range p.results() {
					c.compare(t, name, w)
				}
			})
		}
	})
}

// TestAttentionLongDocuments begins documents at, before and after the edges of tiles and bands of keys, in memory that
// another call has left full.
func TestAttentionLongDocuments(t *testing.T) {
	plain := geometry{AttnShape: device.AttnShape{B: 1, T: 1100, Heads: 1, Groups: 1, D: 4, DV: 4}, maps: 1, keys: 1}
	diff := plain
	diff.maps, diff.keys = 2, 2
	eachKind(2, func(c *attnCase, name string) {
		for _, g := range []geometry{plain, diff} {
			for _, length := range []int{128, 511, 512, 513} { // a key tile, around four of them: a band
				c.problem(g).run(c.cpu, onCPU)
				p := c.problem(g)
				p.start = c.ints(startsOf(g.T, length))
				p.run(c.cpu, onCPU)
				p.run(c.ref, onRef)
				for result, w := range p.results() {
					c.compare(t, fmt.Sprintf("%s, %d maps, documents of %d: %s", name, g.maps, length, result), w)
				}
			}
		}
	})
}

// startsOf are the first positions of documents of one length, by position.
func startsOf(tokens, length int) []int32 {
	starts := make([]int32, tokens)
	for i := range starts {
		starts[i] = int32(i - i%length)
	}
	return starts
}

// TestAttentionChunks asks for the same bits, the norm weight's gradient included, when there is room for one
// sequence at a time, and from five workers as from one, who has groups enough to do each from beginning to end.
func TestAttentionChunks(t *testing.T) {
	eachKind(1, func(one *attnCase, _ string) {
		five := newCase(5, one.cpu.precision)
		five.cpu.act = one.cpu.act
		chunksAlike(t, one, five)
		_ = five.cpu.Close()
	})
}

func chunksAlike(t *testing.T, one, five *attnCase) {
	for _, g := range geometries {
		p, q := one.problem(g), five.problem(g)
		p.run(one.cpu, onCPU)
		five.withBudget(1, func() { q.run(five.cpu, onCPU) })
		want := p.results()
		for name, w := range q.results() {
			if !slices.Equal(one.read(want[name]), five.read(w)) {
				t.Errorf("%v, %v: %s differs between chunks", one.cpu.precision, g, name)
			}
		}
	}
}

// withBudget runs f with less memory for packed operands.
func (c *attnCase) withBudget(n int, f func()) {
	defer func(old int) { c.cpu.attn.Budget = old }(c.cpu.attn.Budget)
	c.cpu.attn.Budget = n
	f()
}

func (c *attnCase) read(w twin) []float32 {
	v := make([]float32, w.x.Len())
	device.ReadFloats(c.cpu, v, w.x)
	return v
}

// TestAttentionEmpty runs no sequence, and sequences of no tokens.
func TestAttentionEmpty(t *testing.T) {
	c := newCase(2, BestPrecision())
	defer c.cpu.Close()
	for _, g := range geometries {
		for _, n := range [][2]int{{0, 5}, {5, 0}} {
			g.B, g.T = n[0], n[1]
			p := c.problem(g)
			before := []float32(nil)
			if g.weight {
				before = c.read(p.dnorm)
			}
			p.run(c.cpu, onCPU)
			if g.weight && !slices.Equal(before, c.read(p.dnorm)) {
				t.Errorf("%v: the norm's gradient changed", g)
			}
		}
	}
}
