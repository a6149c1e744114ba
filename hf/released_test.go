package hf

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/model"
)

// releasedFolder writes a model in the names of the authors' modules.
func releasedFolder(t *testing.T, m *model.Model, change dict, root, out string) string {
	t.Helper()
	c := m.Config
	dir := t.TempDir()
	config := with(dict{"arch": c.Arch, "vocab": c.Vocab, "context": c.Context, "layers": c.Layers, "d_model": c.Dim,
		"heads": c.Heads, "kv_heads": c.KVHeads, "head_dim": c.HeadDim, "ffn": c.FFN, "rope": "interleaved",
		"rope_theta": c.RopeTheta, "eos_token_id": 3}, change)
	write(t, dir, "config.json", encode(t, config))
	l, err := canonical(c, naming{root, out})
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Entry
	for p := range l.parts() {
		x, err := valuesOf(m)(p.param)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range p.pieces {
			n := q.n * q.width()
			list = append(list, safetensors.FromFloat32s(q.name, "F32", q.shape(), x[:n]))
			x = x[n:]
		}
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	write(t, dir, weightsFile, b.Bytes())
	return dir
}

// TestReleased reads models of the released modules bit for bit, however their builder named the rest.
func TestReleased(t *testing.T) {
	for _, c := range []struct {
		arch, root, out string
		names           []string // tensors that must have been in the file
		change          dict
	}{
		{"diff", "", "out_proj", []string{"layers.1.self_attn.out_proj.weight", "layers.0.self_attn.subln.weight",
			"layers.0.self_attn.lambda_q1"}, dict{"value_dim": 12}},
		{"diff", "model.", "out_proj", []string{"model.layers.1.self_attn.out_proj.weight"},
			dict{"head_norm": "affine"}},
		{"diff2", "", "o_proj", []string{"layers.1.self_attn.lambda_proj.weight", "layers.1.self_attn.o_proj.weight"},
			dict{}},
		{"transformer", "model.", "out_proj", nil, dict{}},
	} {
		m := trained(t, nano(t, c.arch, nothing))
		dir := releasedFolder(t, m, c.change, c.root, c.out)
		back, f, err := Open(ref.New(), dir, layer.Memory{})
		if err != nil {
			t.Errorf("%s: %v", c.arch, err)
			continue
		}
		sameBits(t, back, m)
		if !back.Config.RopeInterleaved || !slices.Equal(f.EOS, []int{3}) {
			t.Errorf("%s: configuration %+v, eos %v", c.arch, back.Config, f.EOS)
		}
		for _, name := range c.names {
			if f.shards.at[name] == nil {
				t.Errorf("%s: tensor %q was not in the file", c.arch, name)
			}
		}
	}
}

// TestReleasedTied: a tied output projection that is stored all the same must be the embedding, whatever names begin
// with.
func TestReleasedTied(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	embed, err := valuesOf(m)("embed.weight")
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"", "model."} {
		dir := releasedFolder(t, m, dict{"tie_embeddings": true}, root, "out_proj") // its lm_head differs
		if _, err := Load(dir); err == nil ||
			!strings.Contains(err.Error(), `"lm_head.weight" differs from "`+root+`embed_tokens.weight"`) {
			t.Errorf("names with %q: error %v", root, err)
		}
	}
	same := trained(t, nano(t, "diff", nothing))
	same.Params.Set(same.Device(), same.Params.Lookup("head.weight"), embed)
	f, err := Load(releasedFolder(t, same, dict{"tie_embeddings": true}, "", "out_proj"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestReleasedRefuses(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	for _, c := range []struct {
		change dict
		text   string
	}{
		{dict{"arch": "gated"}, `arch = "gated"`},
		{dict{"layers": drop}, "layers = absent"},
		{dict{"rope": "none"}, `rope = "none"`},
		{dict{"value_dim": 6}, "value_dim = 6"},
		{dict{"window": 128}, "window = 128"},
		{dict{"head_norm": "layer"}, "head_norm"},
		{dict{"head_norm": "plain"}, `"layers.0.self_attn.subln.weight" belongs to no part`},
		{dict{"context": 1 << 30}, "context = 1073741824"},
	} {
		if _, err := Load(releasedFolder(t, m, c.change, "", "out_proj")); err == nil ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: error %v, want one with %q", c.change, err, c.text)
		}
	}
}

// TestOwnRefuses: our own class says everything twice, and a folder that contradicts itself is not read.
func TestOwnRefuses(t *testing.T) {
	m := trained(t, nano(t, "diff2", nothing))
	good, err := describe(m.Config, Antiphase)
	if err != nil {
		t.Fatal(err)
	}
	own := func(change func(c *model.Config)) dict {
		c := m.Config
		change(&c)
		box := good["antiphase"].(map[string]any)
		return dict{"antiphase": with(box, dict{"model": c})}
	}
	for _, c := range []struct {
		change dict
		text   string
	}{
		{dict{"antiphase": drop}, "antiphase = absent"},
		{dict{"antiphase": dict{"model": dict{"arch": "diff2", "colour": 1}}}, "colour"},
		{dict{"hidden_size": 48}, "hidden_size = 48"},
		{dict{"num_key_value_heads": 4}, "num_key_value_heads = 4"},
		{dict{"logit_scale": 2}, "logit_scale = 2"},
		{own(func(c *model.Config) { c.Dim = 48 }), "does not agree"},
		{own(func(c *model.Config) { c.Layers = 1 << 40 }), "must be at most 16384"},
		{own(func(c *model.Config) { c.Context = 1 << 40 }), "rotary angles"},
		{own(func(c *model.Config) { c.Heads = 3 }), "kv_heads"},
		{own(func(c *model.Config) { c.RopeScaling = &model.RopeScaling{Type: "linear", Factor: 2} }),
			"does not agree"},
	} {
		if _, err := parse(encode(t, with(good, c.change)), nil); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: error %v, want one with %q", c.change, err, c.text)
		}
	}
	if _, err := parse(encode(t, good), nil); err != nil {
		t.Errorf("the unchanged one: %v", err)
	}
}

// TestGeneration reads sampling defaults, and refuses what would steer the text in ways that samplers here do not know.
func TestGeneration(t *testing.T) {
	f, err := parse(encode(t, small("llama")), []byte(
		`{"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.1,
		"max_new_tokens": 99, "num_beams": 1, "no_repeat_ngram_size": 0, "transformers_version": "5.0", "_from_model_config": true, "bad_words_ids": null}`))
	if err != nil {
		t.Fatal(err)
	}
	g := f.Generation
	if !*g.Sample || *g.Temperature != 0.6 || *g.TopP != 0.9 || *g.TopK != 40 || *g.RepetitionPenalty != 1.1 ||
		*g.MaxNewTokens != 99 || g.MinP != nil {
		t.Errorf("read %+v", g)
	}
	for _, c := range []struct{ text, want string }{
		{`{"num_beams": 4}`, "num_beams = 4"}, {`{"temperature": -1}`, "temperature = -1"},
		{`{"top_p": 1.5}`, "top_p = 1.5"},
		{`{"top_k": "many"}`, `top_k = "many"`}, {`{"suppress_tokens": [3]}`, "suppress_tokens = [3]"},
		{`{"stop_strings": ["x"]}`, `stop_strings = ["x"]`},
		{`{"mystery": 7}`, "mystery = 7"}, {`[]`, "generation_config.json"},
	} {
		if _, err := parse(encode(t, small("llama")), []byte(c.text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}
