package bench

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tensor"
)

// still is a device that computes nothing and remembers its last call; its clock says ms for any work.
type still struct {
	device.Device
	ms   float64
	name string
	args []any
	held int
}

func (d *still) note(name string, args ...any) { d.name, d.args = name, args }

func (d *still) Name() string                { return "still" }
func (d *still) Sync() error                 { return nil }
func (d *still) Write(tensor.Tensor, []byte) {}
func (d *still) Types() device.Types {
	return device.Types{Act: tensor.F32, Stat: tensor.F32, Cache: tensor.F32}
}
func (d *still) Time(f func()) (float64, error)   { f(); return d.ms, nil }
func (d *still) Alloc(n int) *tensor.Buffer       { d.held += n; return &tensor.Buffer{Size: n} }
func (d *still) Free(b *tensor.Buffer)            { d.held -= b.Size }
func (d *still) Read(_ []byte, x tensor.Tensor)   { d.note("Read", x) }
func (d *still) Zero(t tensor.Tensor)             { d.note("Zero", t) }
func (d *still) Copy(a, b tensor.Tensor)          { d.note("Copy", a, b) }
func (d *still) Add(a, b tensor.Tensor)           { d.note("Add", a, b) }
func (d *still) AddBias(a, b tensor.Tensor)       { d.note("AddBias", a, b) }
func (d *still) BiasBackward(a, b tensor.Tensor)  { d.note("BiasBackward", a, b) }
func (d *still) Embed(a, b, c tensor.Tensor)      { d.note("Embed", a, b, c) }
func (d *still) SwiGLU(a, b tensor.Tensor)        { d.note("SwiGLU", a, b) }
func (d *still) Sigmoid(a, b tensor.Tensor)       { d.note("Sigmoid", a, b) }
func (d *still) SumSquares(a, b tensor.Tensor)    { d.note("SumSquares", a, b) }
func (d *still) ArgMax(a, b tensor.Tensor)        { d.note("ArgMax", a, b) }
func (d *still) Classify(c *device.Classifier)    { d.note("Classify", *c) }
func (d *still) AdamW(a *device.AdamW)            { d.note("AdamW", *a) }
func (d *still) Attention(a *device.Attn)         { d.note("Attention", *a) }
func (d *still) DiffAttention(a *device.DiffAttn) { d.note("DiffAttention", *a) }
func (d *still) ChunkRows() int                   { return 7 }
func (d *still) EmbedBackward(a, b, c tensor.Tensor) {
	d.note("EmbedBackward", a, b, c)
}
func (d *still) SigmoidBackward(a, b, c tensor.Tensor) { d.note("SigmoidBackward", a, b, c) }
func (d *still) SwiGLUBackward(a, b, c, e tensor.Tensor) {
	d.note("SwiGLUBackward", a, b, c, e)
}
func (d *still) MatMul(a, b, c tensor.Tensor, o device.MatMul) { d.note("MatMul", a, b, c, o) }
func (d *still) RMSNorm(a, b, c, e, f, g tensor.Tensor, eps float64) {
	d.note("RMSNorm", a, b, c, e, f, g, eps)
}
func (d *still) RMSNormBackward(a, b, c, e, f, g tensor.Tensor) {
	d.note("RMSNormBackward", a, b, c, e, f, g)
}
func (d *still) Rope(a, b, c tensor.Tensor, r device.Rope) { d.note("Rope", a, b, c, r) }
func (d *still) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	d.note("AttentionBackward", *a, *g)
}
func (d *still) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	d.note("DiffAttentionBackward", *a, *g)
}
func (d *still) AttentionCached(a *device.Attn, c *device.Cache, s, p tensor.Tensor) {
	d.note("AttentionCached", *a, *c, s, p)
}
func (d *still) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, s, p tensor.Tensor) {
	d.note("DiffAttentionCached", *a, *c, s, p)
}
func (d *still) SubtractHeads(a, b, c tensor.Tensor, n int) { d.note("SubtractHeads", a, b, c, n) }
func (d *still) SubtractHeadsBackward(a, b, c, e, f tensor.Tensor, n int) {
	d.note("SubtractHeadsBackward", a, b, c, e, f, n)
}
func (d *still) CacheWrite(c *device.Cache, k, v, s, p tensor.Tensor) {
	d.note("CacheWrite", *c, k, v, s, p)
}
func (d *still) AttentionProbs(o, q, k tensor.Tensor, p device.Probs) {
	d.note("AttentionProbs", o, q, k, p)
}
func (d *still) Lambda(l tensor.Tensor, v device.LambdaVecs, x float64) { d.note("Lambda", l, v, x) }
func (d *still) LambdaBackward(g device.LambdaVecs, l tensor.Tensor, v device.LambdaVecs) {
	d.note("LambdaBackward", g, l, v)
}
func (d *still) AttentionChunks(a *device.Attn, c *device.Cache, x tensor.Tensor, n int) bool {
	d.note("AttentionChunks", *a, *c, x, n)
	return n == 3
}
func (d *still) DiffAttentionChunks(a *device.DiffAttn, c *device.Cache, x tensor.Tensor, n int) bool {
	d.note("DiffAttentionChunks", *a, *c, x, n)
	return n == 3
}

