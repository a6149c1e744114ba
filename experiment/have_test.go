package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Half of an experiment on one machine and the rest on another, which gets the rows of the first, is the experiment:
// the same rows, the same choice of learning rates, and a page with every seed's curves and probes.
func TestHave(t *testing.T) {
	ctx := context.Background()
	whole, err := Work(ctx, nanoSpec(40), options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	first := t.TempDir()
	half := nanoSpec(40)
	half.Seeds = half.Seeds[:1]
	if _, err := Work(ctx, half, options(first, oneThread(t))); err != nil {
		t.Fatal(err)
	}
	opt := options(t.TempDir(), oneThread(t))
	opt.Have = []string{filepath.Join(first, rowsName), filepath.Join(first, rowsName)} // files of stretches overlap
	trained, out := map[string]bool{}, said{}
	opt.Say = out.say
	opt.Progress = func(p Progress) { trained[p.Run] = trained[p.Run] || p.Row != nil }
	rows, err := Work(ctx, nanoSpec(40), opt)
	if err != nil {
		t.Fatal(err)
	}
	if out.with("-s1: finished elsewhere") != 4 || out.with("finished elsewhere") != 4 {
		t.Errorf("of four runs that were finished elsewhere it says %q", out.lines)
	}
	for run := range trained {
		if strings.HasSuffix(run, "-s1") {
			t.Errorf("%s was trained again", run)
		}
	}
	if !bytes.Equal(withoutTimings(t, rows), withoutTimings(t, whole)) {
		t.Error("the rows differ from those of one machine")
	}
	pages := [2]string{}
	for i, list := range [][]Row{rows, whole} {
		list = slices.DeleteFunc(slices.Clone(list), func(r Row) bool { return r.Timing })
		p := Summarize(list)
		for _, c := range p.Experiment.Curves {
			for _, side := range c.Sides {
				if len(side.Lines) != 2 {
					t.Errorf("%s of %s has %d seeds", c.ID, side.Name, len(side.Lines))
				}
			}
		}
		var b bytes.Buffer
		if err := p.HTML(&b); err != nil {
			t.Fatal(err)
		}
		pages[i] = b.String()
	}
	if pages[0] != pages[1] || !strings.Contains(pages[0], "Largest attention logit") {
		t.Error("the pages differ, or have no probes")
	}
}

// Rows of runs on other text are refused once the text here is known, and no run begins.
func TestHaveOfOtherText(t *testing.T) {
	first := t.TempDir()
	if _, err := Work(context.Background(), nanoSpec(8), options(first, oneThread(t))); err != nil {
		t.Fatal(err)
	}
	s := nanoSpec(8)
	s.Data = []string{"synthetic:docs=201"}
	opt := options(t.TempDir(), oneThread(t))
	opt.Have = []string{filepath.Join(first, rowsName)}
	_, err := Work(context.Background(), s, opt)
	if !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "other text or tokens") ||
		!strings.Contains(err.Error(), "--data and --tokenizer must mean") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(opt.Dir, "runs")); err == nil {
		t.Error("runs began")
	}
	rows, err := ReadRowFiles(opt.Have[0])
	if err != nil || rows[0].Data == "" {
		t.Fatalf("%q %v", rows[0].Data, err)
	}
	other := rows[len(rows)-1]
	if other.Data = "another"; oneExperiment(append(rows, other)) == nil {
		t.Error("rows of one experiment from two texts are taken")
	}
}

