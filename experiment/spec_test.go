package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
)

// refusedSpecs are changes to an experiment that make it none, with what the error says.
var refusedSpecs = []struct {
	change func(*Spec)
	says   string
}{
	{func(s *Spec) { s.Archs = []string{"diff", "diff"} }, "--arch: diff is there twice; name each once"},
	{func(s *Spec) { s.Archs = []string{"dif"} }, "--arch"},
	{func(s *Spec) { s.Seeds = []uint64{3, 4, 3} }, "--seeds: 3 is there twice; name each once"},
	{func(s *Spec) { s.LRs = []float64{1e-3, 1e-3} }, "--lr: 0.001 is there twice"},
	{func(s *Spec) { s.LRs = []float64{0} }, "--lr: 0 is not a learning rate"},
	{func(s *Spec) { s.Sizes = []string{"nano", "nano"} }, "--size: nano is there twice"},
	{func(s *Spec) { s.Sizes = []string{"huge"} }, "huge"},
	{func(s *Spec) { s.TuneSeeds = 3 }, "--tune-seeds"},
	{func(s *Spec) { s.Every = 9 }, "--probe-every: is 9, but runs of size nano have 8 steps"},
	{func(s *Spec) { s.Tasks = nil }, "--task"},
	{func(s *Spec) { s.Tasks = []Ask{"needel"} }, "needel"},
	{func(s *Spec) { s.Tasks = []Ask{"lm needles=3"} }, "needles=3"},
	{func(s *Spec) { s.Set = []string{"train.stepz=3"} }, "stepz"},
	{func(s *Spec) { s.Variants = []Variant{"flat diff"} }, "want NAME ARCH KEY=VALUE"},
	{func(s *Spec) { s.Variants = []Variant{"../x diff a=b"} }, "cannot be the name of a folder"},
	{func(s *Spec) { s.Variants = []Variant{"diff diff model.lambda_const=0.2"} },
		"--variant: diff is the name of an architecture; a variant needs one of its own"},
	{func(s *Spec) { s.Variants = []Variant{"flat diff model.lamda=1"} }, "lamda"},
	{func(s *Spec) { s.Set = []string{"data.held_out=0"} }, "held_out"},
	{func(s *Spec) { s.Set = []string{"train.seed=9"} }, "--set: train.seed is decided by --seeds"},
	{func(s *Spec) { s.Set = []string{" optim.lr = 1"} }, "--set: optim.lr is decided by --lr"},
	{func(s *Spec) { s.Set = []string{"model.arch=diff"} }, "decided by --arch"},
	{func(s *Spec) { s.Variants = []Variant{"a diff train.seed=3"} },
		"--variant: a: train.seed is decided by --seeds"},
	{func(s *Spec) { s.Variants = []Variant{"a diff train.batch=3"} }, "must be the same for all sides"},
	{func(s *Spec) { s.Variants = []Variant{"a diff data.isolate=true"} }, "must be the same for all sides"},
	{func(s *Spec) { s.Variants = []Variant{"a diff model.vocab=9"} },
		"model.vocab must be the same for all sides"},
	{func(s *Spec) { s.Variants = []Variant{"a diff model.context=32"} },
		"model.context must be the same for all sides"},
	{func(s *Spec) { s.Variants = []Variant{"a diff model.ffn=64", "A diff model.ffn=96"} },
		"without regard to case: a is there twice"},
	{func(s *Spec) { s.Name = "two\nlines" }, "--name: "},
	{func(s *Spec) { s.Tasks = []Ask{"lm", "lm  "} }, "--task: lm is there twice"},
	{func(s *Spec) { s.Tasks = []Ask{"lm pieces=abc"} },
		`--task: "lm pieces=abc": pieces=abc: want a whole number`},
	{func(s *Spec) { s.Tasks = []Ask{"lm pieces=-1"} }, `--task: "lm pieces=-1": pieces is -1, must be 1 or more`},
	{func(s *Spec) { s.Tasks = []Ask{"lm pieces=4 pieces=8"} }, "pieces of lm is there twice; give it once"},
	{func(s *Spec) { s.Tasks = []Ask{"lm", "outliers tokens=1"} }, "tokens is 1, must be"},
	{func(s *Spec) { s.Tasks = []Ask{"lm", "outliers length=65"} },
		"length is 65, must be 2 to the context, 64 tokens"},
	{func(s *Spec) { s.Tasks = []Ask{"lm", "lowbit of=logit"} }, `of has "logit", must be logits`},
	{func(s *Spec) { s.Probes = []Ask{"needle queries=5"} },
		`--probe: "needle queries=5": queries is 5, must be at most`},
	{func(s *Spec) { s.Probes = []Ask{"nedle"} }, `--probe: "nedle": "nedle" is unknown`},
	{func(s *Spec) { s.Tasks = append(s.Tasks, s.Tasks[0]) }, "--task: lm pieces=8 is there twice"},
	{func(s *Spec) { s.TuneBy = "needle" }, "--tune-by: \"needle\" is none of the tasks"},
	{func(s *Spec) { s.TuneBy, s.Probes = "probe", nil }, "no --probe asks"},
	{func(s *Spec) { s.Tasks, s.TuneBy = []Ask{"lm", "samples"}, "samples" }, "has no better and worse"},
}

