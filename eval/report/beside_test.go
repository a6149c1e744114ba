package report

import (
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// The paper's levels of many-shot learning and its spreads over orders stand in a figure whose questions, context and number
// of orders are the paper's, although its prompts are not known; and in no other.
func TestPaperBesideFigures(t *testing.T) {
	page := func(kind, group string, context int, change func(*eval.Result), detail any) *Page {
		r := made(kind, group, "acc", "accuracy, %", 40, 0.5, detail)
		r.Context = context
		change(r)
		return &Page{Evaluation: several(r)}
	}
	same := func(*eval.Result) {}
	shots := task.ICLDetail{Shots: []int{2, 8}, Acc: []eval.Mean{meanOf(0.25, 0.1), meanOf(0.5, 0.1)}}
	for what, x := range map[string]struct {
		context int
		change  func(*eval.Result)
		beside  bool
	}{
		"as the paper": {65536, same, true}, "a shorter context": {4096, same, false}, "some questions": {65536, func(r *eval.Result) { r.Limit = 5 }, false},
		"generated": {65536, func(r *eval.Result) { r.Task = "standin_icl_trec" }, false},
	} {
		s, err := iclSection(page("icl_trec", "icl", x.context, x.change, shots))
		if err != nil || len(s.Figures) != 1 {
			t.Fatalf("%s: %d figures, %v", what, len(s.Figures), err)
		}
		var lines []string
		for _, r := range s.Figures[0].rows[1:] {
			lines = append(lines, strings.Join(r, "/"))
		}
		want := []string{"A/2/0.25/0.1", "A/8/0.5/0.1"}
		if x.beside {
			want = append(want, "T paper/2/0.699/", "T paper/8/0.699/", "DIFF paper/2/0.8787/", "DIFF paper/8/0.8787/")
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", what, lines, want)
		}
	}
	orders := task.OrderDetail{Acc: map[string][]float64{"random": {0.5, 0.25}}}
	for seeds, want := range map[int]string{10: "spread of the paper's models over ten random orders, in points: Transformer 24, DIFF 9", 9: ""} {
		s, err := orderSection(page("icl_order_trec_fine", "icl_order", 64, func(r *eval.Result) { r.Config["seeds"] = seeds }, orders))
		if err != nil || len(s.Figures) != 1 || s.Figures[0].Note != want {
			t.Errorf("%d orders: %+v, %v", seeds, s.Figures, err)
		}
	}
	for kind, want := range map[string]string{"needle": "text, digits and scoring", "attention": "the paper's formula and prompts"} {
		if got := differs(&eval.Result{Kind: kind}, "x"); !strings.HasPrefix(got[len(got)-1], want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	for group, want := range map[string]string{"icl": "the paper's prompts", "math": "the paper's prompts", "icl_order": "prompts and examples", "hallucination": "0 questions"} {
		if got := differs(&eval.Result{Group: group}, "x"); !strings.HasPrefix(got[len(got)-1], want) {
			t.Errorf("%s: %q", group, got)
		}
	}
}
