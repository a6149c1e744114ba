package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
	"antiphase/train"
)

// The recipe of a run, by the rules that its flags state: the run's own rate and seed, a warm-up of at most a twentieth
// of given steps, and 40 evaluations and 8 checkpoints of a long run.
func TestRecipeOfARun(t *testing.T) {
	named, err := recipe.Named("nano", "diff")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ steps, warmup, eval, save int }{
		{1, 1, 1, 1}, {20, 1, 5, 2}, {100, 5, 25, 12}, {200, 10, 50, 25}, {1000, 50, 50, 125}, {4000, 200, 100, 500},
	} {
		s := nanoSpec(20)
		s.Steps, s.Set = x.steps, nil
		r, err := s.recipe(&Run{Size: "nano", Arch: "diff", LR: 7e-4, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		if r.Train.Steps != x.steps || r.Optim.Warmup != min(x.warmup, named.Optim.Warmup) ||
			r.Train.EvalEvery != x.eval || r.Train.SaveEvery != x.save ||
			r.Optim.LR != 7e-4 || r.Train.Seed != 5 || r.Name != "nano-diff-lr0.0007-s5" {
			t.Errorf("%d steps: warm-up %d, evaluation every %d, checkpoint every %d: %+v", x.steps, r.Optim.Warmup,
				r.Train.EvalEvery, r.Train.SaveEvery, r.Train)
		}
		need := float64(x.steps*r.Train.Batch*r.Train.SeqLen) * 1.05 / (1 - r.Data.HeldOut)
		if want := max(int64(need), 262144); r.Data.MaxTokens != want {
			t.Errorf("%d steps: %d generated tokens, want %d", x.steps, r.Data.MaxTokens, want)
		}
	}
	s := nanoSpec(20)
	s.Steps, s.Set = 0, nil
	if r, err := s.recipe(&Run{Size: "nano", Arch: "diff", LR: 1, Seed: 1}); err != nil ||
		r.Train.Steps != named.Train.Steps || r.Optim.Warmup != named.Optim.Warmup {
		t.Errorf("without --steps: %d, warm-up %d (%v)", r.Train.Steps, r.Optim.Warmup, err)
	}
	s.Data = []string{"notes/*.txt"}
	if r, err := s.recipe(&Run{Size: "nano", Arch: "diff", LR: 1, Seed: 1}); err != nil || r.Data.MaxTokens != 0 {
		t.Errorf("of files %d tokens are taken (%v)", r.Data.MaxTokens, err)
	}
	s.Data = []string{"notes/*.txt@0.25", "synthetic:docs=20@0.75"}
	r, err := s.recipe(&Run{Size: "nano", Arch: "diff", LR: 1, Seed: 1})
	if err != nil || len(r.Data.Sources) != 2 || r.Data.Sources[0].Path != "notes/*.txt" ||
		r.Data.MaxTokens != named.Data.MaxTokens {
		t.Errorf("with --data: %+v (%v)", r.Data, err)
	}
	if runs := (&Run{Recipe: recipe.Recipe{Train: recipe.Train{Steps: 3, Batch: 5, SeqLen: 7}}}); runs.tokens() != 105 {
		t.Errorf("3 steps of 5 rows of 7 tokens are %d", runs.tokens())
	}
}

// The tokens of a size that is not the first are the first's, and a tokenizer given by name sets the vocabulary,
// rounded up to 64.
func TestBaseOfSizes(t *testing.T) {
	s := nanoSpec(20)
	s.Sizes = []string{"nano", "tiny"}
	first, _ := recipe.Named("nano", "transformer")
	r, err := s.recipe(&Run{Size: "tiny", Arch: "diff", LR: 1, Seed: 1})
	if err != nil || r.Model.Vocab != first.Model.Vocab || r.Tokenizer.Path != first.Tokenizer.Path ||
		r.Model.Dim == first.Model.Dim {
		t.Errorf("vocabulary %d, %+v (%v)", r.Model.Vocab, r.Tokenizer, err)
	}
	s.Tokenizer = "bytes"
	if err := s.Resolve(); err != nil || s.Vocab != (tokenizer.Bytes().Vocab()+63)/64*64 || s.Vocab%64 != 0 {
		t.Fatalf("vocabulary of bytes: %d (%v)", s.Vocab, err)
	}
	if r, err = s.recipe(&Run{Size: "tiny", Arch: "diff", LR: 1, Seed: 1}); err != nil || r.Model.Vocab != s.Vocab ||
		r.Tokenizer.Path != "bytes" {
		t.Errorf("%d, %q (%v)", r.Model.Vocab, r.Tokenizer.Path, err)
	}
	s.Tokenizer = filepath.Join(t.TempDir(), "none.json")
	if err := s.Resolve(); err == nil || !strings.HasPrefix(err.Error(), "--tokenizer: ") {
		t.Errorf("a tokenizer that is not there: %v", err)
	}
}

// The grid by its definition: every rate with the tuning seeds, then the best of each side; sides alternate innermost.
func TestGridOrder(t *testing.T) {
	s := nanoSpec(20)
	best := func(_, arch string) (float64, bool) {
		return map[string]float64{plain: 3e-3, v1: 1e-3}[arch], arch != "none"
	}
	names := func(runs []Run, err error) (out []string) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range runs {
			out = append(out, strings.TrimPrefix(runs[i].Name(), "nano-"))
		}
		return out
	}
	tuned := []string{"transformer-lr0.001-s1", "diff-lr0.001-s1", "transformer-lr0.003-s1", "diff-lr0.003-s1"}
	if got, want := names(s.Grid(best)),
		append(slices.Clone(tuned), "diff-lr0.001-s2", "transformer-lr0.003-s2"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	none := func(string, string) (float64, bool) { return 0, false }
	if got := names(s.Grid(none)); !slices.Equal(got, tuned) || s.TuningRuns() != 4 {
		t.Errorf("before the choice: %q, %d to tune", got, s.TuningRuns())
	}
	s.TuneSeeds = 0
	if got := names(s.Grid(none)); len(got) != 8 || s.TuningRuns() != 0 {
		t.Errorf("with all seeds of all rates: %q, %d to tune", got, s.TuningRuns())
	}
	s.TuneSeeds, s.LRs = 1, s.LRs[:1]
	if got := names(s.Grid(none)); len(got) != 4 || s.TuningRuns() != 0 {
		t.Errorf("of one rate: %q, %d to tune", got, s.TuningRuns())
	}
	s.Sizes, s.LRs = []string{"nano", "small"}, nil
	runs, err := s.Grid(none)
	if err != nil || len(runs) != 8 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	rate := map[string]float64{}
	for _, r := range runs { // without --lr each size has its own
		own, err := recipe.Named(r.Size, plain)
		if rate[r.Size] = r.LR; err != nil || r.LR != own.Optim.LR || r.Recipe.Optim.LR != r.LR {
			t.Errorf("%s has the rate %g, its recipe %g (%v)", r.Name(), r.LR, own.Optim.LR, err)
		}
	}
	if rate["nano"] == rate["small"] {
		t.Error("both sizes have one rate: take others here")
	}
	l := &lab{Options: Options{Rank: 1, Ranks: 3}, spec: s}
	if got := names(l.mine(make([]Run, 8)), nil); len(got) != 3 {
		t.Errorf("the second of three processes has %d of 8 runs", len(got))
	}
	if got := (&lab{}).mine(make([]Run, 8)); len(got) != 8 {
		t.Errorf("one process has %d of 8 runs", len(got))
	}
}

// Probes come 24 times in a run unless it is said otherwise, and never less than every step.
func TestProbeEvery(t *testing.T) {
	for _, x := range []struct{ steps, every, want int }{{12000, 0, 500}, {12000, 7, 7}, {10, 0, 1}, {48, 0, 2}} {
		l := &lab{spec: &Spec{Every: x.every}}
		if got := l.every(&Run{Recipe: recipe.Recipe{Train: recipe.Train{Steps: x.steps}}}); got != x.want {
			t.Errorf("%d steps, every %d: %d", x.steps, x.every, got)
		}
	}
}

// What an ask names, and what is wrong with one.
func TestAsks(t *testing.T) {
	for ask, want := range map[Ask]string{"": "names no task", " ": "names no task",
		"lm x": `"x" is not a setting of lm`, "nothing": "is unknown"} {
		if _, err := ask.task(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", ask, err)
		}
	}
	for ask, want := range map[Ask]string{"lm": "lm.loss", "needle": "needle.bound N=4 R=2",
		"needle needles=8 queries=1": "needle.bound N=8 R=1"} {
		if got := ask.measure(); got != want {
			t.Errorf("%q: %q, want %q", ask, got, want)
		}
	}
}

// A variant's parts and what is wrong with one.
func TestVariantParts(t *testing.T) {
	for v, want := range map[Variant]string{"a diff x=1 y=2": "", "a diff": "want NAME ARCH KEY=VALUE",
		"a dif x=1": "--variant: a: ", "a diff x": `"x" is not a setting`, "a diff x=1 y": `"y" is not a setting`,
		"a/b diff x=1": "name of a folder", "a:b diff x=1": "name of a folder", ".. diff x=1": "name of a folder"} {
		name, arch, set, err := v.parts()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", v, err, want)
		}
		if err == nil && (name != "a" || arch != "diff" || !slices.Equal(set, []string{"x=1", "y=2"})) {
			t.Errorf("%q: %q %q %q", v, name, arch, set)
		}
	}
}

