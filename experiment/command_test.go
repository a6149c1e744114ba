package experiment

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"antiphase/data"
)

// commandSpec is the experiment that a command of the plan describes.
func commandSpec(t *testing.T, c *cell) *Spec {
	t.Helper()
	flags := flagsOf(c.command)
	s := &Spec{Name: c.name, Sizes: flags["size"], Archs: three, TuneSeeds: 1}
	if list := flags["arch"]; len(list) > 0 {
		s.Archs = strings.Split(list[0], ",")
	}
	for _, lr := range strings.Split(strings.Join(flags["lr"], ","), ",") {
		if x, err := strconv.ParseFloat(lr, 64); err == nil {
			s.LRs = append(s.LRs, x)
		}
	}
	for i := range c.seeds {
		s.Seeds = append(s.Seeds, uint64(i+1))
	}
	if list := flags["tune-by"]; len(list) > 0 {
		s.TuneBy = Ask(list[0])
	}
	s, err := commanded(s, c.command)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return s
}

// olderChanges are changes to experiments of the plan, by what their refusal says; "" are those that change nothing.
var olderChanges = map[string]map[string]func(*Spec){
	"160m-text": {
		"optim.beta2=0.98, here it is 0.5 (--set": func(s *Spec) { s.Set = append(s.Set, "optim.beta2=0.5") },
		"train.eval_every=100, here it is 50":     func(s *Spec) { s.Set[2] = "train.eval_every=50" },
		`--probe [], here they are ["outliers"]`:  func(s *Spec) { s.Probes = []Ask{"outliers"} },
		`--task ["attention needles=4 queries=1 samples=4" "lm" "lowbit`: func(s *Spec) {
			s.Tasks[3] = "attention needles=4 queries=1 samples=5"
		},
		"--eval-seed 20, here it is 21": func(s *Spec) { s.EvalSeed++ },
		`--data ["files, weight 0, epochs 0"], here it is ["synthetic:docs=9`: func(s *Spec) {
			s.Data = []string{"synthetic:docs=9"}
		},
		"": func(s *Spec) {
			slices.Reverse(s.Set)
			slices.Reverse(s.Tasks)
			s.Set = append(s.Set, " train.batch = 32", "train.micro_batch=8")
			s.Tasks[0] = "  attention needles=4  queries=1 samples=4"
			s.Data = []string{"elsewhere/*.zst"}
		},
	},
	"ablations-mini": {
		"optim.beta1=0.9, here it is 0.8": func(s *Spec) { s.Variants[2] += " optim.beta1=0.8" },
		"": func(s *Spec) {
			s.Variants[3] = "diff-l08 diff model.lambda_const=0.80 model.lambda_init=constant"
		},
	},
	"830m-text": { // has settings, which do not say what differs
		"optim.beta2=0.98, here it is 0.5": func(s *Spec) { s.Set = append(s.Set, "optim.beta2=0.5") },
	},
	"retrieval-small": {
		"--probe-every 0, here it is 5": func(s *Spec) { s.LRs, s.Every = s.LRs[1:], 5 },
		`["synthetic:docs=9, weight`: func(s *Spec) {
			s.LRs, s.Data = s.LRs[1:], []string{"synthetic:docs=9"}
		},
	},
}

