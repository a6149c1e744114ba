// Package task holds the evaluation tasks, one file each: the questions, the scoring, and the data of figures.
//
// A task's file registers itself (see register) and is found by its name; nothing else has to change. Its comment names
// the table or figure of the paper and what the paper leaves open. Start with mc.go.
package task

import (
	"cmp"
	"slices"

	"antiphase/eval"
)

var registered []eval.Task

// register adds tasks at a place in the listing: places follow the paper.
func register(place int, tasks ...eval.Task) {
	for i, t := range tasks {
		registerAt(place, i, t)
	}
}

// registerAt adds the i-th task of a place.
func registerAt(place, i int, t eval.Task) {
	t.Place = 100*place + i
	registered = append(registered, t)
}

// All lists every task, in the order of the paper.
func All() []eval.Task {
	out := slices.Clone(registered)
	slices.SortStableFunc(out, func(a, b eval.Task) int { return cmp.Compare(a.Place, b.Place) })
	return out
}

// Named is the task of a name. It must exist: names come from code.
func Named(name string) eval.Task {
	i := slices.IndexFunc(registered, func(t eval.Task) bool { return t.Name == name })
	if i < 0 {
		panic("task: there is no task " + name) // names come from code
	}
	return registered[i]
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
