package experiment

import (
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Ask is a task with some of its settings: "needle needles=4 queries=2".
type Ask string

// wordsOf are the asks with one space between words.
func wordsOf(list []Ask) (out []string) {
	for _, a := range list {
		out = append(out, strings.Join(strings.Fields(string(a)), " "))
	}
	return out
}

// task resolves the ask; defaults are settings that it does not name itself, as far as the task has them.
func (a Ask) task(defaults map[string]string) (eval.Task, error) {
	words := strings.Fields(string(a))
	if len(words) == 0 {
		return eval.Task{}, fmt.Errorf("%q names no task", string(a))
	}
	i := slices.IndexFunc(task.All(), func(t eval.Task) bool { return t.Name == words[0] })
	if i < 0 {
		return eval.Task{}, fmt.Errorf("%q is unknown; see \"antiphase eval ls\"", words[0])
	}
	t := task.All()[i]
	at := func(key string) int {
		return slices.IndexFunc(t.Settings, func(s eval.Setting) bool { return s.Key == key })
	}
	set := map[string]string{}
	for k, v := range defaults {
		if at(k) >= 0 {
			set[k] = v
		}
	}
	var own []string
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		i := at(key)
		if !ok || i < 0 {
			var keys []string
			for _, s := range t.Settings {
				keys = append(keys, s.Key)
			}
			return t, fmt.Errorf("%q is not a setting of %s; want KEY=VALUE with one of %s", w, t.Name,
				strings.Join(keys, ", "))
		}
		if slices.Contains(own, key) {
			return t, fmt.Errorf("%s of %s is there twice; give it once", key, t.Name)
		}
		set[key], own = value, append(own, key)
	}
	return t.With(set), nil
}

// tasks resolves a list of asks for the experiment in dir, whose rows have T tokens: text comes from its held-out part
// in pieces of a row, and needle prompts are about as long as training documents.
func tasks(list []Ask, set string, T int) ([]eval.Task, error) {
	var out []eval.Task
	for _, a := range list {
		defaults := map[string]string{"text": "set:" + set, "length": fmt.Sprint(T), "lengths": fmt.Sprint(T * 3 / 4),
			"pieces": "128"}
		if strings.HasPrefix(string(a), "outliers") {
			defaults["tokens"] = fmt.Sprint(8 * T)
		}
		t, err := a.task(defaults)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// checkAsks rejects tasks and settings that a run of the grid could not be asked: what can be told without text and
// tokens. rehearse finds the rest.
func (s *Spec) checkAsks(runs []Run) error {
	for i := range runs {
		r := &runs[i]
		if steps := r.Recipe.Train.Steps; len(s.Probes) > 0 && s.Every > steps {
			return fmt.Errorf("--probe-every: is %d, but runs of size %s have %d steps", s.Every, r.Size, steps)
		}
	}
	for _, flag := range []string{"--task", "--probe"} {
		list := s.Tasks
		if flag == "--probe" {
			list = s.Probes
		}
		for _, a := range list {
			for _, t := range rooms(runs) {
				if err := a.check(t); err != nil {
					return fmt.Errorf("%s: %q: %w", flag, string(a), err)
				}
			}
		}
	}
	return nil
}

// check rejects an ask that models with this room cannot be asked.
func (a Ask) check(t room) error {
	list, err := tasks([]Ask{a}, "", t.row)
	if err != nil {
		return err
	}
	return (&eval.Options{Shots: -1}).Check(&list[0], t.context)
}

// room is what decides the questions of a run: the tokens of its rows and its model's context.
type room struct{ row, context int }

// rooms are those of all runs, each once.
func rooms(runs []Run) (out []room) {
	for i := range runs {
		r := &runs[i].Recipe
		if t := (room{r.Train.SeqLen, r.Model.Context}); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
