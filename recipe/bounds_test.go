package recipe

import (
	"fmt"
	"strings"
	"testing"
)

// limits of one key of the nano DIFF recipe: the values next to each bound, space separated. "any" means that every
// value of its type is taken.
type limits struct{ good, bad string }

// bounds has an entry for every key: a new key needs one.
var bounds = map[string]limits{
	"name": {"a a.b x-1 " + strings.Repeat("n", 200), ". .. a/b a\\b a:b a\tb " +
		strings.Repeat("n", 201)},
	"model.arch":             {"transformer diff diff2 gda", "dif"},
	"model.vocab":            {"1 260", "0 -1 2147483649"},
	"model.context":          {"32 33 33554432", "31 0 33554433"},
	"model.layers":           {"1 16384", "0 -1 16385"},
	"model.dim":              {"1 8", "0 -1 2147483649"},
	"model.heads":            {"2 4", "0 -1 2147483649"},
	"model.kv_heads":         {"0 1 2", "3 -1"},
	"model.head_dim":         {"2 8", "0 7 -2 268435457"},
	"model.ffn":              {"0 1", "-1 2147483649"},
	"model.tie_embeddings":   {"any", ""},
	"model.attention_bias":   {"any", ""},
	"model.rope_theta":       {"0 1e-9 1e9", "-1"},
	"model.rope_interleaved": {"any", ""},
	"model.rope_scaling":     {`{"type":"linear","factor":2}`, `{"type":"linear","factor":-1} {"type":"x"}`},
	"model.norm_eps":         {"0 1e-9", "-1e-9"},
	"model.head_norm":        {"off plain affine", "on"},
	"model.head_norm_eps":    {"0 1e-9", "-1e-9"},
	"model.lambda_init":      {"schedule constant", "none"},
	"model.lambda_const":     {"any", ""},
	"model.lambda_std":       {"0 1e-9", "-1e-9"},
	"model.lambda_form":      {"", "linear sigmoid"}, // for diff2 only
	"model.pairing":          {"", "across inside"},
	"model.init_residual":    {"any", ""},
	"tokenizer.path":         {"any", ""},
	"tokenizer.vocab":        {"any", ""}, // of the byte tokenizer; see TestTokenizerBounds
	"tokenizer.docs":         {"0 1", "-1"},
	"tokenizer.pattern":      {"llama3 gpt2 qwen2", "gpt3"},
	"data.sources":           {"x x@1e-18 x@1e18", "[] x@0.9e-18 x@1.1e18 x@0"},
	"data.held_out":          {"0 0.999", "-0.001 1"},
	"data.held_out_by":       {"pieces documents", "rows"},
	"data.max_tokens":        {"0 1", "-1"},
	"data.isolate":           {"any", ""},
	"data.order":             {"random stream", "sorted"},
	"train.from":             {"any", ""},
	"train.seed":             {"any", ""},
	"train.steps":            {"0 2147483648", "-1 2147483649"},
	"train.batch":            {"1 4 67108864", "0 -4 3 67108868"},
	"train.micro_batch":      {"0 1 2 4", "-1 3 8"},
	"train.recompute":        {"off attention blocks", "on"},
	"train.seq_len":          {"1 64", "0 65"},
	"train.log_every":        {"1", "0"},
	"train.eval_every":       {"0", "-1"},
	"train.eval_batches":     {"0", "-1"},
	"train.save_every":       {"0", "-1"},
	"train.keep_last":        {"1", "0"},
	"train.strict_save":      {"any", ""},
	"optim.lr":               {"0 999", "-1e-9 1000"},
	"optim.beta1":            {"0 0.999", "-0.001 1"},
	"optim.beta2":            {"0 0.999", "-0.001 1"},
	"optim.eps":              {"1e-30 0.999", "0 0.9e-30 1"},
	"optim.weight_decay":     {"0 999", "-1e-9 1000"},
	"optim.decay_embeddings": {"any", ""},
	"optim.clip":             {"0 1e300", "-1e-9"},
	"optim.schedule":         {"cosine linear constant", "step"},
	"optim.warmup":           {"0 1000000", "-1"},
	"optim.final_lr":         {"0 1", "-1e-9 1.001"},
	"optim.bf16_weights":     {"any", ""},
}

// TestEveryKeyHasBounds: the last value that each key takes and the first that it refuses, with an error that names
// the key or begins with its section.
func TestEveryKeyHasBounds(t *testing.T) {
	var r Recipe
	fields := r.Fields()
	if len(fields) != len(bounds) {
		t.Errorf("%d keys, %d of them with bounds", len(fields), len(bounds))
	}
	for _, f := range fields {
		b, ok := bounds[f.Path]
		if !ok {
			t.Errorf("%s has no entry", f.Path)
		}
		if f.Doc == "" {
			t.Errorf("%s is not explained", f.Path)
		}
		if b.good == "any" {
			continue
		}
		for _, v := range strings.Split(b.good, " ") {
			if err := complete(f.Path, v); err != nil {
				t.Errorf("%s=%s is refused: %v", f.Path, v, err)
			}
		}
		for _, v := range strings.Split(b.bad, " ") {
			err := complete(f.Path, v)
			section, _, _ := strings.Cut(f.Path, ".")
			if err == nil || !strings.HasPrefix(err.Error(), section) && !strings.Contains(err.Error(), f.Path) {
				t.Errorf("%s=%s: %v, want an error about %s", f.Path, v, err, f.Path)
			}
		}
	}
}

