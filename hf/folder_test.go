package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/device/ref"
	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// A rotary table may always take 256 MiB, and four times the bytes of the weights: both sides of each.
func TestContextAgainstWeights(t *testing.T) {
	const header = `{"a":{"dtype":"F32","shape":[33554432],"data_offsets":[0,134217728]}}` // 128 MiB of weights
	path := filepath.Join(t.TempDir(), weightsFile)
	f, err := os.Create(path)
	if err == nil {
		_, err = f.Write(append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...))
	}
	if err == nil {
		err = errors.Join(f.Truncate(int64(8+len(header))+1<<27), f.Close())
	}
	if err != nil {
		t.Skipf("no room for a sparse file: %v", err)
	}
	weights, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	for _, c := range []struct {
		context int // times 8 values of 4 bytes
		files   []*safetensors.File
		good    bool
	}{
		{1 << 23, nil, true}, {1<<23 + 1, nil, false}, {1<<23 + 1, []*safetensors.File{weights}, true},
		{1 << 24, []*safetensors.File{weights}, true}, {1<<24 + 1, []*safetensors.File{weights}, false},
	} {
		folder := &Folder{Config: model.Config{Context: c.context, HeadDim: 8}, shards: &shards{files: c.files}}
		want := fmt.Sprintf("config.json: a context of %d tokens takes a rotary table of %d bytes, the weights are "+
			"%d bytes; state a shorter one", c.context, c.context*8*4, len(c.files)<<27)
		if err := folder.checkContext(); (err == nil) != c.good || err != nil && err.Error() != want {
			t.Errorf("%d tokens and %d files: %v", c.context, len(c.files), err)
		}
	}
	released := dict{"arch": "transformer", "vocab": 32, "layers": 2, "d_model": 32, "heads": 4, "ffn": 20}
	for context, good := range map[int]bool{1 << 25: true, 1<<25 + 1: false} { // 2²⁸ angles of heads of 8
		_, err := parse(encode(t, with(small("llama"), dict{"head_dim": 8, "max_position_embeddings": context})), nil)
		_, other := parse(encode(t, with(released, dict{"context": context})), nil)
		if (err == nil) != good || (other == nil) != good {
			t.Errorf("a context of %d: %v, %v", context, err, other)
		}
	}
}

// Features that are not computed are refused by name unless their value turns them off, and a folder's class must be
// that of its type.
func TestNeutralKeys(t *testing.T) {
	for key, values := range map[string][2]any{
		"mlp_bias": {false, true}, "rope_interleaved": {false, true}, "use_sliding_window": {false, true},
		"is_encoder_decoder": {false, true}, "add_cross_attention": {false, true},
		"partial_rotary_factor": {1, 0.5}, "pruned_heads": {dict{}, dict{"0": []int{1}}},
		"quantization_config": {nil, dict{"bits": 4}}, "sliding_window": {nil, 4096},
		"hidden_act":        {"swish", "relu"},
		"attention_dropout": {0.5, nil}, "torch_dtype": {"float16", nil}, "_anything": {7, nil},
		"architectures": {[]string{"X", "LlamaForCausalLM"}, []string{"DiffLlamaForCausalLM"}},
		"max_length":    {20, nil},
		"":              {nil, 1}, "unknown": {[]int{}, 0},
	} {
		if _, err := parse(encode(t, with(small("llama"), dict{key: values[0]})), nil); err != nil {
			t.Errorf("%s = %v: %v", key, values[0], err)
		}
		if values[1] == nil {
			continue
		}
		if _, err := parse(encode(t, with(small("llama"), dict{key: values[1]})), nil); err == nil ||
			!strings.HasPrefix(err.Error(), "config.json: "+key+" = ") {
			t.Errorf("%s = %v: %v", key, values[1], err)
		}
	}
	if _, err := parse(encode(t, with(small("diffllama"), dict{"architectures": []string{"LlamaForCausalLM"}})),
		nil); err == nil || !strings.Contains(err.Error(), "must be DiffLlamaForCausalLM") {
		t.Errorf("another class: %v", err)
	}
	long := strings.Repeat("x", 100)
	if _, err := parse(encode(t, with(small("llama"), dict{"hidden_act": long})), nil); err == nil ||
		!strings.Contains(err.Error(), `"`+long[:79]+`…: `) || strings.Contains(err.Error(), long[:80]) {
		t.Errorf("a long value: %v", err)
	}
}

