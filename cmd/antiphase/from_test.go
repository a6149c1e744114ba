package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/hf"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// The recipe for going on from a model: its shape and tokenizer, sequences as long as its context up to 2048, at most
// 4096 tokens in a micro-batch that divides the batch, a rate by its size, and a twentieth of the steps of warm-up.
func TestRecipeToGoOn(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct{ context, size, seq, batch, micro string }{
		{"64", "nano", "64", "4", "4"}, {"1024", "tiny", "1024", "8", "4"}, {"1300", "tiny", "1300", "8", "2"},
		{"4096", "tiny", "2048", "8", "2"}, {"100", "small", "100", "32", "32"},
		{"300", "small", "300", "32", "8"},
	} {
		dir := "m" + x.context
		if code, _, errs := ran(t, "train", "--size", "nano", "--steps", "0", "--set", "model.context="+x.context,
			"--dir", dir, "-q", "--device", "cpu"); code != 0 {
			t.Fatal(errs)
		}
		f := &trainFlags{from: dir, size: x.size, steps: 200, stepsSet: true}
		r, err := f.resolve(context.Background(), &app{err: &bytes.Buffer{}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		base, _ := recipe.Named(x.size, "diff")
		get := map[string]string{}
		for _, field := range r.Fields() {
			get[field.Path] = field.Value
		}
		if get["train.seq_len"] != x.seq || get["train.batch"] != x.batch || get["train.micro_batch"] != x.micro ||
			get["model.context"] != x.context || r.Name != dir+"-on" || r.Train.From != dir ||
			r.Model.Dim != 32 || r.Model.Vocab != 260 ||
			r.Tokenizer.Path != filepath.Join(dir, "checkpoints", "step-00000000", "tokenizer.json") ||
			r.Optim.LR != 1e-4 ||
			r.Optim.Warmup != min(base.Optim.Warmup, 10) || r.Train.Steps != 200 {
			t.Errorf("%+v: %+v, %+v", x, r.Train, r.Optim)
		}
	}
	for _, x := range []struct {
		steps int
		set   []string
		want  int
	}{{40, nil, 2}, {10, nil, 1}, {40, []string{"optim.warmup=30"}, 30}} {
		f := &trainFlags{from: "m64", size: "small", steps: x.steps, stepsSet: true, set: x.set}
		if r, err := f.resolve(context.Background(), &app{err: &bytes.Buffer{}}, nil); err != nil ||
			r.Optim.Warmup != x.want {
			t.Errorf("%+v: warm-up %d, %v", x, r.Optim.Warmup, err)
		}
	}
	s := &stored{Config: model.Config{Arch: "diff", Vocab: 32000, Context: 4096, Layers: 16, Dim: 2048, Heads: 8,
		HeadDim: 128, KVHeads: 8, FFN: 5632}}
	lr, seq := goingOn(s)
	if n := float64(model.Table(s.Config).Count()); !(math.Abs(lr/(2e-5*math.Sqrt(1e9/n))-1) <= 1e-9) || seq != 2048 ||
		lr > 3e-5 || lr < 1e-5 {
		t.Errorf("%g, %d for %g parameters", lr, seq, n)
	}
}

// What is said when a run goes on from another, and when settings do not suit trained weights.
func TestSaidOfGoingOn(t *testing.T) {
	nanoRun(t) // a rate of 0.003, sequences of 32
	base, err := (&trainFlags{from: "run", size: "nano", steps: 40, stepsSet: true}).resolve(context.Background(),
		&app{err: &bytes.Buffer{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rate := base.Optim.LR
	for _, x := range []struct {
		change func(r *recipe.Recipe)
		says   string
	}{
		{func(*recipe.Recipe) {}, ""},
		{func(r *recipe.Recipe) { r.Optim.LR = 2.99 * rate }, ""},
		{func(r *recipe.Recipe) { r.Optim.LR = 3.01 * rate }, "is a rate for training from scratch"},
		{func(r *recipe.Recipe) { r.Train.SeqLen = 17 }, ""},
		{func(r *recipe.Recipe) { r.Train.SeqLen = 16 },
			"train.seq_len=16 is far below what the model was made for, 32"},
		{func(r *recipe.Recipe) { r.Optim.Warmup = 20 }, ""},
		{func(r *recipe.Recipe) { r.Optim.Warmup = 21 }, "optim.warmup=21 is most of the 40 steps"},
	} {
		var b bytes.Buffer
		r := base
		x.change(&r)
		if err := sayFrom(t.Context(), &app{err: &b}, r); err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(b.String(), "\n")
		if !strings.HasPrefix(first, "continuing from "+filepath.Join("run", "checkpoints",
			"step-00000002")+": context 64, ") || !strings.Contains(rest, x.says) || (rest == "") != (x.says == "") ||
			strings.Count(rest, "warning: ") > 1 {
			t.Errorf("%q: %s", x.says, b.String())
		}
	}
	begin := parentOf(t.Context(), &app{err: &bytes.Buffer{}}, base)
	p, err := begin.Parent()
	weights, err2 := os.ReadFile("run/checkpoints/step-00000002/model.safetensors")
	sum := sha256.Sum256(weights)
	if err != nil || err2 != nil || p.Step != 2 || p.Path != filepath.Join("run", "checkpoints", "step-00000002") ||
		p.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v, %v, %v", p, err, err2)
	}
	if parentOf(t.Context(), &app{}, recipe.Recipe{}) != nil {
		t.Error("a parent of a run that has none")
	}
	if _, err := hashWeights(t.TempDir()); err == nil {
		t.Error("a hash of no weights")
	}
}

// An imported run has the folder's model and tokenizer, and nothing of a training; what is exported is listed.
func TestImportedRun(t *testing.T) {
	nanoRun(t)
	out := decoded[exported](t, "export", "run", "h/f", "--json", "-q", "--dtype", "bfloat16")
	names, err := os.ReadDir("h/f")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, n := range names {
		files = append(files, n.Name())
	}
	if out.Dir != "h/f" || out.Class != hf.DiffLlama || out.Remote || out.DType != "bfloat16" ||
		!slices.Equal(out.Files, files) || !slices.Contains(files, "model.safetensors") {
		t.Errorf("%+v, there are %q", out, files)
	}
	for _, name := range carried { // whatever a folder has of these goes along
		if !slices.Contains(files, name) && name != "chat_template.jinja" {
			if err := os.WriteFile(filepath.Join("h/f", name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	type wrote struct {
		Dir, Arch  string
		Parameters int
	}
	// The head norm's gain is folded.
	if got := decoded[wrote](t, "import", "h/f", "in/run", "--json", "-q"); got != (wrote{"in/run", "diff", 33632}) {
		t.Errorf("%+v", got)
	}
	s, err := train.Open("in/run", func(w string) { t.Error(w) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := s.Recipe; r.Name != "f" || r.Model.Dim != 32 || r.Model.Context != 32 || r.Train.SeqLen != 32 ||
		r.Tokenizer.Path != "" || r.Tokenizer.Vocab != 260 || s.State.Step != 0 || s.State.Tokens != 0 {
		t.Errorf("%+v, %+v", r, s.State)
	}
	if !slices.Equal(carried, []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
		"added_tokens.json", "tokenizer.model", "chat_template.jinja", "README.md", "LICENSE"}) {
		t.Errorf("%q", carried)
	}
	for _, name := range []string{"tokenizer.json", "README.md", "generation_config.json", "tokenizer_config.json",
		"special_tokens_map.json", "added_tokens.json", "tokenizer.model", "LICENSE"} {
		if _, err := os.Stat(s.Checkpoint.Path(name)); err != nil {
			t.Error(err)
		}
	}
	for _, left := range []string{"in", "h"} {
		if names, err := os.ReadDir(left); err != nil || len(names) != 1 {
			t.Errorf("%s holds %v (%v)", left, names, err)
		}
	}
}

// Prompts begin with the token that begins every text of a run of ours; for others the tokenizer decides, and an empty
// prompt begins with what it has.
func TestPromptIDs(t *testing.T) {
	tok := tokenizer.Bytes()
	eos, _ := tok.EOS()
	for _, x := range []struct {
		first int32
		text  string
		want  []int32
	}{{eos, "ab", []int32{eos, 'a', 'b'}}, {7, "ab", []int32{7, 'a', 'b'}}, {eos, "", []int32{eos}},
		{-1, "ab", []int32{'a', 'b'}}, {-1, "", []int32{eos}}} {
		l := &loaded{Tokenizer: tok}
		l.Manners.First = x.first
		if got := l.encode(x.text); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// Logits are those of float32 unless another precision is asked for.
func TestLogitsPrecision(t *testing.T) {
	nanoRun(t)
	get := func(args ...string) string {
		code, out, errs := ran(t, append([]string{"logits", "-m", "run", "--device", "cpu", "--ids", "256,72,105",
			"--json", "-q"}, args...)...)
		if code != 0 {
			t.Fatal(errs)
		}
		return out
	}
	if plain := get(); plain != get("--precision", "fp32") || plain == get("--precision", "bf16") {
		t.Error("the precision of logits")
	}
}
