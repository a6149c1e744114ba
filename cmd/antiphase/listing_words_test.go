package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"antiphase/eval/task"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// Listings have every size with every architecture, every key and every task, with the values that the program uses.
func TestListings(t *testing.T) {
	sizes := decoded[[]listed](t, "recipes", "--json")
	if want := len(recipe.Sizes()) * len(layer.Archs()); len(sizes) != want {
		t.Errorf("%d recipes, want %d", len(sizes), want)
	}
	for _, x := range sizes {
		r, err := recipe.Named(x.Size, x.Arch)
		if m := r.Model; err != nil || x.Parameters != model.Table(m).Count() || x.Layers != m.Layers ||
			x.Dim != m.Dim || x.Heads != m.Heads || x.HeadDim != m.HeadDim || x.FFN != m.FFN || x.Doc == "" {
			t.Errorf("%+v (%v)", x, err)
		}
	}
	keys := decoded[[]struct {
		Key   string
		Value string `json:"tiny_diff"`
		Doc   string
	}](t, "recipes", "--keys", "--json")
	tiny, err := recipe.Tiny("diff")
	if err != nil || len(keys) != len(tiny.Fields()) {
		t.Fatalf("%d keys (%v)", len(keys), err)
	}
	for i, f := range tiny.Fields() {
		if keys[i].Key != f.Path || keys[i].Value != f.Value || keys[i].Doc == "" {
			t.Errorf("%+v, want %s=%s", keys[i], f.Path, f.Value)
		}
	}
	tasks := decoded[[]struct {
		Name, Group    string
		Version, Shots int
		Measures       []string
		Inside, Slow   bool
		Settings       map[string]any
	}](t, "eval", "ls", "--json")
	all := task.All()
	if len(tasks) != len(all) {
		t.Fatalf("%d tasks", len(tasks))
	}
	for i, x := range all {
		got := tasks[i]
		if got.Name != x.Name || got.Group != x.Group || got.Version != x.Version || got.Shots != max(x.Shots, 0) ||
			got.Inside != x.Inside || got.Slow != x.Slow || len(got.Settings) != len(x.Settings) ||
			got.Measures[0] != x.Measures[0].Name {
			t.Errorf("%+v, want %s", got, x.Name)
		}
	}
	presets := decoded[[]struct {
		Name  string
		Tasks []string
	}](t, "eval", "presets", "--json")
	if len(presets) != len(task.Presets()) || presets[0].Name != task.Presets()[0].Name {
		t.Errorf("%d presets", len(presets))
	}
}

// Wrong words get the nearest right one, or the list; a flag of computing on a verb that does not is told so.
func TestSuggestions(t *testing.T) {
	for args, want := range map[string]string{"trian": "did you mean train?", "bench gem": "did you mean gemm?",
		"zzzzzzzz": "there are ", "train --sizes x": "did you mean --size?",
		"train --prec x": "did you mean --precision?", "generate --temp 1": "did you mean --temperature?",
		"generate --tpo-p 1": "did you mean --top-p?", "train --z x": `"antiphase train --help" lists them`,
		"train --qqqqqqqq": `"antiphase train --help" lists them`, "pack --threads 2 x": "pack does not compute",
		"help trian": "did you mean train?", "data shwo": "did you mean show?",
		"show":             "MODEL: missing; want antiphase show MODEL",
		"show a b":         `"b": one argument too many; want antiphase show MODEL`,
		"export a":         "DIR: missing; want antiphase export MODEL DIR",
		"data show":        "RUN: missing; want antiphase data show RUN",
		"generate The old": `quote it: antiphase generate "The old"`,
		"evidence":         "FOLDER: missing", "compare x": `unknown command "x"`,
		"convert a b --to zip":               "there are transformers and run",
		"convert a b --to run --force":       "--force: cannot be combined with --to run",
		"convert a b --to run --class llama": "--class: cannot be combined",

		"report": "FOLDER: missing", "scaling": "RUN: missing", "validate nowhere": "there is no folder nowhere",
		"show org/none": "org/none"} {
		code, out, errs := ran(t, strings.Fields(args)...)
		wantCode := exitUsage
		if strings.HasPrefix(args, "validate") || strings.HasPrefix(args, "show org") {
			wantCode = exitBadInput
		}
		if code != wantCode || !strings.Contains(errs, want) || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", args, code, errs)
		}
	}
	for _, args := range []string{"", "help", "help train", "data", "tokenizer", "help glossary"} {
		if code, out, _ := ran(t, strings.Fields(args)...); code != 0 || len(out) < 100 {
			t.Errorf("%q: exit %d, %d bytes", args, code, len(out))
		}
	}
}

// A fault's report can be pasted: version, machine, the command as typed, the stack. A lack of memory is none.
func TestFaultReport(t *testing.T) {
	var b bytes.Buffer
	printReport(&app{err: &b}, []string{"train", "--data", "a b", "", "x=$HOME"}, "boom", []byte("stack\n"))
	for _, want := range []string{"internal fault: boom\n", "version " + version() + "\n",
		fmt.Sprintf("machine %s/%s, %d CPUs, go", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		`command antiphase train --data "a b" "" "x=$HOME"` + "\n", "fault   boom\nstack\n--- end\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if err := cause(fmt.Errorf("x: %w", &tensor.NoMemory{})); err == nil || exitCode(err) != exitNoRoom {
		t.Errorf("no memory: %v", err)
	}
	if err := cause(cutFile{}); err == nil || exitCode(err) != exitBadInput ||
		!strings.Contains(err.Error(), "was cut short") {
		t.Errorf("a mapped file that was cut: %v", err)
	}
	if cause("text") != nil || cause(errors.New("x")) != nil {
		t.Error("a fault has a cause")
	}
}

// Output keeps its first error and writes no more; a model trained here begins with its end-of-text token.
func TestOutputAndManners(t *testing.T) {
	broken := errors.New("broken")
	n := 0
	o := &output{Writer: writerFunc(func(b []byte) (int, error) {
		if n++; n > 1 {
			return 0, broken
		}
		return len(b), nil
	})}
	for range 4 {
		fmt.Fprint(o, "x")
	}
	if n != 2 || o.err != broken {
		t.Errorf("%d writes, %v", n, o.err)
	}
	m := ownManners(tokenizer.Bytes())
	eos, ok := tokenizer.Bytes().EOS()
	if !ok || m.First != eos || !slices.Equal(m.EOS, []int{int(eos)}) || m.BOS != -1 || m.Pad != -1 ||
		m.Generation != nil {
		t.Errorf("%+v", m)
	}
	dir := t.TempDir()
	if got, err := locate(dir); err != nil || got != dir {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := locate(""); exitCode(err) != exitUsage {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := locate(filepath.Join(dir, "f", "g")); exitCode(err) != exitBadInput {
		t.Error(err)
	}
	if _, err := locate("diff"); exitCode(err) != exitBadInput || !strings.Contains(err.Error(), "is pair:diff") {
		t.Error(err)
	}
	if err := hasFolder(filepath.Join(dir, "new")); err != nil ||
		exitCode(hasFolder(filepath.Join(dir, "none", "new"))) != exitUsage {
		t.Error("folders of new files")
	}
}

// cutFile is what the runtime panics with where memory of a mapped file cannot be read.
type cutFile struct{}

func (cutFile) Error() string { return "unexpected fault address" }
func (cutFile) Addr() uintptr { return 1 << 20 }
