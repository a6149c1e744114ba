// Package harness makes tasks from lm-evaluation-harness's task files, so that a new task needs no new binary.
//
// Read finds the files and resolves includes and groups (file.go, yaml.go). A task's documents come from local JSON
// lines or Parquet (docs.go), its prompts and targets from fields or Jinja templates (field.go) or from harness
// functions that are implemented here (function.go). Examples are drawn with Python's generator, so that prompts are
// byte-identical to the harness's (shots.go, random.go). kinds.go asks, filter.go and metric.go score. The golden files
// of the tests were written by the harness itself.
package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"antiphase/eval"
)

// place is the position of tasks from files in listings: after the built-in ones.
const place = 100 * 1000

// Read makes tasks of a file, or of all files below a folder that define one. Notes list keys of the files that have no
// effect here.
func Read(path string) (tasks []eval.Task, notes []string, err error) {
	list, err := readFiles(path)
	if err != nil {
		return nil, nil, err
	}
	ignored := map[string]bool{}
	for i, c := range list {
		name, _ := c.at["task"].(string)
		for _, name := range []string{name, c.group} {
			if name == everyTask || !printable(name) {
				return nil, nil, fmt.Errorf("%s: %q cannot be a name", c.path, name)
			}
		}
		s, err := newSpec(c)
		t := refused(c, err)
		if err == nil {
			t = s.task()
			for _, key := range s.ignored {
				ignored[key] = true
			}
		}
		if k := slices.IndexFunc(tasks, func(o eval.Task) bool { return o.Name == t.Name }); k >= 0 {
			return nil, nil, fmt.Errorf("%s: the task %s is there twice", c.path, t.Name)
		}
		t.Place = place + i
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		return nil, nil, fmt.Errorf("%s: no file here defines a task (key \"task\")", path)
	}
	if len(ignored) > 0 {
		notes = append(notes, fmt.Sprintf("%s: ignored, since it has no effect here: %s", path,
			strings.Join(sortedKeys(ignored), ", ")))
	}
	return tasks, notes, nil
}

// everyTask selects all tasks in --tasks, so no task may have this name.
const everyTask = "all"

// printable reports whether a text can be shown on a terminal.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// refused is a task that cannot be run: selecting it reports why, and other tasks of its folder are not affected.
func refused(c config, why error) eval.Task {
	name, _ := c.at["task"].(string)
	return eval.Task{Name: name, Group: c.group, Version: 1, Shots: -1, Doc: "cannot be run: " + fmt.Sprint(why),
		Measures: []eval.Measure{kindMeasure["multiple_choice"]},
		Prepare: func(context.Context, *eval.Plan) (*eval.Job, error) {
			return nil,
				fmt.Errorf("%s: %w", c.path, why)
		}}
}

// Merge adds tasks from files to the built-in ones. A task from a file replaces a built-in one of the same name if that
// is also a data set; names of other tasks are reserved.
func Merge(builtin, files []eval.Task) (all []eval.Task, notes []string, err error) {
	all = slices.Clone(builtin)
	for _, t := range files {
		i := slices.IndexFunc(all, func(b eval.Task) bool { return b.Name == t.Name })
		switch {
		case i < 0:
			if slices.ContainsFunc(builtin, func(b eval.Task) bool { return b.Group == t.Name }) {
				return nil, nil, fmt.Errorf("task %s of a file has the name of a group of built-in tasks; rename it",
					t.Name)
			}
			all = append(all, t)
		case all[i].Group == "mc" || all[i].Group == "math" || all[i].Group == "glue":
			all[i] = t
			notes = append(notes, fmt.Sprintf("task %s is the one of the file, not the built-in one", t.Name))
		default:
			return nil, nil, fmt.Errorf("task %s of a file has the name of a built-in task; rename it", t.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b eval.Task) int { return cmp.Compare(a.Place, b.Place) })
	return all, notes, nil
}

// task is the specification in the evaluator's form.
func (s *spec) task() eval.Task {
	t := eval.Task{Name: s.name, Group: s.group, Version: s.version, Shots: s.shots, Doc: s.kind + " of " + s.path,
		Settings: []eval.Setting{{Key: "fewshot_seed", Default: 1234, Rule: eval.AtLeast(0),
			Doc: "seed of Python's generator that draws the examples; the harness has 1234"}},
		Prepare: s.prepare}
	for _, m := range s.metrics {
		if m.corpus == nil {
			t.Measures = append(t.Measures, m.measure())
		}
	}
	if len(t.Measures) == 0 { // only metrics of the whole set
		t.Measures = []eval.Measure{kindMeasure[s.kind]}
	}
	return t
}

// kindMeasure is the measure of a sample if all metrics are of the whole set.
var kindMeasure = map[string]eval.Measure{
	"loglikelihood":         {Name: "nll", Better: eval.Lower, Label: "negative log-likelihood, nats"},
	"loglikelihood_rolling": {Name: "nll_per_byte", Better: eval.Lower, Label: "loss, nats/byte"},
	"multiple_choice":       {Name: "acc", Better: eval.Higher, Label: "accuracy, %"},
	"generate_until":        {Name: "exact_match", Better: eval.Higher, Label: "exact match, %"},
}

// prepare reads the documents and renders every request.
func (s *spec) prepare(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	b, err := s.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	items, err := b.items(ctx, p)
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: 64, Config: map[string]any{"source": b.source, "task_file": s.hash, "output_type": s.kind}}
	if len(s.functions) > 0 {
		j.Config["functions"] = strings.Join(s.functions, ", ")
	}
	chance, known := 0.0, 0
	for i, x := range items {
		j.IDs = append(j.IDs, fmt.Sprint(i))
		if x.gold.Text != "" {
			j.Gold = append(j.Gold, x.gold)
		}
		if len(x.choices) > 0 {
			chance += float64(len(x.right)) / float64(len(x.choices)) / float64(len(items))
			known++
		}
	}
	if known == len(items) && s.kind == "multiple_choice" {
		j.Floors = eval.Chance(chance, "acc", "acc_norm", "acc_bytes")
	}
	j.Ask = kinds[s.kind](s, items)
	j.Finish = func(r *eval.Result) error { return s.finish(r) }
	return j, nil
}