// of is a tensor of n bytes. Operands of 1, 10, 100 … bytes show in the sum which were counted, and how often.
func of(n int) tensor.Tensor { return matrix(1, n) }

func matrix(rows, cols int) tensor.Tensor {
	return tensor.Tensor{Buf: &tensor.Buffer{}, Type: tensor.I8, Rows: rows, Cols: cols, Ld: cols}
}

// opCall is a call of an op, and the bytes and FLOPs that it stands for.
type opCall struct {
	name         string
	call         func(d device.Device)
	bytes, flops float64
}

// plainCalls are those of ops that are not of attention.
func plainCalls() []opCall {
	full := &device.Classifier{X: matrix(2, 3), W: matrix(5, 3), Loss: of(100), DX: of(1000), DW: of(1e4)}
	bare := &device.Classifier{X: matrix(2, 3), W: matrix(5, 3), Loss: of(100)}
	return []opCall{
		{"Read", func(d device.Device) { d.Read(nil, of(3)) }, 3, 0},
		{"Zero", func(d device.Device) { d.Zero(of(3)) }, 3, 0},
		{"Copy", func(d device.Device) { d.Copy(of(1), of(10)) }, 11, 0},
		{"Add", func(d device.Device) { d.Add(of(1), of(10)) }, 11, 0},
		{"AddBias", func(d device.Device) { d.AddBias(of(1), of(10)) }, 11, 0},
		{"BiasBackward", func(d device.Device) { d.BiasBackward(of(1), of(10)) }, 11, 0},
		{"Embed", func(d device.Device) { d.Embed(of(1), of(10), of(100)) }, 102, 0},
		{"EmbedBackward", func(d device.Device) { d.EmbedBackward(of(1), of(10), of(100)) }, 120, 0},
		{"MatMul", func(d device.Device) {
			d.MatMul(matrix(2, 7), matrix(3, 2), matrix(3, 7), device.MatMul{TransA: true})
		}, 14 + 6 + 21, 2 * 2 * 3 * 7},
		{"RMSNorm", func(d device.Device) { d.RMSNorm(of(1), of(10), of(100), of(1000), of(1e4), of(1e5), 0.5) },
			111111, 0},
		{"RMSNormBackward", func(d device.Device) {
			d.RMSNormBackward(of(1), of(10), of(100), of(1000), of(1e4), of(1e5))
		}, 111112, 0},
		{"Rope", func(d device.Device) { d.Rope(of(1), of(10), of(100), device.Rope{}) }, 102, 0},
		{"SwiGLU", func(d device.Device) { d.SwiGLU(of(1), of(10)) }, 11, 0},
		{"SwiGLUBackward", func(d device.Device) { d.SwiGLUBackward(of(1), of(10), of(100), of(1000)) }, 1111, 0},
		{"Sigmoid", func(d device.Device) { d.Sigmoid(of(1), of(10)) }, 11, 0},
		{"SigmoidBackward", func(d device.Device) { d.SigmoidBackward(of(1), of(10), of(100)) }, 111, 0},
		{"Classify", func(d device.Device) { d.Classify(full) }, 6 + 15 + 11100, 3 * 60},
		{"Classify", func(d device.Device) { d.Classify(bare) }, 6 + 15 + 100, 60},
		{"SumSquares", func(d device.Device) { d.SumSquares(of(1), of(10)) }, 10, 0},
		{"AdamW", func(d device.Device) {
			d.AdamW(&device.AdamW{W: of(1), Master: of(10), M: of(100), V: of(1000), G: of(1e4)})
		}, 1 + 20 + 200 + 2000 + 1e4, 0},
		{"ArgMax", func(d device.Device) { d.ArgMax(of(1), of(10)) }, 10, 0},
	}
}

