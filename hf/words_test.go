package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// releasedShape is a configuration of the authors' released modules: the keys that must be there.
var releasedShape = dict{"arch": "diff", "vocab": 32, "layers": 2, "d_model": 24, "heads": 2, "ffn": 20}

// What is refused, in whole sentences: the file, the key, its value and what would be right.
func TestRefusalsInWords(t *testing.T) {
	long := strings.Repeat("x", 90)
	for _, c := range []struct {
		base, change dict
		want         string
	}{
		{small("llama"), dict{"model_type": "mistral"},
			`config.json: model_type = "mistral": must be "llama", "diffllama" or "antiphase"`},
		{small("llama"), dict{"architectures": []string{"X"}},
			`config.json: architectures = ["X"]: must be LlamaForCausalLM`},
		{small("diffllama"), dict{"architectures": []string{"X"}},
			`config.json: architectures = ["X"]: must be DiffLlamaForCausalLM`},
		{small("llama"), dict{"hidden_act": "gelu"}, `config.json: hidden_act = "gelu": only "silu" is supported`},
		{small("llama"), dict{"vocab_size": 0},
			`config.json: vocab_size = 0: must be a whole number from 1 to 2147483647`},
		{small("llama"), dict{"num_attention_heads": 70000},
			`config.json: num_attention_heads = 70000: must be a whole number from 1 to 65536`},
		{small("llama"), dict{"num_key_value_heads": 3},
			`config.json: num_key_value_heads = 3: must divide num_attention_heads = 4`},
		{small("diffllama"), dict{"num_attention_heads": 3, "num_key_value_heads": 3},
			`config.json: num_attention_heads = 3: must be even: two query heads make one differential head`},
		{small("llama"), dict{"max_position_embeddings": 1 << 30},
			`config.json: max_position_embeddings = 1073741824: times head_dim = 6 is more than 268435456 rotary ` +
				`angles`},
		{small("llama"), dict{"rms_norm_eps": -1}, `config.json: rms_norm_eps = -1: must not be negative`},
		{small("llama"), dict{"rms_norm_eps": "tiny"}, `config.json: rms_norm_eps = "tiny": must be a number`},
		{small("llama"), dict{"tie_word_embeddings": 1},
			`config.json: tie_word_embeddings = 1: must be true or false`},
		{small("llama"), dict{"hidden_act": 3}, `config.json: hidden_act = 3: must be a string`},
		{small("llama"), dict{"architectures": "X"}, `config.json: architectures = "X": must be a list of strings`},
		{small("llama"), dict{"rope_parameters": 7}, `config.json: rope_parameters = 7: must be an object`},
		{small("llama"), dict{"bos_token_id": []int{1, 2}},
			`config.json: bos_token_id = [1,2]: must be one token id`},
		{small("llama"), dict{"eos_token_id": "end"},
			`config.json: eos_token_id = "end": must be a token id or a list of them`},
		{small("llama"), dict{"logit_scale": 2},
			`config.json: logit_scale = 2: is unknown and might change results`},
		{small("llama"), dict{"logit_scale": long[:78]}, `config.json: logit_scale = "` + long[:78] +
			`": is unknown and might change results`},
		{small("llama"), dict{"logit_scale": long[:79]}, `config.json: logit_scale = "` + long[:79] +
			`…: is unknown and might change results`},
		{small("llama"), dict{"rope_parameters": dict{"rope_type": "linear", "type": "yarn", "factor": 2}},
			`config.json: rope_parameters: rope_type = "linear": differs from type = yarn`},
		{releasedShape, dict{"value_dim": 6}, `config.json: value_dim = 6: must be 2 × head_dim = 6`},
		{releasedShape, dict{"context": 1 << 30},
			`config.json: context = 1073741824: times head_dim = 6 is more than 268435456 rotary angles`},
		{releasedShape, dict{"rope": "none"}, `config.json: rope = "none": must be "interleaved" or "half"`},
	} {
		if _, err := parse(encode(t, with(c.base, c.change)), nil); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.change, err, c.want)
		}
	}
}

// The same for the defaults of generation.
func TestGenerationInWords(t *testing.T) {
	for _, c := range []struct {
		base             dict
		generation, want string
	}{
		{small("llama"), `{"top_p":1.5}`, `generation_config.json: top_p = 1.5: must be from 0 to 1`},
		{small("llama"), `{"repetition_penalty":0}`,
			`generation_config.json: repetition_penalty = 0: must be from 1e-06 to 1e+06`},
		{small("llama"), `{"top_k":-1}`, `generation_config.json: top_k = -1: must not be negative`},
		{small("llama"), `{"top_k":"x"}`, `generation_config.json: top_k = "x": must be a whole number`},
		{small("llama"), `{"num_beams":2}`, `generation_config.json: num_beams = 2: is not supported`},
		{releasedShape, `{"num_beams":2}`, `generation_config.json: num_beams = 2: is not supported`},
	} {
		if _, err := parse(encode(t, c.base), []byte(c.generation)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.generation, err, c.want)
		}
	}
}

