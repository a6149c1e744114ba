package hf

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/layer"
	"antiphase/model"
)

// small is a complete configuration in today's form.
func small(modelType string) map[string]any {
	c := map[string]any{
		"model_type": modelType, "vocab_size": 32, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
		"hidden_act": "silu", "rope_parameters": map[string]any{"rope_theta": 5000.0, "rope_type": "default"},
		"dtype":        "float32",
		"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": nil,
	}
	return c
}

// with changes keys; a value of drop removes one.
func with(c map[string]any, change map[string]any) map[string]any {
	c = maps.Clone(c)
	for k, v := range change {
		if c[k] = v; v == drop {
			delete(c, k)
		}
	}
	return c
}

const drop = "\x00drop"

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type dict = map[string]any

func TestParse(t *testing.T) {
	f, err := parse(encode(t, small("diffllama")),
		[]byte(`{"eos_token_id": [2, 7, 99], "pad_token_id": 0, "temperature": 0.6}`))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Config{Arch: "diff", Vocab: 32, Context: 64, Layers: 2, Dim: 24, Heads: 2, KVHeads: 1,
		HeadDim: 6, FFN: 20, RopeTheta: 5000, NormEps: 1e-5, HeadNorm: layer.HeadNormPlain, HeadNormEps: 1e-5,
		LambdaInit: model.LambdaSchedule, LambdaStd: 0.1}
	if d := cmp.Diff(want, f.Config); d != "" {
		t.Error(d)
	}
	if f.BOS != 1 || f.Pad != 0 || !slices.Equal(f.EOS, []int{2, 7}) {
		t.Errorf("bos %d, pad %d, eos %v; want 1, 0 and [2 7], 99 being outside the vocabulary", f.BOS, f.Pad, f.EOS)
	}
	f, err = parse(encode(t, small("llama")), nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Arch, want.Heads, want.KVHeads, want.HeadNorm = "transformer", 4, 2, layer.HeadNormOff
	if d := cmp.Diff(want, f.Config); d != "" {
		t.Error(d)
	}
	if f.BOS != 1 || f.Pad != -1 || !slices.Equal(f.EOS, []int{2}) {
		t.Errorf("bos %d, pad %d, eos %v; want 1, −1 and [2]", f.BOS, f.Pad, f.EOS)
	}
}

// TestParseForms reads the same model from today's and from older spellings.
func TestParseForms(t *testing.T) {
	yes := true
	yarn := &model.RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 16, BetaFast: 20, Truncate: &yes}
	for _, c := range []struct {
		name   string
		change dict
		want   func(*model.Config)
	}{
		{"old rope_theta", dict{"rope_parameters": drop, "dtype": drop, "rope_theta": 500000, "torch_dtype": "float16"},
			func(c *model.Config) { c.RopeTheta = 500000 }},
		{"no rope at all", dict{"rope_parameters": drop}, func(c *model.Config) { c.RopeTheta = 10000 }},
		{"old linear", dict{"rope_parameters": drop, "rope_scaling": dict{"type": "linear", "factor": 2}},
			func(c *model.Config) {
				c.RopeTheta, c.RopeScaling = 10000, &model.RopeScaling{Type: "linear", Factor: 2, OriginalContext: 64}
			}},
		{"dynamic", dict{"rope_parameters": dict{"rope_type": "dynamic", "factor": 2, "rope_theta": 1e4}},
			func(c *model.Config) {
				c.RopeTheta, c.RopeScaling = 10000, &model.RopeScaling{Type: "dynamic", Factor: 2, OriginalContext: 64}
			}},
		{"yarn", dict{"rope_parameters": dict{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16,
			"beta_fast": 20, "truncate": true}}, func(c *model.Config) { c.RopeTheta, c.RopeScaling = 10000, yarn }},
		{"llama3", dict{"rope_parameters": drop, "rope_theta": 500000.0,
			"rope_scaling": dict{"rope_type": "llama3", "factor": 8,
				"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}},
			func(c *model.Config) {
				c.RopeTheta = 500000
				c.RopeScaling = &model.RopeScaling{Type: "llama3", Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4,
					OriginalContext: 32}
			}},
		{"head_dim", dict{"head_dim": 16}, func(c *model.Config) { c.HeadDim = 16 }},
		{"no kv heads", dict{"num_key_value_heads": drop}, func(c *model.Config) { c.KVHeads = 4 }},
		{"defaults", dict{"max_position_embeddings": drop, "rms_norm_eps": drop, "hidden_act": drop},
			func(c *model.Config) {
				c.Context, c.NormEps, c.HeadNormEps = 2048, 1e-6, 1e-6
			}},
		{"bias, tied", dict{"attention_bias": true, "tie_word_embeddings": true},
			func(c *model.Config) { c.Bias, c.TieEmbed = true, true }},
		{"idle keys", dict{"_name_or_path": "x", "use_cache": true, "architectures": []string{"LlamaForCausalLM"},
			"quantization_config": nil, "mlp_bias": false, "attention_dropout": 0.1, "pretraining_tp": 2,
			"partial_rotary_factor": 1.0}, func(*model.Config) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, err := parse(encode(t, small("llama")), nil)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parse(encode(t, with(small("llama"), c.change)), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := base.Config
			c.want(&want)
			if d := cmp.Diff(want, f.Config); d != "" {
				t.Error(d)
			}
		})
	}
}

// ropeOf changes the rotary embedding only.
func ropeOf(d dict) dict { return dict{"rope_parameters": d} }

// wrongConfigs are changes of a configuration, with what the error says of each.
var wrongConfigs = []struct {
	change dict
	text   string
}{
	{dict{"model_type": "mistral"}, `model_type = "mistral"`},
	{dict{"model_type": drop}, "model_type = absent"},
	{dict{"architectures": []string{"LlamaForSequenceClassification"}},
		`architectures = ["LlamaForSequenceClassification"]`},
	{dict{"hidden_act": "gelu"}, `hidden_act = "gelu"`},
	{dict{"mlp_bias": true}, "mlp_bias = true"},
	{dict{"sliding_window": 128}, "sliding_window = 128"},
	{dict{"quantization_config": dict{"bits": 4}}, `quantization_config = {"bits":4}`},
	{dict{"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"},
	{dict{"logit_scale": 0.5}, "logit_scale = 0.5"},
	{dict{"arch": "diff"}, `arch = "diff"`},
	{dict{"antiphase": dict{"rope_interleaved": true, "scale": 2}}, "scale = 2"},
	{dict{"vocab_size": 0}, "vocab_size = 0"},
	{dict{"vocab_size": drop}, "vocab_size = absent"},
	{dict{"vocab_size": 1 << 40}, "vocab_size = 1099511627776"},
	{dict{"num_attention_heads": 0}, "num_attention_heads = 0"},
	{dict{"num_attention_heads": -4}, "num_attention_heads = -4"},
	{dict{"num_attention_heads": 4.5}, "num_attention_heads = 4.5"},
	{dict{"num_attention_heads": "4"}, `num_attention_heads = "4"`},
	{dict{"num_attention_heads": 1 << 30}, "num_attention_heads = 1073741824"},
	{dict{"num_key_value_heads": 3}, "num_key_value_heads = 3"},
	{dict{"head_dim": 0}, "head_dim = 0"},
	{dict{"head_dim": 5}, "head_dim"},
	{dict{"num_hidden_layers": 0}, "num_hidden_layers = 0"},
	{dict{"max_position_embeddings": 1 << 30}, "max_position_embeddings = 1073741824"},
	{dict{"rms_norm_eps": -1}, "rms_norm_eps = -1"},
	{dict{"rms_norm_eps": "tiny"}, `rms_norm_eps = "tiny"`},
	{dict{"tie_word_embeddings": 1}, "tie_word_embeddings = 1"},
	{dict{"bos_token_id": []int{1, 2}}, "bos_token_id = [1,2]"},
	{dict{"eos_token_id": "end"}, `eos_token_id = "end"`},
	{dict{"rope_scaling": dict{"type": "linear", "factor": 2}}, "rope_scaling = "},
	{ropeOf(dict{"rope_type": "longrope", "factor": 2}), `rope_type = "longrope"`},
	{dict{"rope_parameters": drop, "rope_scaling": dict{"type": "su", "factor": 2}}, `type = "su"`},
	{ropeOf(dict{"rope_type": "linear", "type": "yarn", "factor": 2}), `rope_type = "linear"`},
	{ropeOf(dict{"rope_type": "linear"}), "factor"},
	{ropeOf(dict{"rope_type": "llama3", "factor": 2}), "low_freq_factor"},
	{ropeOf(dict{"rope_type": "default", "rope_theta": 0}), "rope_theta"},
	{ropeOf(dict{"rope_type": "default", "partial_rotary_factor": 0.25}), "partial_rotary_factor = 0.25"},
	{ropeOf(dict{"rope_type": "yarn", "factor": 2, "attention_factor": 0}), "attention_factor = 0"},
	{ropeOf(dict{"full_attention": dict{"rope_type": "default"}}), "full_attention = "},
	{dict{"rope_parameters": 7}, "rope_parameters = 7"},
}

// TestParseRefuses wants an error that names the key and its value.
func TestParseRefuses(t *testing.T) {
	for _, c := range wrongConfigs {
		_, err := parse(encode(t, with(small("llama"), c.change)), nil)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: error %v, want one with %q", c.change, err, c.text)
		}
	}
	if _, err := parse(encode(t, with(small("llama"),
		dict{"rope_parameters": dict{"rope_theta": 1.0, "rope_type": "yarn", "factor": 2.0}})), nil); err == nil ||
		!strings.Contains(err.Error(), "must be above 1 for yarn") {
		t.Error(err)
	}
	if _, err := parse(encode(t, with(small("diffllama"), dict{"num_attention_heads": 3, "num_key_value_heads": 3})),
		nil); err == nil {
		t.Error("three query heads were taken for differential pairs")
	}
	for _, text := range []string{"", "null", "[]", "{", `{"model_type": "llama"} x`} {
		if _, err := parse([]byte(text), nil); err == nil {
			t.Errorf("config %q was accepted", text)
		}
	}
}

// Numbers that only look wrong.
func TestParseAccepts(t *testing.T) {
	for _, change := range []dict{
		{"num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8},
		{"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 8},
		{"num_attention_heads": 1, "num_key_value_heads": 1},
		{"rope_parameters": dict{"rope_theta": 1.0, "rope_type": "linear", "factor": 2.0}},
		{"rope_parameters": dict{"rope_theta": 1.5, "rope_type": "yarn", "factor": 2.0}}, {"rms_norm_eps": 0},
	} {
		if _, err := parse(encode(t, with(small("llama"), change)), nil); err != nil {
			t.Errorf("%v: %v", change, err)
		}
	}
}

// A count from 1 to 7, 3 by default.
func TestCounts(t *testing.T) {
	for raw, want := range map[string]int{"1": 1, "7": 7, "8": 0, "0": 0, "-1": 0, "1.0": 0, "\"7\"": 0, "null": 3} {
		o, err := parseObject("o", []byte(`{"n":`+raw+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.count("n", 3, 7); (*o.err == nil) != (want > 0) || want > 0 && got != want {
			t.Errorf("%s: %d, %v", raw, got, *o.err)
		}
	}
}

// FuzzConfig feeds arbitrary configurations: they give an error or a configuration that a parameter table can be laid
// out for.
func FuzzConfig(f *testing.F) {
	for _, kind := range []string{"llama", "diffllama"} {
		f.Add(encode(f, small(kind)), []byte(`{"eos_token_id": [1, 2]}`))
	}
	found, _ := filepath.Glob("testdata/*/config.json")
	for _, path := range found {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		folder, err := parse(config, generation)
		if err != nil {
			return
		}
		n := 0
		for p := range folder.layout.parts() {
			if n++; n == 32 {
				break // the number of layers is vouched for by tensors, not by this file
			}
			for _, q := range p.pieces {
				if q.from < 0 || q.n <= 0 || q.from+q.n > q.rows {
					t.Fatalf("%s: rows [%d,%d) of %v", p.param, q.from, q.from+q.n, q.source)
				}
			}
		}
	})
}