// attentionCalls are those of attention, its heads, its λ and its cache.
func attentionCalls() []opCall {
	shape := device.AttnShape{B: 1, T: 1, Heads: 1, D: 1, DV: 1}
	a := &device.Attn{AttnShape: shape, Q: of(1), K: of(10), V: of(100), Out: of(1000), Raw: of(1e4), LSE: of(1e5)}
	g := &device.AttnGrad{DOut: of(1e6), DQ: of(1e7), DK: of(1e8), DV: of(1e9)}
	x := &device.DiffAttn{AttnShape: shape, Q: of(1), K: of(10), V: of(100), Out: of(1000), Raw: of(1e4), LSE: of(1e5),
		Out2: of(1e6)}
	h := &device.DiffAttnGrad{DOut: of(1e7), DQ: of(1e8), DK: of(1e9), DV: of(1e10), DLam: of(1e11)}
	vecs := device.LambdaVecs{Q1: of(1), K1: of(10), Q2: of(100), K2: of(1000)}
	none := &device.Cache{}
	return []opCall{
		{"Attention", func(d device.Device) { d.Attention(a) }, 111111, 4},
		{"AttentionBackward", func(d device.Device) { d.AttentionBackward(a, g) }, 1111101111, 10},
		{"AttentionCached", func(d device.Device) { d.AttentionCached(a, none, of(7), of(70)) }, 1001, 0},
		{"DiffAttention", func(d device.Device) { d.DiffAttention(x) }, 1111111, 8},
		{"DiffAttentionBackward", func(d device.Device) { d.DiffAttentionBackward(x, h) }, 111111101111, 16},
		{"DiffAttentionCached", func(d device.Device) { d.DiffAttentionCached(x, none, of(7), of(70)) }, 1001, 0},
		{"SubtractHeads", func(d device.Device) { d.SubtractHeads(of(1), of(10), of(100), 5) }, 111, 0},
		{"SubtractHeadsBackward", func(d device.Device) {
			d.SubtractHeadsBackward(of(1), of(10), of(100), of(2000), of(1e4), 5)
		}, 11111, 0},
		{"CacheWrite", func(d device.Device) { d.CacheWrite(none, of(1), of(10), of(100), of(1000)) }, 22, 0},
		{"AttentionProbs", func(d device.Device) { d.AttentionProbs(of(1), of(10), of(100), device.Probs{}) }, 1, 0},
		{"Lambda", func(d device.Device) { d.Lambda(of(1e4), vecs, 0.2) }, 1111, 0},
		{"LambdaBackward", func(d device.Device) { d.LambdaBackward(vecs, of(1e4), vecs) }, 1e4, 0},
		{"AttentionChunks", func(d device.Device) { d.(device.Pager).AttentionChunks(a, none, of(7), 3) }, 1001, 0},
		{"DiffAttentionChunks", func(d device.Device) { d.(device.Pager).DiffAttentionChunks(x, none, of(7), 3) }, 1001,
			0},
	}
}

