package hf

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/golden"
	"antiphase/layer"
	"antiphase/model"
)

// nano is a complete configuration of an architecture, in the layout that training uses.
func nano(t *testing.T, arch string, change func(*model.Config)) model.Config {
	t.Helper()
	c := model.Config{Arch: arch, Vocab: 40, Context: 32, Layers: 2, Dim: 24, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 20,
		RopeInterleaved: true}
	change(&c)
	c, err := c.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trained is a model on the oracle whose every parameter is off its initial value.
func trained(t *testing.T, c model.Config) *model.Model {
	t.Helper()
	m, err := model.New(ref.New(), c, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, p := range m.Params.List {
		x := make([]float32, p.Rows*p.Cols)
		for i := range x {
			x[i] = float32(p.Const + 0.3*r.NormFloat64())
		}
		m.Params.Set(m.Device(), p, x)
	}
	return m
}

func valuesOf(m *model.Model) Values {
	return func(name string) ([]float32, error) {
		p := m.Params.Lookup(name)
		if p == nil {
			return nil, fmt.Errorf("no parameter %q", name)
		}
		x := make([]float32, p.Rows*p.Cols)
		p.Read(m.Device(), x)
		return x, nil
	}
}

func logitsOf(t *testing.T, m *model.Model) []float64 {
	t.Helper()
	b := &model.Batch{B: 1, T: 9, IDs: []int32{1, 5, 9, 5, 31, 0, 39, 2, 2}}
	y := make([]float32, len(b.IDs)*m.Config.Vocab)
	if err := m.Logits(b, y); err != nil {
		t.Fatal(err)
	}
	return wide(y)
}

func nothing(*model.Config) {}

// roundTrips are models in every way that an export treats differently. Bits survive wherever rows are only moved; what
// is folded into another tensor cannot be taken out again, so there the logits are equal and a second trip keeps every
// bit.
var roundTrips = []struct {
	name, arch string
	class      Class // what Auto must choose
	bits       bool
	change     func(*model.Config)
}{
	{"plain", "transformer", Llama, true, nothing},
	{"halves", "transformer", Llama, true, func(c *model.Config) { c.RopeInterleaved = false }},
	{"bias, tied", "transformer", Llama, true, func(c *model.Config) { c.Bias, c.TieEmbed = true, true }},
	{"one key head", "transformer", Llama, true, func(c *model.Config) { c.KVHeads = 1 }},
	{"wide heads", "transformer", Llama, true, func(c *model.Config) { c.HeadDim = 10 }},
	{"head norm", "transformer", Antiphase, true, func(c *model.Config) { c.HeadNorm = layer.HeadNormAffine }},
	{"plain norm", "diff", DiffLlama, true, func(c *model.Config) { c.HeadNorm = layer.HeadNormPlain }},
	{"bias, tied", "diff", DiffLlama, true,
		func(c *model.Config) { c.HeadNorm, c.Bias, c.TieEmbed = layer.HeadNormPlain, true, true }},
	{"one group", "diff", DiffLlama, true,
		func(c *model.Config) { c.HeadNorm, c.KVHeads, c.HeadDim = layer.HeadNormPlain, 1, 8 }},
	{"affine", "diff", DiffLlama, false, nothing},
	{"own epsilon", "diff", DiffLlama, false, func(c *model.Config) { c.Bias, c.HeadNormEps = true, 1e-2 }},
	{"low constant", "diff", DiffLlama, false,
		func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, 0.1 }},
	{"high constant", "diff", DiffLlama, false,
		func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, 0.8 }},
	{"no norm", "diff", Antiphase, true, func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }},
	{"plain", "diff2", Antiphase, true, nothing},
	{"bias, tied, affine", "diff2", Antiphase, true,
		func(c *model.Config) { c.Bias, c.TieEmbed, c.HeadNorm = true, true, layer.HeadNormAffine }},
}

