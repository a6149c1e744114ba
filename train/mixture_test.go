package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/tokenizer"
)

const mixture = `data.sources=[{"path": "synthetic:docs=6,len=128", "weight": 3, "epochs": 1.2}, {"path": "synthetic:docs=9,len=200,seed=5", "weight": 1}]`

// Stop after every step (the short form: every fifth) and resume, with weights and a source that reaches its epochs on
// the way: the same bytes.
func TestMixtureResumesExactly(t *testing.T) {
	r := nano(t, "diff", "train.steps=16", "train.batch=4", "train.micro_batch=2", "train.save_every=4",
		"data.held_out=0.1", mixture)
	whole := t.TempDir()
	opt := options(t, whole)
	var epochs []float64
	opt.Report = func(row Row) { epochs = append(epochs[:0], row.Epochs...) }
	mustRun(t, r, opt)
	if len(epochs) != 2 || !(epochs[0] >= 1.15 && epochs[0] <= 1.2) || !(epochs[1] >= 0.1) {
		t.Fatalf("%v epochs at the end, want the first source to have reached its 1.2", epochs)
	}
	want := files(t, filepath.Join(whole, "checkpoints", "step-00000016"))
	every := 1
	if testing.Short() {
		every = 5
	}
	for k := 1; k < 16; k += every {
		dir := t.TempDir()
		opt := options(t, dir)
		stopAt(t, r, opt, k)
		mustRun(t, r, opt)
		sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000016")), want)
	}
	b, err := os.ReadFile(filepath.Join(whole, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var row struct{ Epochs []float64 }
		if err := json.Unmarshal(line, &row); err != nil || len(row.Epochs) != 2 {
			t.Fatalf("%v in %s", err, line)
		}
	}
}

// What cannot be trained on is refused before the first step, with the numbers, and the folder can be used afterwards.
func TestMixtureRefused(t *testing.T) {
	dir := t.TempDir()
	for want, set := range map[string]string{
		"one row has train.seq_len = 16": "data.sources=" + short(t, "tiny.txt", "a b c"),
		"has 13 tokens": `data.sources=["synthetic:docs=6@1", "` +
			short(t, "small.txt", "twelve bytes") + `@1"]`,
		"400 rows, and the epochs allow 12": `data.sources=[{"path": "synthetic:docs=2,len=128", "epochs": 1}]`,
		"0.01 epochs are less than one row": `data.sources=[{"path": "synthetic:docs=2,len=128", "weight": 1, "epochs": 0.01}, {"path": "synthetic:seed=2", "weight": 1}]`,
	} {
		_, err := Run(context.Background(), nano(t, "diff", "train.steps=200", "data.held_out=0", set), options(t, dir))
		var s *data.SourceError
		if !errors.As(err, &s) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a SourceError with %q", set, err, want)
		}
	}
	r := nano(t, "diff", "train.steps=6", mixture)
	stopAt(t, r, options(t, dir), 3)
	other := nano(t, "diff", "train.steps=6", strings.Replace(mixture, `"weight": 3`, `"weight": 2`, 1))
	before := files(t, dir)
	if _, err := Run(context.Background(), other, options(t, dir)); !errors.Is(err, ErrChanged) ||
		!strings.Contains(err.Error(), "data.sources") {
		t.Errorf("another mixture: %v", err)
	}
	sameFiles(t, files(t, dir), before)
	opt := options(t, dir)
	opt.Force = true
	if res := mustRun(t, other, opt); res.Resumed != 3 || res.Steps != 6 {
		t.Errorf("forced: %+v", res)
	}
}

// A bound of very many epochs is no bound: numbers of rows do not overflow.
func TestManyEpochs(t *testing.T) {
	set := `data.sources=[{"path": "synthetic:docs=6", "weight": 1, "epochs": 1e18}, {"path": "synthetic:docs=6,seed=2", "weight": 1, "epochs": 9e17}]`
	mustRun(t, nano(t, "diff", "train.steps=2", set), options(t, t.TempDir()))
}

// A run whose token set is lost and whose sources have changed goes on with --force, which reports that rows begin
// again.
func TestChangedFilesForced(t *testing.T) {
	dir, text := t.TempDir(), filepath.Join(t.TempDir(), "a.txt")
	put := func(s string) {
		if err := os.WriteFile(text, []byte(strings.Repeat(s, 200)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("first text ")
	r := nano(t, "diff", "train.steps=6", "data.sources="+text)
	stopAt(t, r, options(t, dir), 3)
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	put("other words ")
	if _, err := Run(context.Background(), r, options(t, dir)); !errors.Is(err, ErrChanged) ||
		!strings.Contains(err.Error(), "--force") {
		t.Errorf("other text: %v", err)
	}
	opt := options(t, dir)
	var said bytes.Buffer
	opt.Force, opt.Say = true, func(f string, args ...any) { fmt.Fprintf(&said, f+"\n", args...) }
	if res := mustRun(t, r, opt); res.Resumed != 3 || res.Steps != 6 ||
		!strings.Contains(said.String(), "begins again") {
		t.Errorf("forced: %+v, said %s", res, said.String())
	}
}

func short(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run on a built set equals the run that builds it itself, and stays bound to that set, which is its only source.
func TestBuiltSet(t *testing.T) {
	own, on, set := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "set")
	sets := []string{"train.steps=6", "train.save_every=3", "data.held_out=0.1", mixture}
	r := nano(t, "diff", sets...)
	mustRun(t, r, options(t, own))
	opt := options(t, on)
	if err := MakeSet(context.Background(), r, set, tokenizer.Bytes(), &opt); err != nil {
		t.Fatal(err)
	}
	built := nano(t, "diff", append(sets, "data.sources="+set)...)
	stopAt(t, built, opt, 2)
	if res := mustRun(t, built, opt); res.Resumed != 2 {
		t.Fatalf("%+v", res)
	}
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		a, b := files(t, filepath.Join(own, "checkpoints", "step-00000006")),
			files(t, filepath.Join(on, "checkpoints", "step-00000006"))
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s differs", name)
		}
	}
	forced := opt
	forced.Force = true
	if res := mustRun(t, nano(t, "diff", append(sets, "train.steps=7", "data.order=stream", "data.sources="+set)...),
		forced); res.Resumed != 6 || res.Steps != 7 {
		t.Errorf("another order of the same set: %+v", res)
	}
	for _, list := range []string{`["` + set + `", "synthetic:docs=9"]`, `["synthetic:docs=9", "` + set + `"]`} {
		if _, err := Run(t.Context(), nano(t, "diff", "data.sources="+filepath.ToSlash(list)),
			options(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), "must be the only source") {
			t.Errorf("a set among others: %v", err)
		}
	}
	rows, err := OpenRows(on, "", data.Train, nil)
	if err != nil || rows.At(7) != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	other := nano(t, "diff", append(sets, mixture[:len(mixture)-1]+`,"synthetic:docs=9@1"]`)...)
	if err := MakeSet(context.Background(), other, set, tokenizer.Bytes(), &opt); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(),
		nano(t, "diff", append(sets, "train.steps=8", "data.order=stream", "data.sources="+set)...), opt); err == nil ||
		!strings.Contains(err.Error(), "not the token set") {
		t.Errorf("a set that was replaced: %v", err)
	}
}
