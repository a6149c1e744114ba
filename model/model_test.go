package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// configs are small models of every architecture, one for each option that changes the network.
func configs(t *testing.T) map[string]Config {
	out := map[string]Config{}
	for _, a := range layer.Archs() {
		base := Config{Arch: a.Name, Vocab: 19, Context: 16, Layers: 2, Dim: 12, Heads: 4, HeadDim: 4, FFN: 20}
		add := func(name string, f func(c *Config)) {
			c := base
			f(&c)
			c, err := c.Complete()
			if err != nil {
				t.Fatal(err)
			}
			out[a.Name+"/"+name] = c
		}
		add("base", func(*Config) {})
		add("tied", func(c *Config) { c.TieEmbed = true })
		add("grouped", func(c *Config) { c.KVHeads = 2 })
		add("interleaved", func(c *Config) { c.RopeInterleaved = true; c.RopeTheta = 50 })
		add("bias", func(c *Config) { c.Bias = true })
		add("norm-plain", func(c *Config) { c.HeadNorm = layer.HeadNormPlain })
		add("norm-affine", func(c *Config) { c.HeadNorm = layer.HeadNormAffine })
		add("norm-off", func(c *Config) { c.HeadNorm = layer.HeadNormOff })
		if a.Variants {
			add("lambda-none", func(c *Config) { c.LambdaForm = layer.LambdaNone; c.KVHeads = 2 })
			add("lambda-linear", func(c *Config) { c.LambdaForm = layer.LambdaLinear })
			add("pairs-across", func(c *Config) { c.Pairing = layer.PairingAcross; c.KVHeads = 2 })
		}
		add("lambda-constant", func(c *Config) { c.LambdaInit = LambdaConstant; c.LambdaConst = 0.5 })
	}
	return out
}

func batch(r *rand.Rand, c Config, b, n int) *Batch {
	x := &Batch{B: b, T: n, IDs: make([]int32, b*n), Targets: make([]int32, b*n)}
	for i := range x.IDs {
		x.IDs[i], x.Targets[i] = int32(r.IntN(c.Vocab)), int32(r.IntN(c.Vocab))
	}
	x.Targets[1] = -1
	return x
}

func newModel(t *testing.T, d device.Device, c Config) *Model {
	t.Helper()
	m, err := New(d, c, layer.Memory{Train: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Init(3)
	return m
}

// scorer is a model of random weights that is not trained.
func scorer(t *testing.T, d device.Device, c Config) *Model {
	t.Helper()
	m, err := New(d, c, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	m.Init(5)
	return m
}

// The whole network's gradient against central differences in float64, for every parameter tensor.
func TestGradient(t *testing.T) {
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			m := newModel(t, ref.New(), c)
			for _, p := range m.Params.List { // away from the symmetric start
				for i := range p.Rows * p.Cols {
					*element(p, p.W, i) += 0.2 * r.NormFloat64()
				}
			}
			b := batch(r, c, 2, 6)
			b.Starts = []int32{0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 4, 4}
			const scale = 0.25
			loss := func() float64 {
				if err := m.Score(b); err != nil {
					t.Fatal(err)
				}
				s := 0.0
				for _, x := range tensor.Host[float64](m.losses) {
					s += scale * x
				}
				return s
			}
			if err := m.Backprop(b, scale); err != nil {
				t.Fatal(err)
			}
			for _, p := range m.Params.List {
				compare(t, r, p, loss)
			}
		})
	}
}

// compare checks a few elements and one random direction of a parameter.
func compare(t *testing.T, r *rand.Rand, p *layer.Param, loss func() float64) {
	t.Helper()
	g := gradient(p)
	scale := 1e-4
	for _, v := range g {
		scale = max(scale, math.Abs(v))
	}
	for range 4 {
		i := r.IntN(len(g))
		const h = 2e-5
		x := element(p, p.W, i)
		old := *x
		*x = old + h
		up := loss()
		*x = old - h
		down := loss()
		*x = old
		if want := (up - down) / (2 * h); !(math.Abs(g[i]-want) <= 1e-6*scale+1e-10) {
			t.Errorf("%s[%d]: gradient %.9g, difference %.9g (scale %.3g)", p.Name, i, g[i], want, scale)
			return
		}
	}
}