// Every number of a scaled rotary embedding is read under its own key.
func TestRopeKeys(t *testing.T) {
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		no := false
		f := mustParse(t, with(small("llama"),
			dict{"rope_parameters": drop, "rope_theta": 3.0,
				key: dict{"rope_type": "yarn", "type": "yarn", "factor": 2, "beta_fast": 20, "beta_slow": 4,
					"attention_factor": 1.5, "mscale": 0.75, "mscale_all_dim": 0.5,
					"original_max_position_embeddings": 16, "truncate": false, "partial_rotary_factor": 1.0}}))
		want := &model.RopeScaling{Type: "yarn", Factor: 2, BetaFast: 20, BetaSlow: 4, AttentionFactor: 1.5,
			MScale: 0.75, MScaleAllDim: 0.5, OriginalContext: 16, Truncate: &no}
		if d := cmp.Diff(want, f.Config.RopeScaling); d != "" || f.Config.RopeTheta != 3 {
			t.Errorf("%s: θ %g, %s", key, f.Config.RopeTheta, d)
		}
	}
}

// What the Python class of a folder reads beside our configuration: maps, keys and values per head, how λ is made and
// its first values by the paper's schedule, and YaRN's factor.
func TestOwnNumbers(t *testing.T) {
	yarn := func(c *model.Config) {
		c.HeadNorm, c.RopeScaling = layer.HeadNormAffine,
			&model.RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 8}
	}
	for _, c := range []struct {
		arch   string
		change func(*model.Config)
		counts [3]int
		lambda string
		init   [2]float64
		factor any
	}{
		{"transformer", yarn, [3]int{1, 1, 1}, "none", [2]float64{0.2, 0.8 - 0.6*math.Exp(-0.3)}, 0.1*math.Log(4) + 1},
		{"diff", func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }, [3]int{2, 2, 2}, "vectors",
			[2]float64{0.2, 0.8 - 0.6*math.Exp(-0.3)}, nil},
		{"diff", func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, 0.3 }, [3]int{2, 2, 2},
			"vectors", [2]float64{0.3, 0.3}, nil},
	} {
		m, err := describe(nano(t, c.arch, c.change), Antiphase)
		if err != nil {
			t.Fatal(err)
		}
		own := m["antiphase"].(map[string]any)
		if got := [3]int{own["queries"].(int), own["keys"].(int), own["values"].(int)}; got != c.counts ||
			own["lambda"] != c.lambda {
			t.Errorf("%s: %v, λ %v", c.arch, got, own["lambda"])
		}
		for i, x := range own["lambda_init"].([]float64) {
			if !(math.Abs(x-c.init[i]) <= 1e-12) {
				t.Errorf("%s: λ of layer %d begins at %g, want %g", c.arch, i, x, c.init[i])
			}
		}
		if got, _ := own["rope_factor"].(float64); c.factor == nil && own["rope_factor"] != nil || c.factor != nil &&
			!(math.Abs(got-c.factor.(float64)) <= 1e-12) {
			t.Errorf("%s: factor %v, want %v", c.arch, own["rope_factor"], c.factor)
		}
	}
	for _, e := range []*Export{{Config: nano(t, "gda", nothing)},
		{Config: nano(t, "gda", nothing), Class: Antiphase}} {
		if _, err := e.Resolve(); err == nil || !strings.Contains(err.Error(), "share query heads") ||
			!strings.HasSuffix(err.Error(), "which no transformers class computes: keep the run folder") {
			t.Errorf("shared queries: %v", err)
		}
	}
}

