package cuda

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// decoded are the models that decoding is measured on, as their recipes build them for the plain Transformer: DIFF has
// half the heads, of values twice as wide; V2 has queries twice as wide and a narrower MLP.
var decoded = []struct {
	name                            string
	layers, dim, heads, head, vocab int
	inner                           map[string]int
}{
	{"160m", 12, 768, 12, 64, 50304, map[string]int{"plain": 2048, "diff": 2048, "diff2": 1792}},
	{"830m", 24, 1536, 16, 96, 100288, map[string]int{"plain": 4096, "diff": 4096, "diff2": 3584}},
}

// decodedHeads is an architecture's number of heads and shape.
func decodedHeads(arch string, heads, head int) (int, attnShape) {
	switch arch {
	case "diff":
		return heads / 2, attnShape{2, 2, head, 2 * head}
	case "diff2":
		return heads, attnShape{2, 1, head, head}
	}
	return heads, attnShape{1, 1, head, head}
}

// replay times f, which starts `times` ops, as a graph: µs and GB/s of one of them, bytes being what one must move.
func replay(b *testing.B, d *Device, times int, bytes float64, f func()) {
	b.Helper()
	f()
	if err := d.Sync(); err != nil {
		b.Fatal(err)
	}
	g, err := d.Record(f)
	if err != nil {
		b.Fatal(err)
	}
	g.Launch()
	ms, err := d.Time(func() {
		for range b.N {
			g.Launch()
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	seconds := ms / 1e3 / float64(b.N*times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(seconds*1e6, "gpu-µs/op")
	b.ReportMetric(bytes/seconds/1e9, "GB/s")
	if err := g.Free(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDecodeProducts times the products of a decoding step, each over so many copies of its weights that none
// waits in L2.
func BenchmarkDecodeProducts(b *testing.B) {
	d := gpu(b, nil)
	for _, m := range decoded {
		f := m.inner["diff"]
		for _, p := range []struct {
			name string
			n, k int
			to   tensor.DType
		}{{"qkv", 3 * m.dim, m.dim, tensor.BF16}, {"out", m.dim, m.dim, tensor.BF16},
			{"gateup", 2 * f, m.dim, tensor.BF16},
			{"down", m.dim, f, tensor.BF16}, {"logits", m.vocab, m.dim, tensor.F32}} {
			copies := max(2, ceil(256<<20, 2*p.n*p.k))
			w := spread(b, d, copies*p.n, p.k)
			for _, rows := range []int{1, 8, 64} {
				x, y := spread(b, d, rows, p.k), on(d, p.to, rows, p.n, p.n)
				op := device.MatMul{TransB: true}
				b.Run(fmt.Sprintf("%s/%s/rows%d", m.name, p.name, rows), func(b *testing.B) {
					replay(b, d, copies, float64(2*p.n*p.k), func() {
						for i := range copies {
							d.MatMul(y, x, w.RowRange(i*p.n, (i+1)*p.n), op)
						}
					})
				})
				d.Free(x.Buf)
				d.Free(y.Buf)
			}
			d.Free(w.Buf)
		}
	}
}

// decodePages is a cache of `rows` sequences of `context` positions in shuffled pages, and the rows' slots and last
// positions.
func decodePages(d *Device, rows, context int) (table, slot, pos tensor.Tensor) {
	const page = 64
	pages := context / page
	table = on(d, tensor.I32, rows, pages, pages)
	t, s, p := make([]int32, rows*pages), make([]int32, rows), make([]int32, rows)
	for i := range t {
		t[i] = int32((i*7919 + 13) % len(t))
	}
	for i := range s {
		s[i], p[i] = int32(i), int32(context-1)
	}
	device.WriteI32(d, table, t)
	slot, pos = ints(d, rows), ints(d, rows)
	device.WriteI32(d, slot, s)
	device.WriteI32(d, pos, p)
	return table, slot, pos
}

// decodeLayer is one layer's tensors of a decoding step.
type decodeLayer struct {
	qkv, out, gateUp, down tensor.Tensor
	cache                  device.Cache
}

// decodeStep is a decoding step as the model's layers make it, from device ops alone.
type decodeStep struct {
	d                      *Device
	shape                  attnShape
	heads, dim, inner      int
	layers                 []decodeLayer
	words                  tensor.Tensor
	x, h, qkv, o, y, gu, a tensor.Tensor
	x2                     tensor.Tensor // the residual stream's other buffer
	norm, rope, lam, logit tensor.Tensor
	lamW, vec              tensor.Tensor
	ids, slot, pos         tensor.Tensor
	bytes                  float64 // weights, K and V, each once
}

func newDecodeStep(d *Device, size int, arch string, rows, context int) *decodeStep {
	m := decoded[size]
	s := &decodeStep{d: d, dim: m.dim, inner: m.inner[arch]}
	s.heads, s.shape = decodedHeads(arch, m.heads, m.head)
	table, slot, pos := decodePages(d, rows, context)
	s.slot, s.pos, s.ids = slot, pos, ints(d, rows)
	kw, vw := s.heads*s.shape.keys*s.shape.d, s.heads*s.shape.dv
	qw := s.heads * s.shape.maps * s.shape.d
	s.bytes = 2 * float64(m.layers) * (float64((qw+kw+vw+vw)*m.dim+3*s.inner*m.dim) + float64(rows*context*(kw+vw)))
	for range m.layers {
		s.layers = append(s.layers, decodeLayer{qkv: spread(nil, d, qw+kw+vw, m.dim), out: spread(nil, d, m.dim, vw),
			gateUp: spread(nil, d, 2*s.inner, m.dim), down: spread(nil, d, m.dim, s.inner),
			cache: device.Cache{K: spread(nil, d, rows*context, kw), V: spread(nil, d, rows*context, vw), Table: table,
				PageSize: 64}})
	}
	s.words = spread(nil, d, m.vocab, m.dim)
	s.bytes += float64(s.words.Len() * 2)
	s.x, s.h, s.y, s.o = act(d, rows, m.dim), act(d, rows, m.dim), act(d, rows, m.dim), act(d, rows, vw)
	s.x2 = act(d, rows, m.dim)
	s.qkv, s.gu, s.a = act(d, rows, qw+kw+vw), act(d, rows, 2*s.inner), act(d, rows, s.inner)
	s.norm, s.rope, s.logit = spread(nil, d, 1, m.dim), fill(d, stat(d, context, s.shape.d), 3, 0.7, 0),
		stat(d, rows, m.vocab)
	s.vec = fill(d, stat(d, 4, s.shape.d), 5, 0, 0.1)
	s.lam, s.lamW = fill(d, stat(d, 1, 1), 1, 0.5, 0), spread(nil, d, s.heads, m.dim)
	if arch == "diff2" {
		s.lam = stat(d, rows, s.heads)
	}
	return s
}

func (s *decodeStep) free() {
	for _, l := range s.layers {
		for _, t := range []tensor.Tensor{l.qkv, l.out, l.gateUp, l.down, l.cache.K, l.cache.V} {
			s.d.Free(t.Buf)
		}
	}
	for _, t := range []tensor.Tensor{s.words, s.x, s.x2, s.h, s.qkv, s.o, s.y, s.gu, s.a, s.rope, s.logit} {
		s.d.Free(t.Buf)
	}
}

// lambda is what DIFF does for λ in each layer: V1 evaluates it again, V2 projects it from the row.
func (s *decodeStep) lambda() {
	switch {
	case s.shape.keys == 2:
		v := s.vec
		s.d.Lambda(s.lam, device.LambdaVecs{Q1: v.RowRange(0, 1), K1: v.RowRange(1, 2), Q2: v.RowRange(2, 3),
			K2: v.RowRange(3, 4)}, 0.2)
	case s.shape.maps == 2:
		s.d.MatMul(s.lam, s.h, s.lamW, device.MatMul{TransB: true})
		s.d.Sigmoid(s.lam, s.lam)
	}
}

func (s *decodeStep) attend(l *decodeLayer) {
	shape := device.AttnShape{Heads: s.heads, Groups: s.heads, D: s.shape.d, DV: s.shape.dv, Scale: 0.1}
	qw := s.heads * s.shape.maps * s.shape.d
	if s.shape.maps == 1 {
		s.d.AttentionCached(&device.Attn{AttnShape: shape, Q: s.qkv.Columns(0, qw), Out: s.o}, &l.cache, s.slot, s.pos)
		return
	}
	s.d.DiffAttentionCached(&device.DiffAttn{AttnShape: shape, Keys: s.shape.keys, Q: s.qkv.Columns(0, qw),
		Lam: s.lam, Out: s.o, Norm: device.HeadNorm{On: s.shape.keys == 2, Eps: 1e-5, Scale: 0.2}}, &l.cache,
		s.slot, s.pos)
}

// run is the step, with a residual stream that goes from one buffer to another at each norm, as the model's does; pause
// comes after each op.
func (s *decodeStep) run(pause func()) {
	d, product := s.d, device.MatMul{TransB: true}
	d.Embed(s.x, s.words, s.ids)
	pause()
	x, other, delta, sum := s.x, s.x2, tensor.Tensor{}, tensor.Tensor{}
	qw, kw := s.heads*s.shape.maps*s.shape.d, s.heads*s.shape.keys*s.shape.d
	for i := range s.layers {
		l := &s.layers[i]
		for _, op := range []func(){
			func() {
				d.RMSNorm(s.h, tensor.Tensor{}, sum, x, delta, s.norm, 1e-5)
				if sum.Ok() {
					x, other = other, x
				}
			},
			func() { d.MatMul(s.qkv, s.h, l.qkv, product) },
			func() {
				d.Rope(s.qkv.Columns(0, qw+kw), s.rope, s.pos,
					device.Rope{Heads: (qw + kw) / s.shape.d, Dim: s.shape.d, Interleaved: true})
			},
			func() {
				d.CacheWrite(&l.cache, s.qkv.Columns(qw, qw+kw), s.qkv.Columns(qw+kw, s.qkv.Cols), s.slot, s.pos)
			},
			s.lambda,
			func() { s.attend(l) },
			func() { d.MatMul(s.y, s.o, l.out, product) },
			func() {
				d.RMSNorm(s.h, tensor.Tensor{}, other, x, s.y, s.norm, 1e-5)
				x, other = other, x
			},
			func() { d.MatMul(s.gu, s.h, l.gateUp, product) },
			func() { d.SwiGLU(s.a, s.gu) },
			func() { d.MatMul(s.y, s.a, l.down, product) },
		} {
			op()
			pause()
		}
		sum, delta = other, s.y
	}
	d.RMSNorm(s.h, tensor.Tensor{}, other, x, delta, s.norm, 1e-5)
	pause()
	d.MatMul(s.logit, s.h, s.words, product)
}

// BenchmarkDecode times, at a context of 4096: each architecture's attention over all layers' caches, the small ops of
// the layers alone (latency: they move nothing to speak of), and the whole step, each as one graph. Bytes are weights,
// K and V, each once. The step of one sequence also with every op a kernel of its own, and waited for each time.
func BenchmarkDecode(b *testing.B) {
	const context = 4096
	d := gpu(b, nil)
	for size, m := range decoded {
		for _, arch := range []string{"plain", "diff", "diff2"} {
			for _, rows := range []int{1, 64} {
				s := newDecodeStep(d, size, arch, rows, context)
				name := fmt.Sprintf("%s/%s/batch%d", m.name, arch, rows)
				kv := 2 * float64(rows*context*s.heads*(s.shape.keys*s.shape.d+s.shape.dv))
				b.Run(name+"/attention", func(b *testing.B) {
					replay(b, d, m.layers, kv, func() {
						for i := range s.layers {
							s.attend(&s.layers[i])
						}
					})
				})
				b.Run(name+"/step", s.bench)
				if rows == 1 {
					d.unfused = true
					b.Run(name+"/step-unfused", s.bench)
					d.unfused = false
					b.Run(name+"/step-alone", s.benchAlone)
					smallOps(b, s, name)
				}
				s.free()
			}
		}
	}
}

func (s *decodeStep) bench(b *testing.B) {
	replay(b, s.d, 1, s.bytes, func() { s.run(func() {}) })
	b.ReportMetric(s.bytes/1e6, "MB")
}

// benchAlone launches a step and waits for it, by the host's clock.
func (s *decodeStep) benchAlone(b *testing.B) {
	g, err := s.d.Record(func() { s.run(func() {}) })
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		g.Launch()
		if err := s.d.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "host-µs/op")
	if err := g.Free(); err != nil {
		b.Fatal(err)
	}
}

// smallOps times the ops of a layer that are all latency.
func smallOps(b *testing.B, s *decodeStep, name string) {
	const times = 64
	d, l := s.d, &s.layers[0]
	qw, kw := s.heads*s.shape.maps*s.shape.d, s.heads*s.shape.keys*s.shape.d
	for _, op := range []struct {
		name string
		run  func()
	}{
		{"rmsnorm", func() { d.RMSNorm(s.h, tensor.Tensor{}, s.x, s.x, s.y, s.norm, 1e-5) }},
		{"rope", func() {
			d.Rope(s.qkv.Columns(0, qw+kw), s.rope, s.pos,
				device.Rope{Heads: (qw + kw) / s.shape.d, Dim: s.shape.d, Interleaved: true})
		}},
		{"cachewrite", func() {
			d.CacheWrite(&l.cache, s.qkv.Columns(qw, qw+kw), s.qkv.Columns(qw+kw, s.qkv.Cols), s.slot, s.pos)
		}},
		{"swiglu", func() { d.SwiGLU(s.a, s.gu) }},
		{"lambda", s.lambda},
		{"argmax", func() { d.ArgMax(s.ids, s.logit) }},
	} {
		if op.name == "lambda" && s.shape.maps == 1 {
			continue
		}
		b.Run(name+"/"+op.name, func(b *testing.B) {
			replay(b, d, times, 0, func() {
				for range times {
					op.run()
				}
			})
		})
	}
}