// element is number i, row after row, of one of p's matrices.
func element(p *layer.Param, t tensor.Tensor, i int) *float64 {
	r := i / p.Cols
	return &tensor.Host[float64](t.RowRange(r, r+1))[i%p.Cols]
}

// gradient is p's, row after row.
func gradient(p *layer.Param) []float64 {
	var out []float64
	for r := range p.Rows {
		out = append(out, tensor.Host[float64](p.G.RowRange(r, r+1))...)
	}
	return out
}

// Two micro-batches give the gradient of the large batch.
func TestAccumulation(t *testing.T) {
	for name, c := range configs(t) {
		r := rand.New(rand.NewPCG(7, 8))
		whole, parts := newModel(t, ref.New(), c), newModel(t, ref.New(), c)
		b := batch(r, c, 4, 5)
		if err := whole.Backprop(b, 0.1); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			half := &Batch{B: 2, T: 5, IDs: b.IDs[i*10:][:10], Targets: b.Targets[i*10:][:10]}
			if err := parts.Backprop(half, 0.1); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range whole.Params.List {
			want, got := gradient(p), gradient(parts.Params.List[i])
			for k := range want {
				if !(math.Abs(want[k]-got[k]) <= 1e-12) {
					t.Fatalf("%s: %s[%d]: %g in parts, %g whole", name, p.Name, k, got[k], want[k])
				}
			}
		}
	}
}

// Gradient sets what Backprop adds, whatever was there before, in any number of micro-batches.
func TestGradientIsSet(t *testing.T) {
	for name, c := range configs(t) {
		r := rand.New(rand.NewPCG(7, 8))
		m := newModel(t, ref.New(), c)
		b := batch(r, c, 4, 5)
		b.Starts = []int32{0, 0, 2, 2, 2, 0, 1, 1, 1, 4, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}
		if err := m.Backprop(b, 0.1); err != nil {
			t.Fatal(err)
		}
		losses, again := make([]float32, 20), make([]float32, 20)
		m.Losses(losses)
		var want []float64
		for _, p := range m.Params.List {
			want = append(want, gradient(p)...)
		}
		for _, micro := range []int{4, 2, 1} {
			for _, p := range m.Params.List {
				for i := range p.Rows * p.Cols {
					*element(p, p.G, i) = math.NaN()
				}
			}
			var f Feed
			if err := m.Put(&f, b, micro); err != nil {
				t.Fatal(err)
			}
			m.Gradient(&f, 0.1, nil)
			if m.Losses(again); !slices.Equal(again, losses) {
				t.Errorf("%s: micro-batches of %d have the losses %v, want %v", name, micro, again, losses)
			}
			at := 0
			for _, p := range m.Params.List {
				for i, g := range gradient(p) {
					if !(math.Abs(g-want[at+i]) <= 1e-12) {
						t.Fatalf("%s: micro-batches of %d: %s[%d] is %g, want %g", name, micro, p.Name, i,
							g, want[at+i])
					}
				}
				at += p.Rows * p.Cols
			}
			f.Free()
		}
	}
}

// Decoding step by step, a whole prompt at once, and the full forward pass give the same logits.
func TestStepEqualsForward(t *testing.T) {
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 10))
			m := newModel(t, ref.New(), c)
			const n = 11
			b := batch(r, c, 1, n)
			want := make([]float32, n*c.Vocab)
			if err := m.Logits(b, want); err != nil {
				t.Fatal(err)
			}
			for _, chunk := range []int{1, 3, n} {
				got := decode(t, m, b.IDs, chunk)
				for i := range want {
					if !(math.Abs(float64(got[i]-want[i])) <= 1e-5) {
						t.Fatalf("chunks of %d: logit %d of row %d is %g, forward gives %g", chunk, i%c.Vocab,
							i/c.Vocab, got[i], want[i])
					}
				}
			}
		})
	}
}