// Rows that are not those of this experiment are refused before anything is written.
func TestHaveOfAnother(t *testing.T) {
	first := t.TempDir()
	if _, err := Work(context.Background(), nanoSpec(8), options(first, oneThread(t))); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Spec){
		"8 steps":                        func(s *Spec) { s.Steps = 9 },
		"parameters":                     func(s *Spec) { s.Set = append(s.Set, "model.layers=1") },
		"--tune-by":                      func(s *Spec) { s.TuneBy = "outliers" },
		"had other settings there: --da": func(s *Spec) { s.EvalSeed++ },
		"has rows of nano and none of":   func(s *Spec) { s.Name = "other" },
		"was not asked":                  func(s *Spec) { s.Tasks = append(s.Tasks, "attention needles=1 queries=1") },
		"not those of one finished run":  func(*Spec) {},
	} {
		s := nanoSpec(8)
		change(s)
		dir := filepath.Join(t.TempDir(), "x")
		opt := options(dir, oneThread(t))
		opt.Have = []string{filepath.Join(first, rowsName)}
		if what == "not those of one finished run" {
			b, err := os.ReadFile(opt.Have[0])
			if err != nil {
				t.Fatal(err)
			}
			opt.Have[0] = filepath.Join(t.TempDir(), "cut.jsonl")
			b = b[:bytes.LastIndexByte(b[:len(b)/3], '\n')+1]
			if err := os.WriteFile(opt.Have[0], b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Work(context.Background(), s, opt)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error that says %q, got %v", what, err)
		}
		if what != "not those of one finished run" && (!errors.Is(err, ErrOther) ||
			!strings.HasSuffix(err.Error(), ": not rows of this experiment")) {
			t.Errorf("%s: %v", what, err)
		}
		for _, name := range []string{specName, "data", "runs"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s: %s was written", what, name)
			}
		}
	}
}

// What decides the numbers of a run is in its settings, and what does not is not: a run of other ones is not taken.
func TestSettingsOfARun(t *testing.T) {
	of := func(change func(*Spec)) string {
		s := nanoSpec(8)
		change(s)
		runs, err := s.Grid(nil)
		if err != nil {
			t.Fatal(err)
		}
		return runs[0].settings(s)
	}
	set := func(pair string) func(*Spec) { return func(s *Spec) { s.Set = append(s.Set, pair) } }
	want := of(func(*Spec) {})
	for what, change := range map[string]func(*Spec){
		"name": func(s *Spec) { s.Name = "x" }, "seeds": func(s *Spec) { s.Seeds = []uint64{7} },
		"checkpoints": set("train.save_every=1"), "kept": set("train.keep_last=7"), "log": set("train.log_every=3"),
		"memory": set("train.micro_batch=1"), "spaces": func(s *Spec) { s.Tasks = []Ask{"lm  pieces=8", " outliers"} },
	} {
		if of(change) != want {
			t.Errorf("%s changes the settings", what)
		}
	}
	for what, change := range map[string]func(*Spec){
		"weight decay": set("optim.weight_decay=0.5"), "rope": set("model.rope_theta=500"),
		"held-out batches": set("train.eval_batches=1"), "batch": set("train.batch=8"),
		"questions": func(s *Spec) { s.EvalSeed++ }, "task": func(s *Spec) { s.Tasks[0] = "lm pieces=9" },
		"probe": func(s *Spec) { s.Probes[0] = "outliers tokens=32" }, "pace of probes": func(s *Spec) { s.Every++ },
		"rate": func(s *Spec) { s.LRs = []float64{1e-4} },
	} {
		if of(change) == want {
			t.Errorf("%s does not change the settings", what)
		}
	}
	rows := func(seed uint64, arch, settings string) []Row {
		return []Row{{origin: origin{Run: fmt.Sprint(arch, seed), Size: "nano", Arch: arch, Seed: seed,
			Settings: settings}, Measure: "m"}}
	}
	for _, x := range []struct {
		rows [][]Row
		ok   bool
	}{
		{[][]Row{rows(1, "diff", "a"), rows(2, "diff", "b")}, false},
		{[][]Row{rows(1, "diff", ""), rows(2, "diff", "a"), rows(3, "diff", "b")}, false},
		{[][]Row{rows(1, "diff", "a"), rows(2, "diff", ""), rows(3, "diff", "a")}, true},
		{[][]Row{rows(1, "diff", "a"), rows(1, "gda", "b")}, true},
	} {
		if err := oneExperiment(slices.Concat(x.rows...)); (err == nil) != x.ok {
			t.Errorf("%v: %v", x.rows, err)
		}
	}
}
