package model

import (
	"maps"
	"math"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// Every bound of a configuration on both sides, with an error that names the field.
func TestConfigBounds(t *testing.T) {
	base := configs(t)["diff2/base"]
	for name, x := range map[string]struct {
		set  func(c *Config)
		want string // part of the error; empty: accepted
	}{
		"vocab 1":            {func(c *Config) { c.Vocab = 1 }, ""},
		"vocab 0":            {func(c *Config) { c.Vocab = 0 }, "vocab"},
		"context 1":          {func(c *Config) { c.Context = 1 }, ""},
		"context 0":          {func(c *Config) { c.Context = 0 }, "context"},
		"context at rope":    {func(c *Config) { c.Context = maxRope / c.HeadDim }, ""},
		"context over rope":  {func(c *Config) { c.Context = maxRope/c.HeadDim + 1 }, "context"},
		"head_dim over rope": {func(c *Config) { c.HeadDim, c.Context = maxRope+2, 1 }, "head_dim"},
		"head_dim 0":         {func(c *Config) { c.HeadDim = 0 }, "head_dim"},
		"head_dim negative":  {func(c *Config) { c.HeadDim = -2 }, "head_dim"},
		"layers 1":           {func(c *Config) { c.Layers = 1 }, ""},
		"layers 0":           {func(c *Config) { c.Layers = 0 }, "layers"},
		"layers most":        {func(c *Config) { c.Layers = maxLayers }, ""},
		"layers over":        {func(c *Config) { c.Layers = maxLayers + 1 }, "layers"},
		"ffn 1":              {func(c *Config) { c.FFN = 1 }, ""},
		"ffn negative":       {func(c *Config) { c.FFN = -1 }, "ffn"},
		"dim 0":              {func(c *Config) { c.Dim = 0 }, "dim"},
		"dim negative":       {func(c *Config) { c.Dim = -8 }, "dim"},
		"vocab times dim":    {func(c *Config) { c.Vocab, c.Dim, c.FFN = 1<<20, 1<<20, 1 }, ""},
		"vocab times dim +":  {func(c *Config) { c.Vocab, c.Dim, c.FFN = 1<<20+1, 1<<20, 1 }, "vocab × dim"},
		"vocab over":         {func(c *Config) { c.Vocab = 1<<31 + 1 }, "vocab × dim"},
		"vocab most":         {func(c *Config) { c.Vocab = 1 << 31 }, ""},
		"dim most":           {func(c *Config) { c.Vocab, c.Dim, c.FFN, c.Context = 1, 1<<31, 1, 1 }, ""},
		"dim over":           {func(c *Config) { c.Vocab, c.Dim, c.FFN, c.Context = 1, 1<<31+2, 1, 1 }, "dim"},
		"dim overflows":      {func(c *Config) { c.Dim, c.FFN = 1<<60, 16 }, "dim"},
		"ffn overflows":      {func(c *Config) { c.FFN = 1 << 60 }, "ffn × dim"},
		"context overflows":  {func(c *Config) { c.Context, c.HeadDim = 1<<60, 2 }, "context"},
		"heads overflow":     {func(c *Config) { c.Heads, c.KVHeads = 1<<62, 2 }, "heads × head_dim"},
		"ffn times dim +":    {func(c *Config) { c.FFN, c.Dim = 1<<20+1, 1<<20 }, "ffn × dim"},
		"heads times dim +":  {func(c *Config) { c.Heads, c.KVHeads, c.HeadDim = 1<<31+2, 2, 2 }, "heads × head_dim"},
		"context times dim +": {func(c *Config) {
			c.Context, c.Dim, c.HeadDim, c.FFN, c.Vocab = 1<<20, 1<<20+1, 2, 1,
				1
		}, "context × dim"},
		"theta":         {func(c *Config) { c.RopeTheta = -1 }, "rope_theta"},
		"norm_eps":      {func(c *Config) { c.NormEps = -1 }, "norm_eps"},
		"head_norm_eps": {func(c *Config) { c.HeadNormEps = -1 }, "head_norm_eps"},
		"lambda_std":    {func(c *Config) { c.LambdaStd = -1 }, "lambda_std"},
		"lambda_init":   {func(c *Config) { c.LambdaInit = "x" }, "lambda_init"},
		"arch":          {func(c *Config) { c.Arch = "x" }, "arch"},
		"rope type": {func(c *Config) { c.RopeScaling = &RopeScaling{Type: "x", Factor: 2} },
			"rope_scaling.type"},
	} {
		c := base
		x.set(&c)
		_, err := c.Complete()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// Zeros that Complete would fill are checked as they are.
func TestCheckZeros(t *testing.T) {
	for want, set := range map[string]func(c *Config){
		"":               func(c *Config) { c.NormEps, c.HeadNormEps, c.LambdaStd = 0, 0, 0 },
		"rope_theta = 0": func(c *Config) { c.RopeTheta = 0 },
		"lambda_init":    func(c *Config) { c.LambdaInit = "" }, "ffn: is 0": func(c *Config) { c.FFN = 0 },
	} {
		c := configs(t)["diff/base"]
		set(&c)
		if err := c.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Every omitted field gets the default that its documentation states, and nothing that was given changes.
func TestDefaults(t *testing.T) {
	for _, a := range layer.Archs() {
		c, err := Config{Arch: a.Name, Vocab: 9, Context: 8, Layers: 1, Dim: 100, Heads: 4, HeadDim: 4}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		want := Config{Arch: a.Name, Vocab: 9, Context: 8, Layers: 1, Dim: 100, Heads: 4, HeadDim: 4,
			KVHeads: a.DefaultGroups(4), FFN: 288, RopeTheta: 10000, NormEps: 1e-5, HeadNorm: a.HeadNorm,
			HeadNormEps: 1e-5, LambdaInit: "schedule", LambdaStd: 0.1}
		if c != want {
			t.Errorf("%+v, want %+v", c, want)
		}
		if again, err := c.Complete(); err != nil || again != c {
			t.Errorf("completing twice: %+v, %v", again, err)
		}
	}
	c := Config{LambdaInit: LambdaConstant, LambdaConst: 0.3}
	for l, want := range []float64{0.2, 0.8 - 0.6*math.Exp(-0.3), 0.8 - 0.6*math.Exp(-0.6)} {
		if got := (Config{}).LambdaInitAt(l); !(math.Abs(got-want) <= 1e-12) || c.LambdaInitAt(l) != 0.3 {
			t.Errorf("λ_init of layer %d: %g, want %g; constant %g", l, got, want, c.LambdaInitAt(l))
		}
	}
}

// ropeConfig has 16 frequencies; the expected ones are computed as transformers' modeling_rope_utils describes them.
var ropeConfig = Config{HeadDim: 32, RopeTheta: 10000, Context: 64}

// ropePlain is frequency i without scaling.
func ropePlain(i int) float64 { return math.Pow(10000, -float64(2*i)/32) }

// ropeBound is the dimension that turns so often within the old context.
func ropeBound(turns, old float64) float64 {
	return 32 * math.Log(old/(turns*2*math.Pi)) / (2 * math.Log(10000))
}

// ropeBlend goes from the plain frequency at dimension low to that divided by factor at dimension high.
func ropeBlend(i int, low, high, factor float64) float64 {
	ramp := max(0, min(1, (float64(i)-low)/(high-low)))
	return ropePlain(i)*(1-ramp) + ropePlain(i)/factor*ramp
}

// ropeScalings has each type with its frequencies and its factor of attention.
var ropeScalings = map[string]struct {
	s      *RopeScaling
	want   func(i int) float64
	factor float64
}{
	"none":    {nil, ropePlain, 1},
	"default": {&RopeScaling{Type: "default"}, ropePlain, 1},
	"dynamic": {&RopeScaling{Type: "dynamic", Factor: 4}, ropePlain, 1},
	"linear":  {&RopeScaling{Type: "linear", Factor: 4}, func(i int) float64 { return ropePlain(i) / 4 }, 1},
	"llama3": {&RopeScaling{Type: "llama3", Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalContext: 512},
		func(i int) float64 {
			switch wave := 2 * math.Pi / ropePlain(i); {
			case wave < 512./4:
				return ropePlain(i)
			case wave > 512./1:
				return ropePlain(i) / 8
			default:
				s := (512/wave - 1) / (4 - 1)
				return (1-s)*ropePlain(i)/8 + s*ropePlain(i)
			}
		}, 1},
	"yarn": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 2048}, func(i int) float64 {
		return ropeBlend(i, math.Floor(ropeBound(32, 2048)), math.Ceil(ropeBound(1, 2048)), 4)
	}, 0.1*math.Log(4) + 1},
	"yarn of the context": {&RopeScaling{Type: "yarn", Factor: 4, Truncate: new(true)}, func(i int) float64 {
		return ropeBlend(i, 0, math.Ceil(ropeBound(1, 64)), 4) // the lower bound would be negative
	}, 0.1*math.Log(4) + 1},
	"yarn, not truncated": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 2048, BetaFast: 16, BetaSlow: 2,
		Truncate: new(false)}, func(i int) float64 {
		return ropeBlend(i, ropeBound(16, 2048), ropeBound(2, 2048), 4)
	}, 0.1*math.Log(4) + 1},
	"yarn past the last dimension": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 1 << 31, BetaFast: 1e5},
		func(i int) float64 {
			return ropeBlend(i, math.Floor(ropeBound(1e5, 1<<31)), 31, 4)
		}, 0.1*math.Log(4) + 1},
	"yarn without a ramp": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 6}, func(i int) float64 {
		return ropeBlend(i, 0, 0.001, 4) // both bounds are 0
	}, 0.1*math.Log(4) + 1},
	"yarn, long": {&RopeScaling{Type: "yarn", Factor: 1, OriginalContext: 1 << 40, BetaFast: 1e9, BetaSlow: 1e-30},
		ropePlain, 1},
	"yarn with its factor": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 2048, AttentionFactor: 1.5,
		MScale: 1, MScaleAllDim: 2}, func(i int) float64 {
		return ropeBlend(i, math.Floor(ropeBound(32, 2048)), math.Ceil(ropeBound(1, 2048)), 4)
	}, 1.5},
	"yarn with two scales": {&RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 2048, MScale: 1,
		MScaleAllDim: 0.5}, func(i int) float64 {
		return ropeBlend(i, math.Floor(ropeBound(32, 2048)), math.Ceil(ropeBound(1, 2048)), 4)
	}, (0.1*math.Log(4) + 1) / (0.05*math.Log(4) + 1)},
}