func TestRoundTrip(t *testing.T) {
	for _, r := range roundTrips {
		t.Run(r.arch+"/"+r.name, func(t *testing.T) {
			m := trained(t, nano(t, r.arch, r.change))
			e := &Export{Config: m.Config, Values: valuesOf(m), Tokens: Tokens{BOS: -1, Pad: -1, EOS: []int{3}},
				Generation: &Generation{}}
			if class, err := e.Resolve(); err != nil || class != r.class {
				t.Fatalf("class %q (%v), want %q", class, err, r.class)
			}
			back, f := there(t, e)
			if d := golden.Largest(logitsOf(t, back), logitsOf(t, m)); !(d <= 2e-5) {
				t.Errorf("logits are off by %g", d)
			}
			if !slices.Equal(f.EOS, []int{3}) || f.BOS != -1 {
				t.Errorf("ids %+v came back", f.Tokens())
			}
			if r.bits {
				if back.Config != m.Config {
					t.Errorf("configuration came back as %+v\nwas %+v", back.Config, m.Config)
				}
				sameBits(t, back, m)
			}
			again, _ := there(t, &Export{Config: back.Config, Values: valuesOf(back), Tokens: e.Tokens})
			sameBits(t, again, back)
			// Our own class holds every model as it is.
			own, _ := there(t, &Export{Config: m.Config, Values: valuesOf(m), Class: Antiphase})
			if own.Config != m.Config {
				t.Errorf("configuration came back from our own class as %+v\nwas %+v", own.Config, m.Config)
			}
			sameBits(t, own, m)
		})
	}
}

// there writes a folder and opens it.
func there(t *testing.T, e *Export) (*model.Model, *Folder) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	if err := e.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	m, f, err := Open(ref.New(), dir, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	return m, f
}

func sameBits(t *testing.T, got, want *model.Model) {
	t.Helper()
	if len(got.Params.List) != len(want.Params.List) {
		t.Fatalf("%d parameters, want %d", len(got.Params.List), len(want.Params.List))
	}
	for _, p := range want.Params.List {
		a, err := valuesOf(got)(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := valuesOf(want)(p.Name); !slices.Equal(a, b) {
			t.Errorf("%s is not bit-equal", p.Name)
		}
	}
}

// TestExportRope carries every scaling of rotary positions there and back.
func TestExportRope(t *testing.T) {
	no := false
	for _, s := range []*model.RopeScaling{
		{Type: "linear", Factor: 2, OriginalContext: 32}, {Type: "dynamic", Factor: 2, OriginalContext: 16},
		{Type: "llama3", Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalContext: 16},
		{Type: "yarn", Factor: 4, OriginalContext: 16, BetaFast: 20, BetaSlow: 2, AttentionFactor: 1.25, Truncate: &no},
	} {
		for _, class := range []Class{Llama, Antiphase} {
			scaledThereAndBack(t, s, class)
		}
	}
}

func scaledThereAndBack(t *testing.T, s *model.RopeScaling, class Class) {
	t.Helper()
	m := trained(t, nano(t, "transformer", func(c *model.Config) { c.RopeScaling, c.RopeTheta = s, 5000 }))
	back, _ := there(t, &Export{Config: m.Config, Values: valuesOf(m), Class: class})
	got, want := back.Config.RopeScaling, *s
	if got == nil || got.Truncate == nil != (want.Truncate == nil) {
		t.Fatalf("%s came back as %+v", s.Type, got)
	}
	got.Truncate, want.Truncate = nil, nil
	if *got != want || back.Config.RopeTheta != 5000 {
		t.Errorf("%+v came back as %+v", want, *got)
	}
	if d := golden.Largest(logitsOf(t, back), logitsOf(t, m)); d != 0 {
		t.Errorf("%s: logits are off by %g", s.Type, d)
	}
}

// TestExportShards spreads weights over files of bounded size, in half the bytes where asked for, λ whole all the same.
func TestExportShards(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	const limit = 4000
	dir := filepath.Join(t.TempDir(), "x")
	e := &Export{Config: m.Config, Values: valuesOf(m), DType: "bfloat16", ShardBytes: limit}
	if err := e.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "model-*-of-*.safetensors"))
	if len(found) < 3 {
		t.Fatalf("shards %v, want several", found)
	}
	for _, path := range found {
		if st, err := os.Stat(path); err != nil || st.Size() > limit+4096 {
			t.Errorf("%s: %d bytes (%v)", path, st.Size(), err)
		}
	}
	back, _, err := Open(ref.New(), dir, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	const lambda = "layers.1.attn.lambda_k2"
	a, _ := valuesOf(m)(lambda)
	if b, _ := valuesOf(back)(lambda); !slices.Equal(a, b) {
		t.Error("λ lost bits")
	}
	if d := golden.Relative(logitsOf(t, back), logitsOf(t, m)); !(d <= 0.05) || d == 0 {
		t.Errorf("logits are off by %g of their norm, want a little", d)
	}
}

