package hf

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/model"
)

// readJSON is a file as any JSON reader sees it, numbers as they are written.
func readJSON(t *testing.T, dir, name string) (m map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// writtenConfig is the config.json of an export, which must choose the class by itself.
func writtenConfig(t *testing.T, arch string, class Class) map[string]any {
	t.Helper()
	m := trained(t, nano(t, arch, func(c *model.Config) {
		c.NormEps, c.HeadNormEps, c.RopeTheta, c.TieEmbed, c.RopeInterleaved, c.LambdaStd = 1e-3, 1e-3, 50000,
			true, false, 0.25
	}))
	dir := filepath.Join(t.TempDir(), "x")
	e := &Export{Config: m.Config, Values: valuesOf(m), DType: "bfloat16",
		Tokens: Tokens{BOS: -1, Pad: 7, EOS: []int{3, 5}}}
	if got, err := e.Resolve(); got != class || err != nil {
		t.Fatalf("%s is a %s, %v", arch, got, err)
	}
	if err := e.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	return readJSON(t, dir, "config.json")
}

// config.json of each class, key by key, in the terms of transformers: LlamaConfig and DiffLlamaConfig count single
// query and key heads; numbers that it declares as float have a point.
func TestConfigJSON(t *testing.T) {
	common := map[string]string{
		"vocab_size": "40", "hidden_size": "24", "intermediate_size": "20", "num_hidden_layers": "2", "head_dim": "6",
		"hidden_act": "silu", "max_position_embeddings": "32", "rms_norm_eps": "0.001",
		"attention_bias": "false", "tie_word_embeddings": "true", "initializer_range": "0.02", "use_cache": "true",
		"bos_token_id": "<nil>", "eos_token_id": "[3 5]", "pad_token_id": "7", "dtype": "bfloat16",
	}
	for _, x := range []struct {
		arch  string
		class Class
		more  map[string]string
	}{
		{"transformer", Llama, map[string]string{"architectures": "[LlamaForCausalLM]", "model_type": "llama",
			"num_attention_heads": "4", "num_key_value_heads": "2", "attention_dropout": "0.0", "mlp_bias": "false",
			"rope_parameters": "map[rope_theta:50000.0 rope_type:default]", "rope_theta": "50000.0"}},
		{"diff", DiffLlama, map[string]string{"architectures": "[DiffLlamaForCausalLM]", "model_type": "diffllama",
			"num_attention_heads": "8", "num_key_value_heads": "4", "attention_dropout": "0.0",
			"lambda_std_dev": "0.25", "rope_parameters": "map[rope_theta:50000.0 rope_type:default]",
			"rope_theta": "50000.0"}},
		{"diff2", Antiphase, map[string]string{"architectures": "[AntiphaseForCausalLM]", "model_type": "antiphase",
			"num_attention_heads": "4", "num_key_value_heads": "2",
			"auto_map": "map[AutoConfig:configuration_antiphase.AntiphaseConfig " +
				"AutoModelForCausalLM:modeling_antiphase.AntiphaseForCausalLM]"}},
	} {
		want := maps.Clone(common)
		maps.Copy(want, x.more)
		got := writtenConfig(t, x.arch, x.class)
		own := got["antiphase"]
		if delete(got, "antiphase"); (own != nil) != (x.class == Antiphase) {
			t.Errorf("%s: our own part is %v", x.class, own)
		}
		for key := range maps.Keys(got) {
			if fmt.Sprint(got[key]) != want[key] {
				t.Errorf("%s: %s is %v, want %s", x.class, key, got[key], want[key])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: keys %v, want %v", x.class, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// The part of config.json that only our own class has.
func TestOwnConfigJSON(t *testing.T) {
	own, ok := writtenConfig(t, "diff2", Antiphase)["antiphase"].(map[string]any)
	if !ok {
		t.Fatal("there is none")
	}
	for key, want := range map[string]string{"queries": "2", "keys": "1", "values": "1", "lambda": "projection",
		"rope_factor": "<nil>"} {
		if fmt.Sprint(own[key]) != want {
			t.Errorf("antiphase.%s is %v, want %s", key, own[key], want)
		}
	}
	for j, f := range own["rope_frequencies"].([]any) { // θ^(−2j/d)
		x, err := f.(json.Number).Float64()
		if w := math.Pow(50000, -2*float64(j)/6); err != nil || !(math.Abs(x/w-1) <= 1e-6) {
			t.Errorf("frequency %d is %g, want %g", j, x, w)
		}
	}
	if n := len(own["rope_frequencies"].([]any)); n != 3 || len(own["lambda_init"].([]any)) != 2 {
		t.Errorf("%d frequencies", n)
	}
}

// The rotary embedding in transformers' words: each number that is set under its own key.
func TestRopeParameters(t *testing.T) {
	no := false
	s := &model.RopeScaling{Type: "yarn", Factor: 2, LowFreqFactor: 3, HighFreqFactor: 4, BetaFast: 5, BetaSlow: 6,
		AttentionFactor: 7, MScale: 8, MScaleAllDim: 9, OriginalContext: 10, Truncate: &no}
	got := ropeParameters(model.Config{RopeTheta: 11, RopeScaling: s})
	want := map[string]any{"rope_theta": decimal(11), "rope_type": "yarn", "factor": decimal(2),
		"low_freq_factor": decimal(3), "high_freq_factor": decimal(4), "beta_fast": decimal(5), "beta_slow": decimal(6),
		"attention_factor": decimal(7), "mscale": decimal(8), "mscale_all_dim": decimal(9),
		"original_max_position_embeddings": 10, "truncate": false}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if got := ropeParameters(model.Config{RopeTheta: 11,
		RopeScaling: &model.RopeScaling{Type: "linear", Factor: 2}}); !reflect.DeepEqual(got,
		map[string]any{"rope_theta": decimal(11), "rope_type": "linear", "factor": decimal(2)}) {
		t.Errorf("what is not set: %v", got)
	}
	for x, text := range map[float64]string{1: "1.0", 10000: "10000.0", 0.5: "0.5", 1e-5: "0.00001", 1e-7: "1e-7",
		1e21: "1e+21", 0: "0.0"} {
		if b, err := json.Marshal(decimal(x)); err != nil || string(b) != text {
			t.Errorf("%g is written %s, %v; want %s", x, b, err, text)
		}
	}
}

// The index of several files, by a reader of its own: every tensor once, in the file that has it, and the bytes of all.
func TestIndex(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	dir := filepath.Join(t.TempDir(), "x")
	if err := (&Export{Config: m.Config, Values: valuesOf(m), DType: "float16", ShardBytes: 3000}).Write(dir,
		false); err != nil {
		t.Fatal(err)
	}
	index := readJSON(t, dir, indexFile)
	files, total := map[string]int{}, int64(0)
	for name, file := range index["weight_map"].(map[string]any) {
		f, err := safetensors.Open(filepath.Join(dir, file.(string)))
		if err != nil {
			t.Fatal(err)
		}
		info, ok := f.Info(name)
		if !ok {
			t.Fatalf("%s is not in %s", name, file)
		}
		n := int64(info.DType.Size())
		for _, d := range info.Shape {
			n *= int64(d)
		}
		if lambda := strings.Contains(name, ".lambda_"); (info.DType == safetensors.F32) != lambda ||
			(info.DType == safetensors.F16) == lambda {
			t.Errorf("%s is stored as %s", name, info.DType)
		}
		if total += n; f.Metadata()["format"] != "pt" {
			t.Errorf("%s has the format %q", file, f.Metadata()["format"])
		}
		files[file.(string)]++
		f.Close()
	}
	if got := fmt.Sprint(index["metadata"].(map[string]any)["total_size"]); got != fmt.Sprint(total) {
		t.Errorf("total_size is %s, the tensors have %d bytes", got, total)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	for i := range found {
		if name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(found)); files[name] == 0 {
			t.Errorf("no tensor in %s of %v", name, found)
		}
	}
	if len(files) != len(found) || len(found) < 3 {
		t.Errorf("%d files in the index, %d in the folder", len(files), len(found))
	}
}

// Which class computes what, by the parts of a configuration.
func TestNativeClasses(t *testing.T) {
	for _, x := range []struct {
		arch   string
		change func(*model.Config)
		class  Class
		why    string
	}{
		{"transformer", nothing, Llama, ""}, {"diff", nothing, DiffLlama, ""},
		{"diff2", nothing, "", "transformers has no class for"},
		{"transformer", func(c *model.Config) { c.HeadNorm = layer.HeadNormPlain }, "",
			"llama has no norm over a head's output"},
		{"diff", func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }, "",
			"diffllama always has a norm over a head's output"},
		{"diff", func(c *model.Config) { c.HeadNorm = layer.HeadNormPlain }, DiffLlama, ""},
		{"diff", func(c *model.Config) { c.NormEps, c.HeadNormEps = 1e-5, 1e-6 }, DiffLlama, ""},
	} {
		c := nano(t, x.arch, x.change)
		if class, why := nativeClass(c); class != x.class || !strings.HasPrefix(why, x.why) ||
			(why == "") != (x.why == "") {
			t.Errorf("%s: %q, %q; want %q, %q", x.arch, class, why, x.class, x.why)
		}
		if why := noClass(c); why != "" {
			t.Errorf("%s: %s", x.arch, why)
		}
		want := x.class
		if want == "" {
			want = Antiphase
		}
		for _, asked := range []Class{"", Auto, Antiphase} {
			got, err := (&Export{Config: c, Class: asked}).Resolve()
			if asked == Antiphase && got != Antiphase || asked != Antiphase && got != want || err != nil {
				t.Errorf("%s as %q is %s, %v", x.arch, asked, got, err)
			}
		}
	}
	for _, x := range []struct {
		norm, head float64
		class      Class
	}{{1e-5, 0, ""}, {0, 1e-5, ""}, {0, 0, DiffLlama}, {1e-5, 1e-5, DiffLlama}, {1e-5, 1e-6, DiffLlama}} {
		c := nano(t, "diff", nothing)
		c.NormEps, c.HeadNormEps = x.norm, x.head
		if class, why := nativeClass(c); class != x.class || strings.Contains(why, "one epsilon") != (class == "") {
			t.Errorf("epsilons of %g and %g: %q, %q", x.norm, x.head, class, why)
		}
	}
}

// What not even our own class computes.
func TestNoClass(t *testing.T) {
	across := func(c *model.Config) { c.Pairing, c.HeadNorm = layer.PairingAcross, layer.HeadNormOff }
	if why := noClass(nano(t, "diff2", across)); !strings.Contains(why, "an ablation of DIFF V2") {
		t.Errorf("pairs across groups: %q", why)
	}
	if why := noClass(nano(t, "diff2",
		func(c *model.Config) { c.LambdaForm = layer.LambdaLinear })); !strings.Contains(why,
		"an ablation of DIFF V2") {
		t.Errorf("another form of λ: %q", why)
	}
	if why := noClass(nano(t, "gda", nothing)); !strings.Contains(why, "share query heads") {
		t.Errorf("shared query heads: %q", why)
	}
}

// Ids that exist are written, also those of 0; the others are null, which is not the same as absent.
func TestTokenIDs(t *testing.T) {
	for _, x := range []struct {
		ids  Tokens
		want map[string]any
	}{
		{Tokens{BOS: 0, Pad: 0, EOS: []int{0}},
			map[string]any{"bos_token_id": 0, "pad_token_id": 0, "eos_token_id": 0}},
		{Tokens{BOS: -1, Pad: -1}, map[string]any{"bos_token_id": nil, "pad_token_id": nil, "eos_token_id": nil}},
		{Tokens{BOS: 3, Pad: -1, EOS: []int{4, 0}},
			map[string]any{"bos_token_id": 3, "pad_token_id": nil, "eos_token_id": []int{4, 0}}},
		{Tokens{BOS: -1, Pad: 5, EOS: []int{6}},
			map[string]any{"bos_token_id": nil, "pad_token_id": 5, "eos_token_id": 6}},
	} {
		got := map[string]any{"bos_token_id": 9, "eos_token_id": 9, "pad_token_id": 9}
		if x.ids.into(got); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%+v: %v", x.ids, got)
		}
	}
}

// Keys that a file leaves out have the defaults of DiffLlamaConfig and of the released modules.
func TestDefaultsOfClasses(t *testing.T) {
	f := mustParse(t, with(small("diffllama"),
		dict{"rms_norm_eps": drop, "num_key_value_heads": drop, "max_position_embeddings": drop,
			"rope_parameters": drop, "bos_token_id": drop, "eos_token_id": drop}))
	c := f.Config
	if c.NormEps != 1e-5 || c.HeadNormEps != 1e-5 || c.LambdaStd != 0.1 || c.Heads != 2 || c.KVHeads != 2 ||
		c.HeadDim != 6 || c.Context != 2048 || c.RopeTheta != 10000 || c.RopeInterleaved || f.BOS != -1 ||
		f.Pad != -1 || f.EOS != nil {
		t.Errorf("%+v, %d, %d, %v", c, f.BOS, f.Pad, f.EOS)
	}
	if c := mustParse(t, with(small("diffllama"),
		dict{"lambda_std_dev": 0.3, "head_dim": 8, "rms_norm_eps": 0.5})).Config; c.LambdaStd != 0.3 ||
		c.HeadDim != 8 || c.NormEps != 0.5 || c.HeadNormEps != 0.5 {
		t.Errorf("%+v", c)
	}
	c = mustParse(t, releasedShape).Config
	if c.Context != 2048 || c.KVHeads != 2 || c.HeadDim != 6 || c.RopeTheta != 10000 || c.NormEps != 1e-5 ||
		c.HeadNormEps != 1e-5 || !c.RopeInterleaved || c.HeadNorm != layer.HeadNormAffine || c.TieEmbed {
		t.Errorf("%+v", c)
	}
	c = mustParse(t, with(releasedShape,
		dict{"rope": "half", "kv_heads": 1, "norm_eps": 1e-4, "head_norm_eps": 1e-3, "rope_theta": 7,
			"tie_embeddings": true, "context": 9, "head_norm": "off"})).Config
	if c.RopeInterleaved || c.KVHeads != 1 || c.NormEps != 1e-4 || c.HeadNormEps != 1e-3 || c.RopeTheta != 7 ||
		!c.TieEmbed || c.Context != 9 || c.HeadNorm != layer.HeadNormOff {
		t.Errorf("%+v", c)
	}
	// One value per head, not two.
	if c := mustParse(t, with(releasedShape, dict{"arch": "transformer"})).Config; c.HeadDim != 12 {
		t.Errorf("a head of %d", c.HeadDim)
	}
	yarn := dict{"rope_parameters": dict{"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}}
	if _, err := parse(encode(t, with(small("llama"), yarn)), nil); err == nil ||
		!strings.Contains(err.Error(), "must be above 1 for yarn") {
		t.Errorf("yarn with a base of 1: %v", err)
	}
	for _, empty := range []any{nil, []int{}, dict{}} { // unknown keys without a value do nothing
		if _, err := parse(encode(t, with(small("llama"), dict{"new_thing": empty})), nil); err != nil {
			t.Error(err)
		}
	}
}
