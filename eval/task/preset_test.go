package task

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/eval"
)

// Every preset's tasks exist and know its settings, at both scales.
func TestPresetsParse(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if seen[p.Name] || p.Doc == "" || (len(p.Parts) == 0) == (p.Command == "") {
			t.Errorf("preset %q is there twice or incomplete", p.Name)
		}
		seen[p.Name] = true
		if _, err := FindPreset(p.Name); (err == nil) != (p.Command == "") || err != nil &&
			!strings.Contains(err.Error(), p.Command) {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, part := range p.Parts {
			tasks, err := eval.Select(All(), strings.Split(part.Tasks, ","))
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			for _, set := range []map[string]string{part.Set, fitted(&part, 4096)} {
				for _, task := range tasks {
					for key := range set {
						if !slices.ContainsFunc(task.Settings, func(s eval.Setting) bool { return s.Key == key }) {
							t.Errorf("%s: %s has no setting %s", p.Name, task.Name, key)
						}
					}
				}
			}
		}
	}
	if _, err := FindPreset("table99"); err == nil || !strings.Contains(err.Error(), "figure11") {
		t.Errorf("%v", err)
	}
}

func fitted(p *PresetPart, context int) map[string]string {
	if p.Fit == nil {
		return nil
	}
	return p.Fit(context)
}

// Of every preset a run with two samples of each task gives its rows, on a model of our own.
func TestPresetsRun(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	s := subject(t, d, "diff2", 1024)
	for _, p := range Presets() {
		tasks, err := p.Tasks(true, 1024)
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) == 0 {
			continue
		}
		ev, err := eval.Run(t.Context(), []eval.Target{modelOf("m", s, 1024)}, tasks,
			eval.Options{Seed: 1, Shots: -1, Limit: 2})
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		if got := len(ev.Models[0].Results); got != len(tasks) {
			t.Errorf("%s: %d results of %d tasks", p.Name, got, len(tasks))
		}
		for _, r := range ev.Models[0].Results {
			if r.N < 1 || len(r.Metrics) == 0 || r.Metrics[0].N < 1 {
				t.Errorf("%s: %s has no rows: %+v", p.Name, r.Task, r.Metrics)
			}
			if b, err := json.Marshal(r); err != nil || len(b) == 0 {
				t.Errorf("%s: %s: %v", p.Name, r.Task, err)
			}
		}
	}
}

// A stub that is always right scores 1 in every preset with right answers, and one that guesses earns at most a little.
func TestPresetsRightAndGuessed(t *testing.T) {
	for _, p := range Presets() {
		tasks, err := p.Tasks(true, 2048)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tasks {
			if tasks[i].Inside {
				continue
			}
			opt := eval.Options{Seed: 5, Limit: 40, Shots: -1}
			j := prepared(t, &tasks[i], opt, 2048)
			if len(j.Gold) == 0 {
				continue
			}
			right := answer(t, &tasks[i], opt, knows(j.Job), 2048)
			guessed := answer(t, &tasks[i], opt, guesser{rand.New(rand.NewPCG(1, 2))}, 2048)
			for _, measure := range tasks[i].Measures {
				name := measure.Name
				m, ok := right.Metric(name)
				if !ok || measure.Better != eval.Higher || beside[name] {
					continue
				}
				if !near(m.Value, 1, 1e-12) {
					t.Errorf("%s: %s: %s of right answers is %g", p.Name, tasks[i].Name, name, m.Value)
				}
				if g, _ := guessed.Metric(name); g.Value > j.Floors[name]["chance"]+5*max(g.StdErr, 0.08) {
					t.Errorf("%s: %s: %s of guesses is %g, chance %g", p.Name, tasks[i].Name, name, g.Value,
						j.Floors[name]["chance"])
				}
			}
		}
	}
}

// Whatever was published is a preset or has a reason, and the document holds the same list.
func TestPublished(t *testing.T) {
	b, err := os.ReadFile("../../docs/evaluation.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	used := map[string]bool{}
	for _, x := range AllPublished() {
		if (x.Preset == "") == (x.Why == "") {
			t.Errorf("%s has neither a preset nor a reason, or both", x.What)
		}
		row := "| " + x.What + " | `" + x.Preset + "` |"
		if x.Preset == "" {
			row = "| " + x.What + " | – | " + x.Why + " |"
		}
		if !strings.Contains(doc, row) {
			t.Errorf("docs/evaluation.md lacks %q", row)
		}
		used[x.Preset] = true
	}
	for _, p := range Presets() {
		if !used[p.Name] {
			t.Errorf("preset %s stands for nothing published", p.Name)
		}
		if !strings.Contains(doc, "`"+p.Name+"`") {
			t.Errorf("docs/evaluation.md lacks the preset %s", p.Name)
		}
	}
}
