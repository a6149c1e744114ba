package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// The tokenizer of an experiment is the named one; else one that its folder has; else it is trained and stored there.
func TestTokenizerOfAnExperiment(t *testing.T) {
	dir := t.TempDir()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	r.Data.Sources = recipe.Paths("synthetic:docs=20,len=200")
	r.Tokenizer = recipe.Tokenizer{Vocab: 270, Docs: 20, Pattern: "gpt2"}
	made := func(r recipe.Recipe) string {
		t.Helper()
		tok, err := makeTokenizer(t.Context(), dir, r, &train.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return tok.Hash()
	}
	first := made(r)
	stored, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil || stored.Hash() != first || stored.Vocab() != 270 {
		t.Fatalf("what is stored is another one: %v", err)
	}
	r.Tokenizer.Vocab = 265
	if made(r) != first {
		t.Error("the folder's tokenizer is not used")
	}
	r.Tokenizer.Path = "bytes"
	if made(r) != tokenizer.Bytes().Hash() {
		t.Error("bytes are not the bytes")
	}
	r.Tokenizer.Path = filepath.Join(dir, "tokenizer.json")
	if made(r) != first {
		t.Error("the named file is not used")
	}
	earlier := dir
	dir = t.TempDir()
	r.Tokenizer.Path, r.Tokenizer.Vocab = "", 320
	made(r)
	for path, want := range map[string]int{filepath.Join(dir, "tokenizer.json"): 320,
		filepath.Join(earlier, "tokenizer.json"): 320, "bytes": 320, "": 0} {
		if s := (&Spec{Tokenizer: path}); s.Resolve() != nil || s.Vocab != want || s.Format != specFormat {
			t.Errorf("the models' vocabulary with %q: %+v", path, s)
		}
	}
	r.Tokenizer.Path = filepath.Join(dir, "none.json")
	if _, err := makeTokenizer(t.Context(), dir, r, &train.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// encodedRuns are the bytes of rows: of each run a loss and its end.
func encodedRuns(t *testing.T, experiment string, value float64, runs ...Run) []byte {
	t.Helper()
	var rows []Row
	for _, r := range runs {
		base := Row{origin: origin{Experiment: experiment, Run: r.Name(), Size: r.Size, Arch: r.Arch, LR: r.LR,
			Seed: r.Seed, Parameters: r.parameters(), Steps: 8, Tokens: r.tokens()},
			Measure: "lm.loss", Value: value}
		end := base
		end.Measure, end.Value = Finished, 1
		rows = append(rows, base, end)
	}
	b, err := Encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// twoRowFiles writes two files with rows of runs of an experiment; the first also has rows of another experiment, with
// a run of the same name.
func twoRowFiles(t *testing.T) (s *Spec, runs []Run, paths []string) {
	t.Helper()
	s = nanoSpec(8)
	s.Tasks = []Ask{"lm"}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"a": append(encodedRuns(t, s.Name, 1, runs[0], runs[1]), encodedRuns(t, "other", 3, runs[0], runs[2])...),
		"b": append(encodedRuns(t, s.Name, 1, runs[1]), encodedRuns(t, s.Name, 2, runs[2], runs[3])...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s, runs, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
}

// A run that several files of rows have counts once; what is done here is not taken.
func TestRowsElsewhere(t *testing.T) {
	s, runs, paths := twoRowFiles(t)
	got, err := s.elsewhere(paths, runs, "", func(r *Run) bool { return r.Name() == runs[3].Name() })
	if err != nil || len(got) != 3 {
		t.Fatalf("%d runs, %v", len(got), err)
	}
	for i, want := range []float64{1, 1, 2} {
		if rows := got[runs[i].Name()]; len(rows) != 2 || rows[0].Value != want {
			t.Errorf("%s: %+v, want %g", runs[i].Name(), rows, want)
		}
	}
}

// Rows of files come together; a folder is no file, and a damaged file is named with the line.
func TestReadRowFiles(t *testing.T) {
	_, _, paths := twoRowFiles(t)
	dir := filepath.Dir(paths[0])
	if _, err := ReadRowFiles(paths[0], dir); !errors.Is(err, vfs.ErrNotRegular) ||
		!strings.HasPrefix(err.Error(), dir) {
		t.Errorf("a folder: %v", err)
	}
	if rows, err := ReadRowFiles(paths...); err != nil || len(rows) != 14 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	damaged := filepath.Join(dir, "c")
	if err := os.WriteFile(damaged, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRowFiles(damaged); err == nil || !strings.Contains(err.Error(), damaged) ||
		!strings.Contains(err.Error(), "line 1: ") {
		t.Errorf("a damaged file: %v", err)
	}
}

// Runs too short to say more than their speed count for claims about speed alone.
func TestWhatCounts(t *testing.T) {
	for _, x := range []struct {
		experiment, measure string
		want                bool
	}{{"speed-160m", trainSpeed, true}, {"speed-160m", "lm.loss", false}, {"small-text", trainSpeed, true},
		{"small-text", "lm.loss", true}, {"another", "lm.loss", true}} {
		if got := (&claim{measure: x.measure}).counts(x.experiment); got != x.want {
			t.Errorf("%s of %s counts: %v", x.measure, x.experiment, got)
		}
		rows := slices.Concat(seeded(plain, x.measure, 3, 3, 3), seeded(v1, x.measure, 1, 1, 1))
		list, links := written(map[string][]Row{x.experiment: rows}).found(&claim{arch: v1, than: plain,
			measure: x.measure})
		if want := map[bool]int{true: 1}[x.want]; len(list) != want || len(links) != want {
			t.Errorf("%s of %s: %+v", x.measure, x.experiment, list)
		}
	}
}

// Where all runs of a side diverged, a claim counts as run if others of the experiment have its measure, or nothing can
// say what they would have measured.
func TestLostMeasures(t *testing.T) {
	failed := func(arch string) Row {
		r := at(arch, 1, 1, Failed, 60)
		r.Run = arch + "-s1"
		return r
	}
	ended := at(plain, 1, 1, Finished, 2)
	ended.Run = "transformer-s1"
	half := append(seeded(plain, "lm.loss", 1), ended, failed(v1))
	again, later := at(plain, 2, 1, Failed, 60), at(plain, 2, 2, "lm.loss", 1) // of the rate that was not chosen
	again.Run, later.Run, ended.Run = "transformer-2-s1", "transformer-2-s2", "transformer-2-s2"
	for _, x := range []struct {
		what    string
		rows    []Row
		measure string
		want    int
	}{
		{"one side, measured", half, "lm.loss", 1}, {"one side, not measured", half, "lm.others", 0},
		{"both sides", []Row{failed(plain), failed(v1)}, "lm.others", 1},
		{"a side is missing", []Row{failed(v1)}, "lm.others", 0},
		{"measured at another rate", []Row{failed(plain), failed(v1), again, later, ended}, "lm.loss", 1},
		{"no measure", []Row{failed(plain), failed(v1)}, "", 0},
	} {
		c := &claim{arch: v1, than: plain, measure: x.measure}
		if x.measure == "" {
			c = &claim{why: "too large"}
		}
		list, links := written(map[string][]Row{"a": x.rows}).found(c)
		if len(list) != x.want || len(links) != x.want || x.want > 0 &&
			(list[0].Figure != "–" || list[0].Verdict != Unclear || links[0] != "[a](#a)") {
			t.Errorf("%s: %+v %q", x.what, list, links)
		}
	}
}

// A side of one size does not stand for that of another, and floors without a question are none.
func TestFloorsAndSizes(t *testing.T) {
	const bound = "needle.bound N=4 R=2"
	rows := scored(plain, bound+orLoss, 0.2)
	for _, r := range scored(plain, bound+orLoss, 0.9) {
		r.Size, r.Run, r.Parameters = "small", "small-"+r.Run, 9
		rows = append(rows, r)
	}
	f := newFinal(rows)
	for size, want := range map[string]bool{"tiny": true, "small": false, "none": false} {
		if got := f.allFloored(size, plain, bound); got != want {
			t.Errorf("%s is on its floor: %v", size, got)
		}
	}
	if n := f.sized("small", plain).parameters; n != 9 {
		t.Errorf("%d parameters", n)
	}
	list := slices.Concat(seeded(plain, bound, 0.1, 0.1, 0.1), seeded(v1, bound, 0.2, 0.2, 0.2))
	for i := range list {
		if list[i].Measure == bound {
			list[i].Floors = map[string]float64{"copy": 0.25}
		}
	}
	for _, arch := range []string{plain, v1} { // both were asked something else
		r := at(arch, 1, 1, "lm.loss", 2)
		r.Run, r.Metric, r.Task = arch+"-s1", "loss", &TaskInfo{Name: "lm", Kind: "lm", Question: "q"}
		list = append(list, r)
	}
	x, ok := newFinal(list).find(&claim{arch: v1, than: plain, measure: bound, above: true}, "tiny")
	if got := fmt.Sprint(x.doubts); !ok || got != "[]" {
		t.Errorf("%s: %+v", got, x)
	}
}