// Rows of versions that did not write settings are taken by the commands of the plan, which made them, and refused if
// anything that decides their numbers is otherwise here.
func TestHaveOfOlderVersions(t *testing.T) {
	take := func(c *cell, change func(*Spec)) (int, error) {
		s := commandSpec(t, c)
		change(s)
		runs, err := s.Grid(nil)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("../results/evidence", c.name+".jsonl")
		have, err := s.elsewhere([]string{path}, runs, "", func(*Run) bool { return false })
		return len(have), err
	}
	for i := range cells {
		c := &cells[i]
		if n, err := take(c, func(*Spec) {}); err != nil || n < c.seeds*len(c.sides) {
			t.Errorf("%s: %d runs, %v", c.name, n, err)
		}
	}
	for name, changes := range olderChanges {
		for says, change := range changes {
			_, err := take(&cells[place(name)], change)
			if says == "" && err != nil {
				t.Errorf("%s: refused, although nothing differs: %v", name, err)
			} else if says != "" && (!errors.Is(err, ErrOther) || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
		}
	}
}

// Of a command that says nothing about an experiment nothing is compared, and one that no version has made is refused.
func TestOtherCommands(t *testing.T) {
	s := nanoSpec(8)
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	const same = " --size nano --steps 8 --set train.save_every=1 --task outliers --task 'lm pieces=8'" +
		" --probe 'outliers tokens=64' --probe-every 2"
	for command, says := range map[string]string{"": "", "antiphase speedrun --steps 9": "",
		"antiphase compare" + same: "", "antiphase --device cuda compare" + same + " --eval-seed 20": "",
		"antiphase compare" + same + " --steps=9":           "train.steps=9, here it is 8",
		"antiphase compare" + same + " --steps x":           "cannot be read",
		"antiphase compare" + same + " --set train.wrong=1": "train.wrong",
		"antiphase compare --size nano --steps 8":           "--task",
	} {
		got := otherwise(s, &runs[0], command)
		if (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", command, got, says)
		}
	}
	s.Variants = []Variant{"slow diff optim.beta2=0.99"}
	side := Run{Size: "nano", Arch: "slow", LR: 1e-3, Seed: 1}
	if side.Recipe, err = s.recipe(&side); err != nil {
		t.Fatal(err)
	}
	if got := otherwise(s, &side, "antiphase compare"+same); !strings.Contains(got, "no such side") {
		t.Errorf("a variant that the command lacks: %q", got)
	}
	s.Tasks, s.Probes = DefaultAsks(s.Sizes, plain)
	if got := otherwise(s, &runs[0], "antiphase compare --size nano --steps 8"); got != "" {
		t.Errorf("the default tasks: %s", got)
	}
	if tasks, probes := DefaultAsks([]string{"tiny"}, plain); len(tasks) != 5 || len(probes) != 1 {
		t.Errorf("of tiny: %q, %q", tasks, probes)
	}
}

// A run that two files have must have the same values in both; times and machines may differ.
func TestHaveTwice(t *testing.T) {
	c := &cells[place("speed-160m")]
	s := commandSpec(t, c)
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join("../results/evidence", c.name+".jsonl"), filepath.Join(t.TempDir(), "b.jsonl")
	const measure = "curve.train_loss"
	for what, x := range map[string]struct {
		change func(*Row)
		other  string // the measure that is refused
	}{
		"the same": {func(*Row) {}, ""},
		"a time": {func(r *Row) {
			if r.Timing || r.Task != nil && r.Task.Kind == "throughput" {
				r.Value *= 2
			}
		}, ""},
		"a machine": {func(r *Row) { r.Machine, r.Commit, r.Precision = "another", "another", "" }, ""},
		"a value": {func(r *Row) {
			if r.Measure == measure {
				r.Value += 1e-9
			}
		}, measure},
		"a curve": {func(r *Row) {
			if r.Measure == measure {
				r.Curve[1][1] += 1e-9
			}
		}, measure},
		"a measure": {func(r *Row) {
			if r.Measure == measure {
				r.Measure += "2"
			}
		}, measure},
	} {
		rows, err := ReadRowFiles(first)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			x.change(&rows[i])
		}
		write(t, second, rows)
		for _, paths := range [][]string{{first, second}, {second, first}} {
			_, err = s.elsewhere(paths, runs, "", func(*Run) bool { return false })
			if x.other == "" && err != nil {
				t.Errorf("%s: %v", what, err)
			}
			var bad *data.CorruptError
			for _, word := range []string{first, second, runs[0].Name(), x.other} {
				if x.other != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), word)) {
					t.Errorf("%s: %v does not name %s", what, err, word)
				}
			}
		}
	}
}