func TestExportRefuses(t *testing.T) {
	diff2, diff := trained(t, nano(t, "diff2", nothing)), trained(t, nano(t, "diff", nothing))
	huge := func(name string) ([]float32, error) {
		x, err := valuesOf(diff)(name)
		x[0] = 1e6
		return x, err
	}
	for _, x := range []struct {
		text string
		e    *Export
	}{
		{`class "llama" cannot hold this model: transformers has no class`,
			&Export{Config: diff2.Config, Class: Llama}},
		{`class "llama" cannot hold this model: the model is a diffllama`, &Export{Config: diff.Config, Class: Llama}},
		{`class "gpt2" is unknown`, &Export{Config: diff.Config, Class: "gpt2"}},
		{`dtype "int8" is unknown`, &Export{Config: diff.Config, Values: valuesOf(diff), DType: "int8"}},
		{"beyond float16", &Export{Config: diff.Config, Values: huge, DType: "float16"}},
		{"no parameter", &Export{Config: diff2.Config, Values: valuesOf(diff)}},
	} {
		dir := t.TempDir()
		if err := x.e.Write(filepath.Join(dir, "x"), false); err == nil || !strings.Contains(err.Error(), x.text) {
			t.Errorf("error %v, want one with %q", err, x.text)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %v was left behind", x.text, left)
		}
	}
}

// TestExportOddKeyHeads: a DiffLlama with an odd number of key heads has its groups written out when it is read, and
// keeps its logits when it is written again with them.
func TestExportOddKeyHeads(t *testing.T) {
	change := dict{"num_attention_heads": 6, "num_key_value_heads": 3, "attention_bias": true, "vocab_size": 40}
	l := mustParse(t, with(small("diffllama"), change)).layout
	m, _, err := Open(ref.New(), writeFolder(t, with(small("diffllama"), change), tensors(l, 9)), layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	back, f := there(t, &Export{Config: m.Config, Values: valuesOf(m)})
	if f.layout.kvHeads != 6 {
		t.Errorf("%d key heads were written, want 6", f.layout.kvHeads)
	}
	sameBits(t, back, m)
	if d := golden.Largest(logitsOf(t, back), logitsOf(t, m)); d != 0 {
		t.Errorf("logits are off by %g", d)
	}
}

// TestCard tells people what they need, whatever a value holds.
func TestCard(t *testing.T) {
	c := &Card{Name: "x", Class: Antiphase, About: "A model.", Facts: [][2]string{{"data", "a|b\nc"}},
		Recipe: []byte("{}\n")}
	text := string(c.Markdown())
	for _, want := range []string{"# x\n", "| data | a\\|b c |", "trust_remote_code=True", "```json\n{}\n```"} {
		if !strings.Contains(text, want) {
			t.Errorf("the card has no %q:\n%s", want, text)
		}
	}
	c.Class = DiffLlama
	if strings.Contains(string(c.Markdown()), "trust_remote_code") {
		t.Error("a class of transformers needs no remote code")
	}
}
