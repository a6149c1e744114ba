package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/hf"
	"antiphase/layer"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/pair"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// nanoRun trains two steps of the smallest model into run, in an empty folder that becomes the current one.
func nanoRun(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if code, _, errs := ran(t, "train", "--size", "nano", "--steps", "2", "--dir", "run", "-q", "--device",
		"cpu"); code != 0 {
		t.Fatal(errs)
	}
}

// loadedRun is the model of nanoRun on one thread in float32.
func loadedRun(t *testing.T) *loaded {
	t.Helper()
	a := &app{device: "cpu", precision: "fp32", kvCache: "auto", threads: 1}
	d, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	l, err := a.load(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Model.Free)
	return l
}

// checks are what validate finds, by name; it must end with code.
func checks(t *testing.T, code int, args ...string) map[string]finding {
	t.Helper()
	got, out, errs := ran(t, append([]string{"validate", "--json"}, args...)...)
	var all struct {
		OK     bool
		Checks []finding
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || got != code || all.OK != (code == 0) {
		t.Fatalf("%q: exit %d, %v, %s%s", args, got, err, out, errs)
	}
	by := map[string]finding{}
	for _, f := range all.Checks {
		by[f.Check] = f
		if !f.OK && !strings.Contains(errs, f.Check+": "+f.Detail) {
			t.Errorf("%q: the error does not name %s: %s", args, f.Check, errs)
		}
	}
	return by
}

// What validate finds in a run and in its export, whole and damaged in one way each; --shallow leaves values and hashes
// out.
func TestValidateFinds(t *testing.T) {
	nanoRun(t)
	whole := checks(t, 0, "run")
	if !strings.HasSuffix(whole["run"].Detail, "1 checkpoints are whole") || whole["metrics"].Detail != "2 rows" ||
		whole["weights"].Detail != "all values are finite" ||
		whole["tokenizer"].Detail != "260 ids" || whole["tensors"].Detail != "33664 parameters in F32" ||
		len(whole) != 7 {
		t.Errorf("a run: %+v", whole)
	}
	if few := checks(t, 0, "run", "--shallow"); len(few) != 6 || few["weights"].Check != "" {
		t.Errorf("--shallow: %+v", few)
	}
	if code, _, errs := ran(t, "export", "run", "hf", "-q"); code != 0 {
		t.Fatal(errs)
	}
	rowsAreMissed(t)
	config := func(old, now string) func() error {
		return func() error {
			b, err := os.ReadFile("hf/config.json")
			if err == nil && !bytes.Contains(b, []byte(old)) {
				err = errors.New("no " + old + " in " + string(b))
			}
			return errors.Join(err, os.WriteFile("hf/config.json",
				bytes.Replace(b, []byte(old), []byte(now), 1), 0o644))
		}
	}
	for _, x := range []struct {
		what  string
		make  func() error
		code  int
		check string
		says  string
	}{
		{"as exported", func() error { return nil }, 0, "hashes", " files are as exported"},
		{"a card that was edited", func() error { return os.WriteFile("hf/README.md", []byte("mine"), 0o644) }, 0,
			"hashes", "changed since the export: README.md"},
		{"no manifest", func() error { return os.Remove("hf/" + hf.ManifestFile) }, 0, "hashes",
			"there is no " + hf.ManifestFile},
		{"a template that does not parse",
			func() error { return os.WriteFile("hf/chat_template.jinja", []byte("{% if"), 0o644) }, 3, "chat", ""},
		{"a template that fails", func() error {
			return os.WriteFile("hf/chat_template.jinja", []byte("{{ raise_exception('no') }}"), 0o644)
		}, 3, "chat", "no"},
		{"a template", func() error {
			return os.WriteFile("hf/chat_template.jinja", []byte("<{{ messages[0].content }}>"), 0o644)
		}, 0, "chat", `renders "<hello>"`},
		{"another special id", config(`"bos_token_id": 256`, `"bos_token_id": 259`), 0, "tokenizer", "260 ids"},
		{"no tokenizer", func() error { return os.Remove("hf/tokenizer.json") }, 0, "tokenizer", "there is none"},
	} {
		if err := x.make(); err != nil {
			t.Fatalf("%s: %v", x.what, err)
		}
		if got := checks(t, x.code, "hf")[x.check]; got.OK != (x.code == 0) || !strings.Contains(got.Detail, x.says) {
			t.Errorf("%s: %+v", x.what, got)
		}
	}
}

// rowsAreMissed takes rows from a run: validate and show say so. Rows after the checkpoint's do not stand in for them.
func rowsAreMissed(t *testing.T) {
	t.Helper()
	rows := []metrics.Row{{Step: 1}, {Step: 3}, {Step: 4}}
	var b []byte
	for i := range rows {
		b = rows[i].Append(b)
	}
	if err := os.WriteFile("run/metrics.jsonl", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := checks(t, 3, "run")["metrics"]; got.OK || got.Detail != "has rows of 1 of 2 steps" {
		t.Errorf("a row is missing: %+v", got)
	}
	if err := os.WriteFile("run/metrics.jsonl", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := checks(t, 3, "run")["metrics"]; got.OK || got.Detail != "has rows of 0 of 2 steps" {
		t.Errorf("no rows: %+v", got)
	}
	if _, _, errs := ran(t, "show", "run"); !strings.Contains(errs, "metrics.jsonl has no row of step 2") {
		t.Errorf("no rows: %s", errs)
	}
}

// What the checks of a tokenizer and of values find, without a folder.
func TestChecksOfValidate(t *testing.T) {
	s := &stored{Config: model.Config{Vocab: 300}, Tokenizer: tokenizer.Bytes()}
	s.Manners.BOS, s.Manners.Pad = -1, -1
	if f := s.checkTokenizer(); !f.OK {
		t.Errorf("%+v", f)
	}
	s.Manners.EOS = []int{299}
	if f := s.checkTokenizer(); f.OK || !strings.Contains(f.Detail, "has no token 299") {
		t.Errorf("%+v", f)
	}
	s.Config.Vocab = tokenizer.Bytes().Vocab() - 1
	if f := s.checkTokenizer(); f.OK || !strings.Contains(f.Detail, "the model a vocabulary of ") {
		t.Errorf("%+v", f)
	}
	s = &stored{Config: whiteConfig(t),
		Values: func(name string) ([]float32, error) { return []float32{1, float32(math.Inf(-1))}, nil }}
	if f := s.checkFinite(); f.OK || !strings.HasSuffix(f.Detail, ": value 1 is -Inf") {
		t.Errorf("%+v", f)
	}
	s.Values = func(string) ([]float32, error) { return nil, errors.New("unreadable") }
	if f := s.checkFinite(); f.OK || f.Detail != "unreadable" {
		t.Errorf("%+v", f)
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{"abc": "abc", "abcd": "abc…", "äöüß": "äöü…"} {
		if got := shorten(in, 3); got != want {
			t.Errorf("%q", got)
		}
	}
}

func whiteConfig(t *testing.T) model.Config {
	t.Helper()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	return r.Model
}

// A packed model says how it was made, or what it was made from; it is a quarter of its float32 matrices.
func TestPackedAbout(t *testing.T) {
	nanoRun(t)
	if code, _, errs := ran(t, "pack", "run"); code != exitUsage || !strings.Contains(errs, "--out: missing") {
		t.Errorf("without --out: %d, %s", code, errs)
	}
	code, _, errs := ran(t, "pack", "run", "-o", "a.safetensors")
	info, err := os.Stat("a.safetensors")
	if code != 0 || err != nil || !isPackedFile("a.safetensors") ||
		isPackedFile("run/checkpoints/step-00000002/model.safetensors") || isPackedFile("none") ||
		!strings.Contains(errs, "a.safetensors: 33.66k parameters, 0.0") {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if info.Size() > 33664*2+20_000 { // a byte for most weights; the rest is the tokenizer
		t.Errorf("%d bytes", info.Size())
	}
	s := &stored{Kind: kindHF}
	if got := aboutModel(s); got != "packed from "+kindHF+" weights" {
		t.Errorf("%q", got)
	}
	s.Saved = &train.Saved{State: &train.State{Step: 7, Tokens: 99, EMA: 1.25, Valid: 1.5},
		Recipe: recipe.Recipe{Name: "n", Data: recipe.Data{Sources: recipe.Paths("a.txt", "b.txt")}}}
	if got := aboutModel(s); got !=
		"n, 7 steps, 99 tokens, training loss 1.2500, held-out loss 1.5000, data a.txt, b.txt" {
		t.Errorf("%q", got)
	}
	if names := embeddedModels(); !slices.Equal(names, []string{"diff=pair:diff", "transformer=pair:transformer"}) ||
		embeddedDefault() != "pair:diff" || pair.Names()[0] != "diff" {
		t.Errorf("%q, by default %q", names, embeddedDefault())
	}
}

// Completion offers the values of every flag that has some, the last entry of a list, and folders of models.
func TestCompletionValues(t *testing.T) {
	nanoRun(t)
	if err := errors.Join(os.MkdirAll("runs/x", 0o755), os.Rename("run", "runs/x/deep"),
		os.Mkdir("other", 0o755)); err != nil {
		t.Fatal(err)
	}
	offered := func(args ...string) (list []string, directive string) {
		t.Helper()
		code, out, errs := ran(t, append([]string{"__complete"}, args...)...)
		if code != 0 {
			t.Fatalf("%q: %s", args, errs)
		}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			word, _, _ := strings.Cut(line, "\t")
			list = append(list, word)
		}
		return list[:len(list)-1], list[len(list)-1]
	}
	var archs []string
	for _, a := range layer.Archs() {
		archs = append(archs, a.Name)
	}
	const values, dirs = ":4", ":16" // cobra's: no files; directories
	for _, x := range []struct {
		args []string
		want []string
		how  string
	}{
		{[]string{"train", "--device", ""}, []string{"auto", "cpu", "cuda", "cuda:0"}, values},
		{[]string{"train", "--precision", ""}, []string{"auto", "fp32", "bf16", "int8"}, values},
		{[]string{"train", "--color", ""}, []string{"auto", "always", "never"}, values},
		{[]string{"generate", "--kv-cache", ""}, []string{"auto", "int8"}, values},
		{[]string{"convert", "a", "b", "--to", ""}, []string{"transformers", "run"}, values},
		{[]string{"scaling", "--by", ""}, []string{"parameters", "tokens"}, values},
		{[]string{"export", "a", "b", "--class", ""}, []string{"auto", "llama", "diffllama", "antiphase"}, values},
		{[]string{"compare", "--arch", "diff,"}, prefixed("diff,", archs), values},
		{[]string{"train", "--data", ""}, []string{"synthetic", "goroot"}, values},
		{[]string{"generate", "--model", ""}, []string{"runs/x/deep"}, values},
		{[]string{"train", "--from", "runs"}, []string{"runs/x/deep"}, values},
		{[]string{"generate", "--model", "nowhere"}, nil, dirs},
		{[]string{"show", ""}, []string{"runs/x/deep"}, values}, {[]string{"export", "runs/x/deep", ""}, nil, dirs},
	} {
		if list, how := offered(x.args...); !slices.Equal(list, x.want) || how != x.how {
			t.Errorf("%q: %q %s, want %q %s", x.args, list, how, x.want, x.how)
		}
	}
	if list, _ := offered("eval", "--tasks", ""); list[0] != "all" || !slices.Contains(list, "needle") {
		t.Errorf("tasks: %q", list)
	}
	if list, _ := offered("compare", "--set", ""); slices.Contains(list, "train.steps=") {
		t.Error("settings of train are offered for another verb")
	}
	if list, _ := offered("help", "b"); !slices.Contains(list, "bench") {
		t.Errorf("help: %q", list)
	}
}

func prefixed(prefix string, list []string) (out []string) {
	for _, s := range list {
		out = append(out, prefix+s)
	}
	return out
}

// Shares of sources: by weight, or by training tokens where none has one.
func TestShares(t *testing.T) {
	m := &data.Manifest{Sources: []data.SourceInfo{{Name: "a", Tokens: 100, HeldOut: 25, Share: data.Share{Epochs: 2}},
		{Name: "b", Tokens: 225}}}
	if got := manifestRows(m); !reflect.DeepEqual(got,
		[]sourceRow{{Source: "a", Tokens: 75, Share: 0.25, Bound: 2}, {Source: "b", Tokens: 225, Share: 0.75}}) {
		t.Errorf("%+v", got)
	}
	m.Sources[0].Weight, m.Sources[1].Weight = 3, 1
	if got := manifestRows(m); got[0].Share != 0.75 || got[1].Share != 0.25 {
		t.Errorf("%+v", got)
	}
	if got := shareOut([]sourceRow{{Source: "empty"}}); got[0].Share != 0 {
		t.Errorf("%+v", got)
	}
}

// The hash of a model is that of its configuration, weights and tokenizer, by name; nothing else of a checkpoint
// counts.
func TestModelHash(t *testing.T) {
	c := whiteConfig(t)
	files := func(names ...string) *checkpoint.Manifest {
		m := &checkpoint.Manifest{}
		for _, n := range names {
			m.Files = append(m.Files, checkpoint.Entry{Name: n, SHA256: "of " + n})
		}
		return m
	}
	of := func(c model.Config, m *checkpoint.Manifest) string {
		l := &loaded{Model: &model.Model{}, Manifest: m}
		l.Model.Config = c
		got, err := modelHash(l)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := of(c, files("model.safetensors", "tokenizer.json"))
	b, _ := json.Marshal(c)
	sum := sha256.Sum256(append(b, "model.safetensors of model.safetensors\ntokenizer.json of tokenizer.json\n"...))
	if base != hex.EncodeToString(sum[:12]) {
		t.Errorf("%s", base)
	}
	if of(c, files("model.safetensors", "state.json", "tokenizer.json")) != base {
		t.Error("the state counts")
	}
	wide := c
	wide.Dim++
	if of(wide, files("model.safetensors", "tokenizer.json")) == base || of(c, files("model.safetensors")) == base {
		t.Error("configuration or tokenizer do not count")
	}
	dir := t.TempDir()
	if err := errors.Join(put(dir, "a"), put(dir, "sub/b")); err != nil {
		t.Fatal(err)
	}
	one, err := hashFolder(sha256.New(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256([]byte("a\nx")); one != hex.EncodeToString(sum[:12]) {
		t.Errorf("%s", one)
	}
	if _, err := hashFolder(sha256.New(), dir+"x"); err == nil {
		t.Error("a folder that is not there")
	}
}
