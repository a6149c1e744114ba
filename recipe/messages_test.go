package recipe

import (
	"reflect"
	"strings"
	"testing"

	"antiphase/model"
)

// A refusal is one exact sentence: the key, the value that it has and what would be right, each in its place.
func TestMessagesOfRefusals(t *testing.T) {
	for set, want := range map[string]string{
		"train.steps=-2":        "train.steps: is -2, must be at least 0",
		"train.batch=-2":        "train.batch: is -2, must be at least 1",
		"train.micro_batch=-2":  "train.micro_batch: is -2, must be at least 1",
		"train.seq_len=-2":      "train.seq_len: is -2, must be at least 1",
		"train.log_every=-2":    "train.log_every: is -2, must be at least 1",
		"train.eval_every=-2":   "train.eval_every: is -2, must be at least 0",
		"train.eval_batches=-2": "train.eval_batches: is -2, must be at least 0",
		"train.save_every=-2":   "train.save_every: is -2, must be at least 0",
		"train.keep_last=-2":    "train.keep_last: is -2, must be at least 1",
		"train.batch=67108868": "train.batch: is 67108868, times train.seq_len = 32 is more than 2147483648 " +
			"tokens per step",
		"train.steps=2147483649": "train.steps: is 2147483649, must be at most 2147483648",
		"train.micro_batch=3":    "train.micro_batch: 3 does not divide train.batch = 4",
		"train.recompute=some":   `train.recompute: is "some", must be one of ["off" "attention" "blocks"]`,
		"train.seq_len=65":       "train.seq_len: is 65, model.context is 64",
		"data.held_out=1.5":      "data.held_out: is 1.5, must be in [0, 1)",
		"data.max_tokens=-3":     "data.max_tokens: is -3, must be at least 0; 0 takes all",
		"tokenizer.docs=-3":      "tokenizer.docs: is -3, must be at least 0; 0 takes all",
		"data.order=sorted":      `data.order: is "sorted", must be one of ["random" "stream"]`,
		"data.held_out_by=rows":  `data.held_out_by: is "rows", must be one of ["pieces" "documents"]`,
		"tokenizer.pattern=bert": `tokenizer.pattern: is "bert", must be one of ["llama3" "gpt2" "qwen2"]`,

		"name=a/b": `name: "a/b" cannot be the name of a folder; want letters, digits, dots, dashes and the like`,

		`data.sources=["a@1","b"]`: "data.sources: 1 of 2 have a weight; give all of them one, or none",

		`data.sources=["a@1","b@"]`: `weight "" is not a number; for a path with an @ in its name write {"path": "b@"}`,
		"data.sources=a@-1":         `source "a@-1": weight is -1, must be positive`,
		"data.sources=a@1e19":       `source "a@1e19": weight is 1e+19, must be from 1e-18 to 1e+18`,
		"train.steps=many":          `train.steps: "many" is not a whole number: invalid syntax`,
		"train.seed=-1":             `train.seed: "-1" is not a whole number: invalid syntax`,

		"train.seed=99999999999999999999": `train.seed: "99999999999999999999" is not a whole number: value out of range`,
		"optim.lr=fast":                   `optim.lr: "fast" is not a number: invalid syntax`,
		"data.isolate=perhaps":            `data.isolate: "perhaps" is not a true or false: invalid syntax`,
	} {
		r, _ := Nano("diff")
		err := r.SetPair(set)
		if err == nil {
			_, err = r.Complete()
		}
		if err == nil || err.Error() != want && !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s:\n got %v\nwant %s", set, err, want)
		}
	}
	for vocab, want := range map[int]string{
		300: "tokenizer.vocab: is 300, model.vocab only 260",
		256: "tokenizer.vocab: is 256, must be at least 257 (256 bytes and the end-of-text token)",
	} {
		r, _ := Nano("diff")
		r.Tokenizer = Tokenizer{Vocab: vocab}
		if _, err := r.Complete(); err == nil || err.Error() != want {
			t.Errorf("a vocabulary of %d: %v, want %s", vocab, err, want)
		}
	}
}

// The key that was probably meant: a mistyped one finds its own, the last part of a key finds the key, and of keys that
// are equally near the first is named. The text of the error ends after 80 bytes of the path.
func TestNearestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys {
		for i := strings.LastIndex(k.path, ".") + 1; i < len(k.path); i++ {
			wrong := k.path[:i] + "#" + k.path[i+1:]
			if got := nearest(wrong); got != k.path && wrong != "optim.beta#" { // beta1 comes first
				t.Errorf("%s: nearest is %s", wrong, got)
			}
		}
		last := k.path[strings.LastIndex(k.path, ".")+1:]
		if !seen[last] {
			seen[last] = true
			if got := nearest(last); got != k.path {
				t.Errorf("%s: nearest is %s, want %s", last, got, k.path)
			}
		}
	}
	for path, want := range map[string]string{
		"": "optim.lr", "x": "optim.lr", "steps": "train.steps", "train.seq": "train.seed", "nam": "name",
		"model": "name",
		"decay": "model.vocab", "data.order_by": "data.order", "vocab": "model.vocab", "docs": "tokenizer.docs",
	} {
		if got := nearest(path); got != want {
			t.Errorf("%q: nearest is %s, want %s", path, got, want)
		}
	}
	var r Recipe
	long := strings.Repeat("k", 81)
	if err := r.Set(long, ""); err == nil ||
		!strings.HasPrefix(err.Error(), long[:80]+": there is no such key; nearest is ") {
		t.Error(err)
	}
}

// Every size refuses an architecture that does not exist.
func TestEverySizeRefusesUnknownArchs(t *testing.T) {
	for _, s := range Sizes() {
		if _, err := Named(s.Name, "dif"); err == nil || !strings.HasPrefix(err.Error(), "model.arch: ") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// What JSON writes for an absent value leaves the recipe as it is, and is not taken for a value of other keys.
func TestNullKeepsTheRecipe(t *testing.T) {
	for text, want := range map[string]string{
		`{"data": {"sources": null}, "model": {"rope_scaling": null}}`: "",

		`{"data": {"held_out": null}}`:        "1: data.held_out: has no value; leave the key out to keep 0.02",
		"train:\n  seed: 3\n  recompute: ~\n": "3: train.recompute: has no value; leave the key out to keep blocks",
	} {
		r, _ := Named("6.8b", "diff")
		r.Model.RopeScaling = &model.RopeScaling{Type: "linear", Factor: 2}
		before := r.Fields()
		err := r.Parse([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		for i, f := range r.Fields() {
			if f.Value != before[i].Value && f.Path != "train.seed" {
				t.Errorf("%s: %s became %s", text, f.Path, f.Value)
			}
		}
	}
	var none Recipe
	back, _ := Nano("diff")
	if err := back.Parse(none.JSON()); err != nil ||
		!reflect.DeepEqual(back.Data.Sources, Paths("synthetic:docs=200")) {
		t.Errorf("%v, %v", err, back.Data.Sources)
	}
}