// Single parameters and all of them in turn are what the opened model has; an error of either end arrives.
func TestValuesAndWeights(t *testing.T) {
	c := with(small("diffllama"), dict{"attention_bias": true})
	dir := writeFolder(t, c, tensors(mustParse(t, c).layout, 3))
	m, _, err := Open(ref.New(), dir, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	get := f.Values()
	err = f.Weights(func(name string, x []float32) error {
		names = append(names, name)
		want, _ := valuesOf(m)(name)
		if one, err := get(name); err != nil || !slices.Equal(one, x) || !slices.Equal(x, want) {
			t.Errorf("%s: %d, %d and %d values, %v", name, len(one), len(x), len(want), err)
		}
		return nil
	})
	if err != nil || len(names) != len(m.Params.List) {
		t.Errorf("%d of %d parameters, %v", len(names), len(m.Params.List), err)
	}
	if _, err := get("none"); err == nil || !strings.Contains(err.Error(), `there is no parameter "none"`) {
		t.Error(err)
	}
	lost := errors.New("lost")
	if err := f.Weights(func(string, []float32) error { return lost }); !errors.Is(err, lost) ||
		!strings.HasPrefix(err.Error(), "model folder "+dir+": ") {
		t.Error(err)
	}
	for _, wrong := range []Values{
		func(name string) ([]float32, error) { return nil, lost },
		func(name string) ([]float32, error) {
			x, err := get(name)
			if strings.HasSuffix(name, "1.attn.lambda_k2") {
				x = x[1:]
			}
			return x, err
		},
	} {
		if list, known, err := Lambdas(f.Config, wrong); err == nil || list != nil || !known {
			t.Errorf("%v, %v, %v", list, known, err)
		}
	}
}

// Files that are not what they should be: tensors of another type or in two files, and weights in a format that runs
// code.
func TestFilesRefused(t *testing.T) {
	c := small("llama")
	all := tensors(mustParse(t, c).layout, 1)
	dir := t.TempDir()
	write(t, dir, "config.json", encode(t, c))
	for _, name := range []string{"a.bin", "a.bin.index.json", "a.pt", "a.pth", "a.ckpt"} {
		write(t, dir, name, nil)
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), name+": pickled weights are not read") {
			t.Errorf("%s: %v", name, err)
		}
		os.Remove(filepath.Join(dir, name))
	}
	write(t, dir, weightsFile, weights(t, c, all, "F64"))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "is F64, must be F32, F16 or BF16") {
		t.Errorf("float64: %v", err)
	}
	dir = writeSharded(t, func(map[string]string) {})
	full := tensors(mustParse(t, small("diffllama")).layout, 1)
	names := slices.Sorted(maps.Keys(full))
	first := names[0]
	odd := map[string][]float32{first: full[first]} // belongs to the first shard
	for i := 1; i < len(names); i += 2 {
		odd[names[i]] = full[names[i]]
	}
	write(t, dir, shardNames[1], weights(t, small("diffllama"), odd, "BF16"))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), `tensor "`+first+`" is in another shard too`) {
		t.Errorf("a tensor in two files: %v", err)
	}
	write(t, dir, "exact", []byte("12345"))
	if b, err := ReadFile(dir, "exact", 5); err != nil || string(b) != "12345" {
		t.Errorf("a file of its limit: %q, %v", b, err)
	}
	if _, err := ReadFile(dir, "exact", 4); err == nil ||
		!strings.Contains(err.Error(), "exact is larger than 4 bytes") {
		t.Error(err)
	}
	if _, err := ReadFile(dir, "none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What the cache lacks is said with the command that fetches it; the padding token is named everywhere.
func TestCacheAndPad(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_HUB_CACHE", home)
	if _, err := Cached("org/other@v1"); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(),
			`model org/other is not in the cache `+home+`; "hf download org/other" fetches it`) {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "models--org--name", "refs", "pr"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"", "@v1"} {
		want := `there is no snapshot of revision "` + strings.TrimPrefix(revision, "@") + `"`
		if revision == "" {
			want = `there is no snapshot of revision "main"`
		}
		if _, err := Cached("org/name" + revision); !errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", revision, err)
		}
	}
	if _, err := Cached("org/name@pr"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder of references: %v", err)
	}
	tok := tokenizer.Bytes()
	pad, _ := tok.Pad()
	files, ids, err := TokenizerFiles(tok, 5, -1, nil)
	if err != nil || ids.Pad != int(pad) || ids.BOS != -1 {
		t.Fatalf("%+v, %v", ids, err)
	}
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		if !strings.Contains(string(files[name]), `"pad_token": "<|pad|>"`) {
			t.Errorf("%s:\n%s", name, files[name])
		}
	}
	if _, there := files["chat_template.jinja"]; there || len(files) != 3 ||
		!strings.Contains(string(files["tokenizer_config.json"]), `"tokenizer_class": "PreTrainedTokenizerFast"`) {
		t.Errorf("%d files", len(files))
	}
	if _, _, err := TokenizerFiles(tok, 5, 9999, nil); err == nil {
		t.Error("a token that is not there begins texts")
	}
}