// decode runs ids through a cache of shuffled pages in chunks and returns all logits.
func decode(t *testing.T, m *Model, ids []int32, chunk int) []float32 {
	t.Helper()
	cache := m.NewCache(8, 2, 2, 8)
	defer cache.Free()
	for i, page := range []int32{5, 2, 7, 0, 3, 6, 1, 4} {
		cache.Assign(1, i, page)
	}
	var out []float32
	for at := 0; at < len(ids); at += chunk {
		var rows Rows
		for i := at; i < min(at+chunk, len(ids)); i++ {
			rows.IDs, rows.Slots = append(rows.IDs, ids[i]), append(rows.Slots, 1)
			rows.Pos, rows.Want = append(rows.Pos, int32(i)), append(rows.Want, int32(i-at))
		}
		y := make([]float32, len(rows.Want)*m.Config.Vocab)
		if err := cache.Step(rows, y); err != nil {
			t.Fatal(err)
		}
		out = append(out, y...)
	}
	return out
}

// A pair starts equal wherever parameters have the same name and shape.
func TestInitIsSharedAcrossArchitectures(t *testing.T) {
	all := configs(t)
	a, b := newModel(t, ref.New(), all["transformer/base"]), newModel(t, ref.New(), all["diff/base"])
	same := 0
	for _, p := range a.Params.List {
		q := b.Params.Lookup(p.Name)
		if q == nil || q.Rows != p.Rows || q.Cols != p.Cols {
			continue
		}
		same++
		if x, y := tensor.Host[float64](p.W), tensor.Host[float64](q.W); fmt.Sprint(x) != fmt.Sprint(y) {
			t.Errorf("%s differs", p.Name)
		}
	}
	if same < 5 {
		t.Errorf("only %d parameters are common", same)
	}
}

func TestBatchErrors(t *testing.T) {
	c := configs(t)["diff/base"]
	m := newModel(t, ref.New(), c)
	for name, b := range map[string]*Batch{
		"too long":   {B: 1, T: 17, IDs: make([]int32, 17)},
		"bad id":     {B: 1, T: 1, IDs: []int32{19}},
		"negative":   {B: 1, T: 1, IDs: []int32{-1}},
		"bad target": {B: 1, T: 1, IDs: []int32{0}, Targets: []int32{-2}},
		"no targets": {B: 1, T: 1, IDs: []int32{0}},
		"empty":      {},
		"ragged":     {B: 2, T: 2, IDs: make([]int32, 3)},
	} {
		if err := m.Score(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A device whose activations and statistics differ in dtype, as a GPU's do, runs every pass: training, scoring,
// decoding. The oracle in bf16 stands for it, and its loss is the float64 loss to bf16's accuracy.
func TestMixedTypes(t *testing.T) {
	for name, c := range configs(t) {
		r := rand.New(rand.NewPCG(11, 12))
		exact := newModel(t, ref.New(), c)
		mixed := newModel(t, ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32}), c)
		b := batch(r, c, 2, 6)
		b.Starts = []int32{0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 4, 4}
		want, got := make([]float32, 12), make([]float32, 12)
		for m, out := range map[*Model][]float32{exact: want, mixed: got} {
			if err := m.Backprop(b, 0.1); err != nil {
				t.Fatal(err)
			}
			m.Losses(out)
		}
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= 0.05) {
				t.Errorf("%s: loss of row %d is %g in bf16, %g in float64", name, i, got[i], want[i])
			}
		}
		decode(t, mixed, b.IDs[:6], 2)
	}
}
