package report

import (
	"maps"
	"slices"
	"testing"

	"antiphase/eval"
)

// The keys of a task that was asked in several ways say which way each is, whatever came first: none of them passes for the task itself.
func TestHarnessSeveralWays(t *testing.T) {
	ways := []map[string]any{{"needles": 1, "queries": 1}, {"needles": 4, "queries": 2}}
	var first []string
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		var cells []*eval.Cell
		for _, i := range order {
			r := made("needle", "", "bound", "right, %", 4, 0.5, nil)
			r.Question, r.Config = []string{"q one", "q two"}[i], ways[i]
			cells = append(cells, cellOf(eval.Model{Name: "m", Hash: "h"}, 1, r))
		}
		cells = append(cells, cellOf(eval.Model{Name: "m", Hash: "h"}, 2, made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil)))
		other := made("needle", "", "bound", "right, %", 4, 0.5, nil)
		other.Question, other.Config = "q two", ways[1]
		cells = append(cells, cellOf(eval.Model{Name: "n", Hash: "i"}, 1, other))
		e := eval.Assemble(cells)
		if keys := slices.Collect(maps.Keys(NewHarness(e, &e.Models[1]).Results)); !slices.Equal(keys, []string{"needle N=4 R=2"}) {
			t.Errorf("the other model: %q", keys)
		}
		keys := slices.Sorted(maps.Keys(NewHarness(e, &e.Models[0]).Results))
		if want := []string{"needle N=1 R=1", "needle N=4 R=2", "piqa"}; !slices.Equal(keys, want) {
			t.Errorf("order %v: %q, want %q", order, keys, want)
		}
		if first == nil {
			first = keys
		} else if !slices.Equal(keys, first) {
			t.Errorf("%q in another order, %q", keys, first)
		}
	}
}