// Before it has its tokens an experiment may change everything, then before its first run everything that they do not
// depend on, and nothing else.
func TestAdopt(t *testing.T) {
	base := func() *Spec { return nanoSpec(20) }
	for what, x := range map[string]struct {
		change func(*Spec)
		taken  bool
	}{
		"tasks": {func(s *Spec) { s.Tasks = []Ask{"lm"} }, true}, "probes": {func(s *Spec) { s.Probes = nil }, true},
		"rates":              {func(s *Spec) { s.LRs = []float64{5} }, true},
		"seeds":              {func(s *Spec) { s.Seeds = []uint64{7} }, true},
		"evaluation seed":    {func(s *Spec) { s.EvalSeed = 3 }, true},
		"the second side":    {func(s *Spec) { s.Archs = []string{plain, v2} }, true},
		"the first side":     {func(s *Spec) { s.Archs = []string{v1, plain} }, true},
		"another first side": {func(s *Spec) { s.Archs = []string{v2} }, false},
		"another first size": {func(s *Spec) { s.Sizes = []string{"tiny"} },
			false},
		"name": {func(s *Spec) { s.Name = "other" }, false}, "data": {func(s *Spec) { s.Data = []string{"x"} }, false},
		"steps":     {func(s *Spec) { s.Steps = 9 }, false},
		"settings":  {func(s *Spec) { s.Set = nil }, false},
		"tokenizer": {func(s *Spec) { s.Tokenizer = "bytes" }, false},
	} {
		dir := t.TempDir()
		if err := writeSpec(filepath.Join(dir, specName), base()); err != nil {
			t.Fatal(err)
		}
		now := base()
		x.change(now)
		if err := admit(dir, now); err != nil {
			t.Errorf("%s: refused before there is a token set: %v", what, err)
		}
		set := filepath.Join(setOf(dir), "manifest.json")
		if err := errors.Join(os.Mkdir(setOf(dir), 0o755), os.WriteFile(set, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := admit(dir, now); (err == nil) != x.taken || err != nil && !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Mkdir(filepath.Join(dir, "runs"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := admit(dir, now); err == nil && what != "the first side" {
			t.Errorf("%s: taken after the first run", what)
		}
		if s, err := ReadSpec(dir); err != nil || !reflect.DeepEqual(s, base()) {
			t.Errorf("%s: the folder holds another experiment now (%v)", what, err)
		}
	}
}

// A spec that is damaged, or of a later version, is refused by its file's name.
func TestDamagedSpec(t *testing.T) {
	for _, text := range []string{`{"format":2,"sizes":["nano"],"archs":["diff"]}`, `{"format":1,"archs":["diff"]}`,
		`{"format":1,"sizes":["nano"]}`,
		`{"format":1,"sizes":["nano"],"archs":["diff"],"later":1}`, `{`, ``} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, specName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var bad *data.CorruptError
		if err := admit(dir, nanoSpec(20)); !errors.As(err, &bad) || !strings.Contains(bad.File, specName) ||
			bad.Fault == "" {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := ReadSpec(dir); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	for text, want := range map[string]string{
		`{"format":7,"sizes":["nano"],"archs":["diff"]}`:    "format 7, this program reads 1",
		`{"format":1,"archs":["diff"]}`:                     "names no sizes or no architectures",
		`{"format":1,"sizes":["nano"]}`:                     "names no sizes or no architectures",
		`{"format":1,"sizes":["nano"],"archs":["diff"]} {}`: "has text after its object",
		``: "is empty",
	} {
		if _, err := parseSpec([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadSpec(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Remains of a killed process are swept, files of the experiment and of others are not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	rubbish := []string{"rows.jsonl.tmp-1", "rows.csv.tmp-2", "report.html.tmp-3", "time.json.tmp-4",
		"tokenizer.json.tmp-5", "data.tmp-6/x", "experiment.json.tmp-7", "runs/a/rows.jsonl.tmp-8"}
	kept := []string{"rows.jsonl", "notes.tmp-1", "runs/a/rows.jsonl", "runs/a/other.tmp-9", "data/x"}
	for _, name := range slices.Concat(rubbish, kept) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	for _, name := range rubbish {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// Text that can fill a batch is enough, to the byte; of a mixture each source must fill a row.
func TestEnough(t *testing.T) {
	dir := t.TempDir()
	path := func(n int) string {
		p := filepath.Join(dir, fmt.Sprintf("%d.txt", n))
		if err := os.WriteFile(p, []byte(strings.Repeat("a", n)), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, x := range []struct {
		list []string
		says string
	}{
		{[]string{path(80)}, ""},
		{[]string{path(79)}, "79.txt: has 79 bytes of text in all, one batch takes 80 tokens"},
		{[]string{path(40) + "@0.5", path(41) + "@0.5"}, ""},
		{[]string{path(90) + "@0.5", path(9) + "@0.5"}, string(filepath.Separator) +
			"9.txt: has 9 bytes of text, one row takes 10 tokens"},
		{[]string{path(90) + "@0.5", path(10) + "@0.5"}, ""},
	} {
		r := recipe.Recipe{Train: recipe.Train{Batch: 8, SeqLen: 10}}
		for _, s := range x.list {
			src, err := recipe.ParseSource(s)
			if err != nil {
				t.Fatal(err)
			}
			r.Data.Sources = append(r.Data.Sources, src)
		}
		err := enough(context.Background(), r)
		if (err == nil) != (x.says == "") || err != nil &&
			(!errors.As(err, new(*data.SourceError)) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%q: %v, want %q", x.list, err, x.says)
		}
	}
}

// Of several errors the one that is no interruption caused the others; runs that diverge are results.
func TestErrorsOfRuns(t *testing.T) {
	stop, other, later := fmt.Errorf("x: %w", train.ErrInterrupted), errors.New("other"), errors.New("later")
	for _, x := range []struct {
		list []error
		want error
	}{{[]error{nil, nil}, nil}, {[]error{stop, other}, other}, {[]error{other, stop}, other},
		{[]error{nil, stop}, stop}, {[]error{other, later}, other}} {
		if got := first(x.list); got != x.want {
			t.Errorf("%v: %v", x.list, got)
		}
	}
	for _, err := range []error{train.ErrNotFinite, eval.ErrDiverged} {
		if note, rest := divergence(fmt.Errorf("step 3: %w", err)); rest != nil ||
			!strings.HasPrefix(note, "step 3: ") {
			t.Errorf("%v: %q, %v", err, note, rest)
		}
	}
	if note, rest := divergence(&tensor.NoMemory{}); rest == nil || note != "" {
		t.Errorf("no memory: %q, %v", note, rest)
	}
	ended, cancel := context.WithCancel(context.Background())
	if err := interrupted(ended, other); err != other {
		t.Errorf("without an end: %v", err)
	}
	cancel()
	if err := interrupted(ended, other); !errors.Is(err, train.ErrInterrupted) || !errors.Is(err, other) {
		t.Errorf("after it: %v", err)
	}
	if err := interrupted(ended, stop); err != stop {
		t.Errorf("an interruption: %v", err)
	}
}

// With --keep none or last a run writes checkpoints by age, not by steps, so that a short one saves at most at its end;
// with all it keeps eight. Own steps between them are kept to.
func TestCheckpointsOfARun(t *testing.T) {
	for _, x := range []struct {
		keep  Keep
		set   []string
		least int
		most  int
		left  int
	}{{KeepLast, nil, 0, 1, 1}, {KeepAll, nil, 7, 9, 8}, {KeepLast, []string{"train.save_every=4"}, 3, 5, 1}} {
		s := nanoSpec(16)
		s.Archs, s.LRs, s.Seeds, s.TuneSeeds, s.Probes, s.Every, s.Set = s.Archs[:1], nil, s.Seeds[:1], 0, nil, 0, x.set
		opt := options(t.TempDir(), oneThread(t))
		opt.Keep = x.keep
		saved := 0
		opt.Progress = func(p Progress) {
			if p.Row != nil && eval.Finite(p.Row.SaveS) {
				saved++
			}
		}
		if _, err := Work(context.Background(), s, opt); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(opt.Dir, "runs", "*", "checkpoints", "step-*"))
		if saved < x.least || saved > x.most || len(found) != x.left {
			t.Errorf("%s %q: %d saved while training, %d left", x.keep, x.set, saved, len(found))
		}
	}
}