// What is wrong with the files of a folder, in whole sentences that begin with the folder.
func TestFilesInWords(t *testing.T) {
	for _, c := range []struct{ index, want string }{
		{`{"weight_map":{}}`, indexFile + ": weight_map names no shards"},
		{`{"weight_map":{"a":"b.bin"}}`, indexFile + `: weight_map: "a": "b.bin" is not a safetensors file`},
		{`{"weight_map":{"a":"../b.safetensors"}}`, indexFile +
			`: weight_map: "a": "../b.safetensors" is not a plain file name`},
		{`{"weight_map":{"a":"NUL:.safetensors"}}`, indexFile +
			`: weight_map: "a": "NUL:.safetensors" is not a plain file name`},
		{`{"weight_map":{"a":""}}`, indexFile + `: weight_map: "a": "" is not a plain file name`},
		{`{"weight_map":{"a":"b.safetensors"}}`, `b.safetensors: tensor "a" is not there, though ` +
			indexFile + " says so"},
		{"", "neither " + weightsFile + " nor " + indexFile + " is there"},
	} {
		dir := t.TempDir()
		write(t, dir, "config.json", encode(t, small("llama")))
		write(t, dir, "b.safetensors", weights(t, small("llama"),
			tensors(mustParse(t, small("llama")).layout, 1), "F16"))
		if c.index != "" {
			write(t, dir, indexFile, []byte(c.index))
		}
		if _, err := Load(dir); err == nil || err.Error() != "model folder "+dir+": "+c.want {
			t.Errorf("%s: %v, want %s", c.index, err, c.want)
		}
	}
}

// What is wrong with a name of the Hub or with its place in the cache.
func TestCacheInWords(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_HUB_CACHE", home)
	if err := os.MkdirAll(filepath.Join(home, "models--org--name", "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"name": `"name" is not a name like org/model`, "org/name@x": fmt.Sprintf(
			"model org/name in the cache %s: there is no snapshot of revision %q: file does not exist", home, "x"),
		"org/other@y": fmt.Sprintf("model org/other is not in the cache %s; %q fetches it: file does not exist", home,
			"hf download org/other"),
	} {
		if _, err := Cached(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(home, "models--org--name", "refs", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "models--org--name", "snapshots"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "models--org--name", "snapshots"), "file", nil)
	write(t, filepath.Join(home, "models--org--name", "refs"), "empty", nil)
	write(t, filepath.Join(home, "models--org--name", "refs"), "up", []byte("..\n"))
	for revision, want := range map[string]string{"file": "there is no snapshot",
		"empty": `points to "", which is not a snapshot's name`,
		"up":    `revision "up" points to "..", which is not a snapshot's name`} {
		if dir, err := Cached("org/name@" + revision); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", revision, dir, err)
		}
	}
	if IsFolder(home) {
		t.Error("a folder without a config.json is a model")
	}
	if err := os.Mkdir(filepath.Join(home, "config.json"), 0o700); err != nil || IsFolder(home) {
		t.Errorf("a folder with a folder config.json is a model: %v", err)
	}
	if dir, err := Cached("org/name@folder"); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a revision that is a folder: %s, %v", dir, err)
	}
}

// Why a model fits no class, with the values that keep it out.
func TestClassesInWords(t *testing.T) {
	for _, c := range []struct {
		arch   string
		change func(*model.Config)
		want   string
	}{
		{"diff2", func(c *model.Config) { c.LambdaForm = layer.LambdaLinear },
			`lambda_form = "linear", pairing = "": an ablation of DIFF V2, which no transformers class computes: keep the run folder`},
		{"gda", nothing, "4 heads in 2 groups share query heads: " + doc(t, "gda") +
			", which no transformers class computes: keep the run folder"},
		{"diff2", nothing, `class "llama" cannot hold this model: transformers has no class for ` + doc(t, "diff2") +
			`; class "antiphase" can`},
		{"transformer", func(c *model.Config) { c.HeadNorm = layer.HeadNormPlain },
			`class "llama" cannot hold this model: llama has no norm over a head's output, head_norm = "plain"; class "antiphase" can`},
		{"diff", func(c *model.Config) { c.HeadNorm = layer.HeadNormOff },
			`class "llama" cannot hold this model: diffllama always has a norm over a head's output, head_norm = "off"; class "antiphase" can`},
		{"diff", nothing, `class "llama" cannot hold this model: the model is a diffllama; class "antiphase" can`},
	} {
		if _, err := (&Export{Config: nano(t, c.arch, c.change), Class: Llama}).Resolve(); err == nil ||
			err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.arch, err, c.want)
		}
	}
	zero := nano(t, "diff", nothing)
	zero.HeadNormEps, zero.NormEps = 0, 0.5
	if _, why := nativeClass(zero); why != "diffllama has one epsilon, norm_eps = 0.5 and head_norm_eps = 0" {
		t.Error(why)
	}
	if _, err := (&Export{Config: nano(t, "transformer", nothing), Class: DiffLlama}).Resolve(); err == nil ||
		err.Error() != `class "diffllama" cannot hold this model: the model is a llama; class "antiphase" can` {
		t.Error(err)
	}
	get := func(name string) ([]float32, error) { return make([]float32, len(name)), nil }
	if _, err := dot(get, "a", "bc"); err == nil || err.Error() != `parameters "a" and "bc" have 1 and 2 values` {
		t.Error(err)
	}
	for _, lost := range []string{"a", "bc"} {
		if _, err := dot(func(name string) ([]float32, error) {
			if name == lost {
				return nil, os.ErrInvalid
			}
			return nil, nil
		}, "a", "bc"); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s is lost: %v", lost, err)
		}
	}
}