func complete(path, value string) error {
	r, err := Nano("diff")
	if err != nil {
		return err
	}
	if path == "train.micro_batch" || path == "train.batch" {
		r.Train.MicroBatch = 0
	}
	if path == "train.batch" && value == "3" {
		r.Train.MicroBatch = 2
	}
	if err := r.Set(path, value); err != nil {
		return err
	}
	_, err = r.Complete()
	return err
}

// A trained tokenizer has the bytes and the end of text, and no more ids than the model.
func TestTokenizerBounds(t *testing.T) {
	for _, c := range []struct {
		path  string
		vocab int
		good  bool
	}{{"", 256, false}, {"", 257, true}, {"", 260, true}, {"", 261, false}, {"tok.json", 0, true},
		{"tok.json", 9999, true}, {"bytes", 9999, true}} {
		r, _ := Nano("diff")
		r.Tokenizer = Tokenizer{Path: c.path, Vocab: c.vocab}
		r, err := r.Complete()
		if (err == nil) != c.good || err != nil && !strings.HasPrefix(err.Error(), "tokenizer.vocab") {
			t.Errorf("%+v: %v", c, err)
		}
		if want := c.vocab; err == nil && c.path != "bytes" && r.Tokenizer.Vocab != want || c.path == "bytes" &&
			r.Tokenizer.Vocab != 0 {
			t.Errorf("%+v became %d", c, r.Tokenizer.Vocab)
		}
	}
}

// Every key is set from its own text and from no other, and Diff names it with both values.
func TestDiffNamesEachKey(t *testing.T) {
	a, _ := Nano("diff")
	if d := Diff(a, a); len(d) != 0 {
		t.Errorf("a recipe differs from itself by %v", d)
	}
	for i, f := range a.Fields() {
		value := map[string]string{"int": "77", "int64": "77", "uint64": "77", "float64": "0.375",
			"bool": "true"}[f.v.Kind().String()]
		switch {
		case f.Value == "true":
			value = "false"
		case f.v.Kind().String() == "string":
			value = "other"
		case f.Path == "data.sources":
			value = `["p@2"]`
		case f.Path == "model.rope_scaling":
			value = `{"type":"yarn","factor":4}`
		}
		b, _ := Nano("diff")
		if err := b.Set(f.Path, value); err != nil {
			t.Errorf("%s=%s: %v", f.Path, value, err)
			continue
		}
		want := Change{f.Path, f.Value, b.Fields()[i].Value}
		if d := Diff(a, b); len(d) != 1 || d[0] != want {
			t.Errorf("%s=%s: %v, want %v", f.Path, value, d, want)
		}
		if got := b.Fields()[i].Value; got != value && f.Path != "data.sources" {
			t.Errorf("%s=%s reads %s", f.Path, value, got)
		}
	}
}

// A value of another type is refused with the name of the right one, and nothing changes.
func TestSetRefusesOtherTypes(t *testing.T) {
	want := map[string]string{"int": "whole number", "int64": "whole number", "uint64": "whole number",
		"float64": "number", "bool": "true or false", "slice": "list", "ptr": "value of its kind"}
	r, _ := Nano("diff")
	for i, f := range r.Fields() {
		kind := f.v.Kind().String()
		if kind == "string" {
			continue
		}
		err := r.Set(f.Path, "[nonsense")
		if err == nil || !strings.HasPrefix(err.Error(),
			fmt.Sprintf("%s: %q is not a %s: ", f.Path, "[nonsense", want[kind])) {
			t.Errorf("%s: %v, want %q", f.Path, err, want[kind])
		}
		outside := map[string][]string{"int": {"9223372036854775808", "1.5", ""}, "int64": {"-9223372036854775809"},
			"uint64": {"-1", "18446744073709551616"}, "float64": {"1e999", "-Inf", "NaN"}}
		for _, v := range outside[kind] {
			if r.Set(f.Path, v) == nil {
				t.Errorf("%s=%s is taken", f.Path, v)
			}
		}
		if got := r.Fields()[i].Value; got != f.Value {
			t.Errorf("%s became %s from %s", f.Path, got, f.Value)
		}
		for _, v := range map[string][]string{"int": {"-9223372036854775808", "9223372036854775807"},
			"int64": {"9223372036854775807"}, "uint64": {"0", "18446744073709551615"}}[kind] {
			if err := r.Set(f.Path, v); err != nil || r.Fields()[i].Value != v {
				t.Errorf("%s=%s: %v, reads %s", f.Path, v, err, r.Fields()[i].Value)
			}
		}
	}
}
