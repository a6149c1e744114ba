package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/recipe"
)

// Every key of a recipe has a rule that somebody chose: a new one is fixed until it is listed here and in rules.
func TestEveryKeyHasARule(t *testing.T) {
	fixedKeys := []string{"tokenizer.path", "tokenizer.vocab", "tokenizer.docs", "tokenizer.pattern",
		"train.from", "train.seed", "model.arch", "model.vocab", "model.layers", "model.dim", "model.heads",
		"model.kv_heads", "model.head_dim", "model.ffn",
		"model.tie_embeddings", "model.attention_bias", "model.lambda_std", "model.lambda_form", "model.pairing",
		"model.init_residual"}
	freeKeys := []string{"name", "train.steps", "train.log_every", "train.eval_every", "train.eval_batches",
		"train.save_every", "train.keep_last", "train.strict_save", "train.recompute"}
	var r recipe.Recipe
	for _, f := range r.Fields() {
		if got, want := ruleOf(f.Path) == free, slices.Contains(freeKeys, f.Path); got != want {
			t.Errorf("%s: free is %v, want %v", f.Path, got, want)
		}
		if got, want := ruleOf(f.Path) == fixed, slices.Contains(fixedKeys, f.Path); got != want {
			t.Errorf("%s: fixed is %v, want %v", f.Path, got, want)
		}
	}
}

// newest is the last checkpoint in a run folder, and its store.
func newest(t *testing.T, dir string, opt checkpoint.Options) (*checkpoint.Store, *checkpoint.Checkpoint) {
	t.Helper()
	store, err := checkpoint.Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Latest(nil)
	if err != nil {
		t.Fatal(err)
	}
	return store, c
}

// newestState is the state of the last checkpoint in a run folder.
func newestState(t *testing.T, dir string) *State {
	t.Helper()
	_, c := newest(t, dir, checkpoint.Options{ReadOnly: true})
	s, err := ReadState(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// With --force a change of the data is applied, alone or among changes of other sections: the run continues with the
// new set, and resumes on it without force.
func TestForceAppliesData(t *testing.T) {
	for _, set := range [][]string{{"data.sources=synthetic:docs=50,seed=7"}, {"data.held_out=0.4", "train.batch=4"},
		{"name=other", "optim.lr=0.001", "data.max_tokens=3000", "train.log_every=2"}} {
		dir := t.TempDir()
		opt := options(t, dir)
		stopAt(t, nano(t, "diff", "train.steps=8"), opt, 3)
		before := newestState(t, dir).Data.Dataset
		changed := nano(t, "diff", append([]string{"train.steps=8"}, set...)...)
		if _, err := Run(context.Background(), changed, opt); !errors.Is(err, ErrChanged) {
			t.Fatalf("%q without --force: %v", set, err)
		}
		forced := opt
		forced.Force = true
		stopAt(t, changed, forced, 5)
		s := newestState(t, dir)
		m, err := data.ReadManifest(filepath.Join(dir, "data"))
		if err != nil || s.Data.Dataset == before || s.Data.Dataset != m.Hash {
			t.Errorf("%q: data set %.8s before, %.8s after, %.8s on disk, %v", set, before, s.Data.Dataset, m.Hash, err)
		}
		if res := mustRun(t, changed, opt); res.Resumed != 5 || res.Steps != 8 {
			t.Errorf("%q: %+v", set, res)
		}
	}
}

// What was decided when the run began is refused even with --force, and the folder stays as it was.
func TestForceRefusesWhatIsFixed(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "tokenizer.json")
	r := nano(t, "diff", "train.steps=8")
	opt := options(t, dir)
	stopAt(t, r, opt, 3)
	b, err := os.ReadFile(filepath.Join(dir, "checkpoints", "step-00000003", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, b, 0o644); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	opt.Force = true
	for _, set := range []string{"tokenizer.path=" + other, "train.seed=9", "model.ffn=64", "model.init_residual=false",
		"model.lambda_std=0.2"} {
		key, _, _ := strings.Cut(set, "=")
		if _, err := Run(context.Background(), nano(t, "diff", "train.steps=8", set), opt); !errors.Is(err,
			ErrChanged) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", set, err)
		}
		sameFiles(t, files(t, dir), before)
	}
}
