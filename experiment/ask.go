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
		return eval.Task{}, fmt.Errorf("--task: %q names no task", string(a))
	}
	i := slices.IndexFunc(task.All(), func(t eval.Task) bool { return t.Name == words[0] })
	if i < 0 {
		return eval.Task{}, fmt.Errorf("--task: %q is unknown; see \"antiphase eval ls\"", words[0])
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
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		i := at(key)
		if !ok || i < 0 {
			var keys []string
			for _, s := range t.Settings {
				keys = append(keys, s.Key)
			}
			return t, fmt.Errorf("--task: %q is not a setting of %s; want KEY=VALUE with one of %s", w, t.Name,
				strings.Join(keys, ", "))
		}
		if err := t.Settings[i].Check(value); err != nil {
			return t, fmt.Errorf("--task: %s of %s: %w", w, t.Name, err)
		}
		set[key] = value
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