// Every op reaches the device as it was called, under its own name, with the bytes of what it must read and write: what
// it only looks rows up in, and the cache, do not count, and what it updates counts twice.
func TestBytesOfOps(t *testing.T) {
	for _, c := range slices.Concat(plainCalls(), attentionCalls()) {
		d := &still{ms: 250}
		c.call(d)
		want := slices.Clone(d.args)
		o := NewOps(d)
		d.note("")
		c.call(o.chunked())
		if d.name != c.name || !sameArgs(d.args, want) {
			t.Errorf("%s became %s of %v", c.name, d.name, d.args)
		}
		list := o.Times(1)
		if len(list) != 1 || list[0].Bytes != c.bytes || list[0].FLOPs != c.flops || list[0].Calls != 1 ||
			list[0].Seconds != 0.25 {
			t.Errorf("%s: %+v, want %g bytes and %g FLOPs", c.name, list, c.bytes, c.flops)
		} else if name := list[0].Op; name != c.name && name != "MatMul dW=dyᵀ·x" {
			t.Errorf("%s is listed as %s", c.name, name)
		}
	}
}

// sameArgs compares arguments by value: tensors by their shape.
func sameArgs(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return reflect.DeepEqual(x, y) })
}

// A device that computes chunks does so below Ops too, and its answer is passed on.
func TestChunksOfOps(t *testing.T) {
	d := &still{}
	p := NewOps(d).chunked().(device.Pager)
	a, x, c := &device.Attn{}, &device.DiffAttn{}, &device.Cache{}
	if p.ChunkRows() != 7 || !p.AttentionChunks(a, c, of(1), 3) || p.AttentionChunks(a, c, of(1), 2) ||
		!p.DiffAttentionChunks(x, c, of(1), 3) || p.DiffAttentionChunks(x, c, of(1), 2) {
		t.Error("the answers are not the device's")
	}
	only := NewOps(struct {
		device.Device
		device.Chunker
	}{d, d}).chunked()
	if ch, ok := only.(device.Chunker); !ok || ch.ChunkRows() != 7 {
		t.Errorf("%T has no chunks", only)
	}
	if _, ok := only.(device.Pager); ok {
		t.Error("a device without pages has some")
	}
	if _, ok := NewOps(open(t).Device).chunked().(device.Chunker); ok != isChunker(open(t).Device) {
		t.Errorf("chunks: %v", ok)
	}
}

// reading is still with a cache of bytes.
type reading struct{ *still }

func (d reading) CacheRead(k, v tensor.Tensor, c *device.Cache, ids tensor.Tensor) {
	d.note("CacheRead", k, v, *c, ids)
}

// A device that reads a cache of bytes does so below Ops too; rows of another's cache are embedded.
func TestCacheReadOfOps(t *testing.T) {
	d, c := &still{}, &device.Cache{K: of(1), V: of(2)}
	read := func(d device.Device) { NewOps(d).chunked().(device.CacheReader).CacheRead(of(3), of(4), c, of(5)) }
	if read(reading{d}); d.name != "CacheRead" || !sameArgs(d.args, []any{of(3), of(4), *c, of(5)}) {
		t.Errorf("%s of %v", d.name, d.args)
	}
	if read(d); d.name != "Embed" || !sameArgs(d.args, []any{of(4), of(2), of(5)}) {
		t.Errorf("without bytes: %s of %v", d.name, d.args)
	}
}

func isChunker(d device.Device) bool { _, ok := d.(device.Chunker); return ok }

// The device's own ceilings, by its clock: the smallest product of 1024 and more that takes over a millisecond, but
// none beyond 8192, and a copy that reads and writes 256 MiB. What was tried and what was used is freed.
func TestOwnCeilings(t *testing.T) {
	for _, c := range []struct {
		ms   float64
		name string
		rate float64
	}{{2, "own product 1024³ F32", 2 * 1024. * 1024 * 1024 / 2e-3 / 1e12},
		{0.5, "own product 8192³ F32", 2 * 8192. * 8192 * 8192 / 5e-4 / 1e12}} {
		d := &still{ms: c.ms}
		p, err := (&Config{Device: d}).product()
		if err != nil {
			t.Fatal(err)
		}
		rate, err := p.Run()
		if err != nil || p.Name != c.name || p.Unit != UnitFLOPs || !(math.Abs(rate-c.rate) <= 1e-9*c.rate) ||
			d.name != "MatMul" {
			t.Errorf("%s at %g %s (%v), want %s at %g", p.Name, rate, p.Unit, err, c.name, c.rate)
		}
		if p.free(); d.held != 0 {
			t.Errorf("%s: %d bytes are left", c.name, d.held)
		}
	}
	d := &still{ms: 4}
	b := (&Config{Device: d}).bandwidth()
	rate, err := b.Run()
	if want := 2 * 256 * 1024 * 1024 / 4e-3 / 1e9; err != nil || b.Name != "own copy 256 MiB" || b.Unit != UnitBytes ||
		!(math.Abs(rate-want) <= 1e-9*want) || d.name != "Copy" || d.held != 512<<20 {
		t.Errorf("%s at %g %s, %d bytes (%v)", b.Name, rate, b.Unit, d.held, err)
	}
	if b.free(); d.held != 0 {
		t.Errorf("%d bytes are left", d.held)
	}
	own := Config{Product: Ceiling{Name: "p", Run: b.Run}, Bandwidth: Ceiling{Name: "b", Run: b.Run}}
	if p, err := own.product(); err != nil || p.Name != "p" || own.bandwidth().Name != "b" {
		t.Error("given ceilings are not taken")
	}
}