// What cannot be an experiment is refused before anything is written.
func TestRefused(t *testing.T) {
	for _, c := range refusedSpecs {
		s := nanoSpec(8)
		c.change(s)
		dir := filepath.Join(t.TempDir(), "x")
		_, err := Work(context.Background(), s, options(dir, oneThread(t)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was written", c.says)
		}
	}
}

// A folder with something else in it stays as it is, and so does one whose data would not fill a batch.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	thesis := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(thesis, []byte("dark and stormy"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Work(context.Background(), nanoSpec(8), options(dir, oneThread(t))); !errors.Is(err, ErrOther) {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if b, _ := os.ReadFile(thesis); string(b) != "dark and stormy" {
		t.Error("the file was changed")
	}
	short := filepath.Join(dir, "short.txt")
	if err := os.WriteFile(short, []byte("Too little."), 0o644); err != nil {
		t.Fatal(err)
	}
	s := nanoSpec(8)
	s.Data = []string{short}
	fresh := t.TempDir()
	var source *data.SourceError
	if _, err := Work(context.Background(), s, options(fresh, oneThread(t))); !errors.As(err, &source) {
		t.Errorf("text that does not fill a batch: %v", err)
	}
	if _, err := os.Stat(filepath.Join(fresh, specName)); err == nil {
		t.Error("the folder was taken by an experiment that cannot run")
	}
}

// A variant is a side of its own, with its settings and its architecture's equal size.
func TestVariant(t *testing.T) {
	s := nanoSpec(8)
	s.Variants = []Variant{"flat diff model.lambda_init=constant model.lambda_const=0.2"}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Grid(nil)
	if err != nil || len(runs) != 2*2*3 || s.TuningRuns() != 2*3 {
		t.Fatalf("%d runs, %d to tune (%v)", len(runs), s.TuningRuns(), err)
	}
	for _, r := range runs {
		m := r.Recipe.Model
		if flat := r.Arch == "flat"; flat != (m.LambdaConst == 0.2) || flat && m.Arch != "diff" {
			t.Errorf("%s: %s with λ_init %s %g", r.Name(), m.Arch, m.LambdaInit, m.LambdaConst)
		}
	}
}

// What is wrong with a task that only its text and the tokens show is found before anything is trained, and the same
// folder then takes the task as it should be.
func TestTasksAreRehearsed(t *testing.T) {
	d := oneThread(t)
	for _, c := range []struct {
		task  Ask
		probe bool
		says  string
	}{
		{"needle lengths=64 haystack=no-such-file", false, "haystack"},
		{"needle lengths=64 needles=4", false, "no room for 4 needles"},
		{"lm text=no-such-file", false, "no-such-file"},
		{"lm text=no-such-file", true, "no-such-file"},
	} {
		dir := filepath.Join(t.TempDir(), "x")
		s := nanoSpec(4)
		good, probes := s.Tasks, s.Probes
		if c.probe {
			s.Probes = append(slices.Clone(probes), c.task)
		} else {
			s.Tasks = append(slices.Clone(good), c.task)
		}
		_, err := Work(context.Background(), s, options(dir, d))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want an error that says %q, got %v", c.task, c.says, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
			t.Errorf("%s: a run has begun", c.task)
		}
		s.Tasks, s.Probes = good, probes
		if err := admit(dir, s); err != nil {
			t.Errorf("the folder does not take other tasks before its first run: %v", err)
		}
	}
}