// Rotary frequencies of each scaling type.
func TestRopeScaling(t *testing.T) {
	for name, x := range ropeScalings {
		c := ropeConfig
		c.RopeScaling = x.s
		freq, factor, err := c.Frequencies()
		if err != nil || len(freq) != 16 || !(math.Abs(factor-x.factor) <= 1e-12) {
			t.Fatalf("%s: %d frequencies, factor %g, %v; want %g", name, len(freq), factor, err, x.factor)
		}
		for i, f := range freq {
			if want := x.want(i); !(math.Abs(f/want-1) <= 1e-12) {
				t.Errorf("%s: frequency %d is %g, want %g", name, i, f, want)
			}
		}
	}
}

// Scalings that do not say enough, or what cannot be, are refused by the setting's name.
func TestRopeScalingRefused(t *testing.T) {
	for want, s := range map[string]*RopeScaling{
		"factor: is 0.5":      {Type: "linear", Factor: 0.5},
		"factor: is 0 ":       {Type: "yarn"},
		"original_context":    {Type: "llama3", Factor: 2, LowFreqFactor: 1, HighFreqFactor: 4},
		"out of order":        {Type: "llama3", Factor: 2, LowFreqFactor: 4, HighFreqFactor: 4, OriginalContext: 9},
		"type: is \"longrope": {Type: "longrope", Factor: 2},
	} {
		c := ropeConfig
		c.RopeScaling = s
		if _, _, err := c.Frequencies(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// FLOPs by hand: two per weight of every product, and per cell of each attention map.
func TestFLOPs(t *testing.T) {
	for _, x := range []struct {
		arch              string
		tied              bool
		weights           float64 // of all products, per token
		forward, backward float64 // multiply-adds of one cell of one head
	}{
		// Attention 4·8·8 per layer, MLP 3·8·12, vocabulary 10·8. Two layers, heads of width 4.
		{"transformer", true, 2*(256+288) + 80, 4 + 4, 4 + 2*4 + 2*4},
		{"transformer", false, 2*(256+288) + 80, 4 + 4, 4 + 2*4 + 2*4},
		{"diff", true, 2*(256+288) + 80, 2*4 + 2*8, 2*4 + 2*8 + 2*2*4},
		// Twice the queries, keys and values of one group of two heads, and W_λ of 2·8.
		{"diff2", false, 2*(8*(16+4+4)+64+16+288) + 80, 2*4 + 2*4, 2*4 + 2*4 + 2*2*4},
		// Two queries and one that both share, two keys and a wide value of the one group; heads of width 8.
		{"gda", false, 2*(8*(12+8+8)+16*8+288) + 80, 2*4 + 2*8, 2*4 + 2*8 + 2*2*4},
	} {
		heads, groups := 2, 0
		if x.arch == "diff" {
			heads = 1
		}
		if x.arch == "diff2" || x.arch == "gda" {
			groups = 1
		}
		c, err := Config{Arch: x.arch, Vocab: 10, Context: 16, Layers: 2, Dim: 8, Heads: heads, KVHeads: groups,
			HeadDim: 4, FFN: 12, TieEmbed: x.tied}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		for _, T := range []int{1, 7, 16} {
			keys := 0
			for i := range T {
				keys += i + 1
			}
			cells := float64(keys*2*heads) / float64(T)
			forward, train := c.FLOPs(T)
			if want := 2*x.weights + 2*cells*x.forward; !(math.Abs(forward-want) <= 1e-6) {
				t.Errorf("%s, T = %d: %g forward, want %g", x.arch, T, forward, want)
			}
			if want := 6*x.weights + 2*cells*(x.forward+x.backward); !(math.Abs(train-want) <= 1e-6) {
				t.Errorf("%s, T = %d: %g in training, want %g", x.arch, T, train, want)
			}
			if want := float64(T)*(forward-160) + 160; !(math.Abs(c.PromptFLOPs(T)-want) <= 1e-6) {
				t.Errorf("%s: a prompt of %d: %g, want %g", x.arch, T, c.PromptFLOPs(T), want)
			}
		}
	}
	if f, b := (Config{Arch: "x"}).FLOPs(4); f != 0 || b != 0 {
		t.Error("an unknown architecture has FLOPs")
	}
}

// A bias on the attention's projections is a parameter of each, and nothing else has one.
func TestBiases(t *testing.T) {
	for _, a := range layer.Archs() {
		for _, bias := range []bool{false, true} {
			c := configs(t)[a.Name+"/base"]
			c.Bias = bias
			want, got := map[string]int{}, map[string]int{}
			for _, p := range Table(c).List {
				if name := strings.TrimSuffix(p.Name, "weight"); bias &&
					(strings.HasSuffix(name, "attn.qkv.") || strings.HasSuffix(name, "attn.out.")) {
					want[name+"bias"] = p.Rows
				}
				if p.Kind == layer.Bias || strings.HasSuffix(p.Name, "bias") {
					got[p.Name] = p.Cols
				}
			}
			if !maps.Equal(got, want) || bias && len(want) != 2*c.Layers {
				t.Errorf("%s: biases %v, want %v", a.Name, got, want)
			}
		}
	}
}

// The keys and values of a position, over all layers.
func TestCacheBytes(t *testing.T) {
	for arch, want := range map[string]int{
		"transformer": 2 * (2*4 + 2*4), // layers × (keys + values) of two groups of width 4
		"diff":        2 * (2*2*4 + 2*8),
	} {
		c := configs(t)[arch+"/base"]
		c.Layers, c.Heads, c.KVHeads, c.HeadDim = 2, 4, 2, 4
		if got := newModel(t, ref.New(), c).CacheBytes(); got != 8*want {
			t.Errorf("%s: %d bytes, want %d float64 numbers", arch, got, want)
		}
	}
}