// Nothing that a benchmark allocated on the device is left when it ends, however it ends.
func TestNothingIsLeft(t *testing.T) {
	ended, stop := context.WithCancel(context.Background())
	stop()
	nano := Geometry{Size: "nano", Arch: "diff"}
	for name, run := range map[string]func(*Config, context.Context) error{
		"train": func(c *Config, ctx context.Context) error {
			_, err := c.Train(ctx, TrainOptions{Geometry: nano, Ops: true})
			return err
		},
		"forward": func(c *Config, ctx context.Context) error {
			_, err := c.Train(ctx, TrainOptions{Geometry: nano, Forward: true})
			return err
		},
		"gemm": func(c *Config, ctx context.Context) error {
			return c.Gemm(ctx, GemmOptions{Geometry: nano, Tokens: 8, Rows: []int{1}}, func(Row) {})
		},
		"attention": func(c *Config, ctx context.Context) error {
			return c.Attention(ctx, AttentionOptions{Arch: "diff", Dim: 64, Head: 16, Seq: 8, Tokens: 16}, func(Row) {})
		},
		"decode": func(c *Config, ctx context.Context) error {
			return c.Decode(ctx, DecodeOptions{Geometry: nano, Batch: []int{1, 2}, Prompt: 4, Ops: true}, func(Row) {})
		},
	} {
		for _, ctx := range []context.Context{context.Background(), ended} {
			c := quick(t)
			d := &counter{Device: c.Device}
			c.Device, c.Warmup, c.Reps = d, 1, 1
			if err := run(c, ctx); (err != nil) != (ctx == ended) {
				t.Errorf("%s: %v", name, err)
			}
			if d.used != 0 || d.peak == 0 {
				t.Errorf("%s: %d of %d bytes are left", name, d.used, d.peak)
			}
		}
	}
}

// Random weights have the deviation and the constant of each parameter; a master is the same number.
func TestDrawParams(t *testing.T) {
	d := open(t).Device
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(d, r.Model, layer.Memory{Train: true, Master: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	drawParams(d, m.Params)
	masters, ones := 0, 0
	for _, p := range m.Params.List {
		w, master := make([]float32, p.Rows*p.Cols), make([]float32, p.Rows*p.Cols)
		device.ReadFloats(d, w, p.W)
		if p.Master.Ok() && p.Master.Type != tensor.I16 {
			device.ReadFloats(d, master, p.Master)
			if masters++; !slices.Equal(w, master) {
				t.Errorf("%s: the master is another", p.Name)
			}
		}
		sum, square := 0.0, 0.0
		for _, x := range w {
			sum, square = sum+float64(x), square+float64(x)*float64(x)
		}
		n := float64(len(w))
		if p.Kind == layer.Gain && sum == n && square == n {
			ones++
		}
		if std := math.Sqrt(square/n - sum*sum/n/n); p.Kind == layer.Matrix &&
			(!(math.Abs(std-p.Std) <= 0.1*p.Std) || p.Std == 0) {
			t.Errorf("%s: a deviation of %g, want %g", p.Name, std, p.Std)
		}
	}
	if masters == 0 || ones == 0 {
		t.Errorf("%d masters, %d norms of ones", masters, ones)
	}
}