// doc is an architecture's description.
func doc(t *testing.T, arch string) string {
	t.Helper()
	a, err := layer.LookupArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	return a.Doc
}

// The files of a folder by class: the code of our own class only where it is needed, and generation's defaults only if
// there are any.
func TestFilesByClass(t *testing.T) {
	sample := true
	for _, c := range []struct {
		class      Class
		generation *Generation
		want       string
	}{
		{DiffLlama, nil, "config.json model.safetensors note.txt"},
		{DiffLlama, &Generation{Sample: &sample}, "config.json generation_config.json model.safetensors note.txt"},
		{Antiphase, nil, "config.json configuration_antiphase.py model.safetensors modeling_antiphase.py note.txt"},
	} {
		m := trained(t, nano(t, "diff", nothing))
		dir := filepath.Join(t.TempDir(), "x")
		e := &Export{Config: m.Config, Values: valuesOf(m), Class: c.class, Generation: c.generation,
			Tokens: Tokens{BOS: 1, Pad: -1, EOS: []int{2, 3}}, Files: map[string][]byte{"note.txt": []byte("n")}}
		if err := e.Write(dir, false); err != nil {
			t.Fatal(err)
		}
		manifest, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range manifest.Files {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.class, got, c.want)
		}
		config := readJSON(t, dir, "config.json")
		if ids := fmt.Sprintf("%v %v %v", config["bos_token_id"], config["eos_token_id"],
			config["pad_token_id"]); ids != "1 [2 3] <nil>" {
			t.Errorf("%s: ids %s", c.class, ids)
		}
		if c.generation != nil {
			if g := readJSON(t, dir, "generation_config.json"); fmt.Sprint(g) !=
				"map[bos_token_id:1 do_sample:true eos_token_id:[2 3]]" {
				t.Errorf("%v", g)
			}
		}
	}
}

// A parameter that is too short, or a gain that does not divide a row, is said with its sizes.
func TestShortParameters(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	for param, want := range map[string]string{
		"layers.1.attn.out.weight":       `model.safetensors: safetensors: tensor "model.layers.1.self_attn.o_proj.weight": parameter "layers.1.attn.out.weight" has 7 values, too few for "model.layers.1.self_attn.o_proj.weight"`,
		"layers.0.attn.head_norm.weight": `model.safetensors: safetensors: tensor "model.layers.0.self_attn.o_proj.weight": parameter "layers.0.attn.head_norm.weight" has 7 values, which do not divide `,
		"norm.weight":                    `model.safetensors: safetensors: tensor "model.norm.weight": parameter "norm.weight" has 7 values, too few for "model.norm.weight"`,
	} {
		values := func(name string) ([]float32, error) {
			if name == param {
				return make([]float32, 7), nil
			}
			return valuesOf(m)(name)
		}
		dir := filepath.Join(t.TempDir(), "x")
		if err := (&Export{Config: m.Config, Values: values, Class: DiffLlama}).Write(dir, false); err == nil ||
			!strings.HasPrefix(err.Error(), "model folder "+dir+": "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A tokenizer without special tokens names none.
func TestTokenizerWithoutNames(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	files, ids, err := TokenizerFiles(tok, 5, -1, nil)
	if err != nil || !reflect.DeepEqual(ids, Tokens{BOS: -1, Pad: -1}) ||
		strings.TrimSpace(string(files["special_tokens_map.json"])) != "{}" ||
		strings.Contains(string(files["tokenizer_config.json"]), "_token\"") {
		t.Errorf("%+v, %v:\n%s%s", ids, err, files["special_tokens_map.json"], files["tokenizer_config.json"])
	}
	if _, ids, err = TokenizerFiles(tok, 5, 0, nil); err != nil || ids.BOS != 0 {
		t.Errorf("the first token begins texts: %+v, %v", ids, err)
	}
	if files, _, _ := TokenizerFiles(tok, 5, 0, nil); !strings.Contains(string(files["tokenizer_config.json"]),
		`"bos_token": "a"`) {
		t.Errorf("%s", files["tokenizer_config.json"])
	}
}
