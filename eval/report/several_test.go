package report

import (
	"encoding/json"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// parts are the sections of a page of some results of one model, without those that every page of these tasks has.
func parts(t *testing.T, list ...*eval.Result) (figures []figure, tables []grid, blocks int) {
	t.Helper()
	all, err := allSections(&Page{Evaluation: several(list...)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		figures, tables, blocks = append(figures, s.Figures...), append(tables, s.Tables...), blocks+len(s.Blocks)
	}
	return figures, tables, blocks
}

// again is a result of the same task under another setting.
func again(r *eval.Result, variant int) *eval.Result {
	x := *r
	x.Config = map[string]any{"variant": variant}
	for k, v := range r.Config {
		x.Config[k] = v
	}
	return &x
}

// A task that was asked in two ways has the figures of both, each under its own name; one way without data, as rows of
// an experiment may come, takes nothing from the other, whichever comes first.
func TestTwoQuestionsOfATask(t *testing.T) {
	seen := 0
	point := eval.Mean{Value: 0.5, StdErr: 0.1, N: 4}
	noise := task.NoiseCurve{Kind: "words", Label: "words", Doses: []float64{0, 1},
		Scores: []eval.Mean{point, point}, Area: point}
	hops := map[string][][]eval.Mean{"bound": {{point, point}}}
	for _, r := range append(fakeResults(1),
		made("noise", "", "area", "area, %", 4, 1, task.NoiseDetail{Curves: []task.NoiseCurve{noise}}),
		made("needle_hop", "", "bound", "right, %", 4, 1, task.HiddenDetail{Lengths: []int{64, 128}, Scores: hops})) {
		if len(r.Detail) == 0 {
			continue
		}
		seen++
		one, _, _ := parts(t, again(r, 1))
		_, tables, blocks := parts(t, again(r, 1))
		bare := again(r, 2)
		bare.Detail = nil
		for what, list := range map[string][]*eval.Result{"before": {bare, again(r, 1)}, "after": {again(r, 1), bare}} {
			f, g, b := parts(t, list...)
			if len(f) != len(one) || len(g) < len(tables) || b != blocks {
				t.Errorf("%s: a question without data %s the other: %d figures, %d tables, %d blocks; alone %d, %d, %d",
					r.Task, what, len(f), len(g), b, len(one), len(tables), blocks)
			}
		}
		f, g, b := parts(t, again(r, 1), again(r, 2))
		if len(f)+len(g)+b <= len(one)+len(tables)+blocks && r.Kind != "throughput" { // which has one table for all
			t.Errorf("%s: two questions have %d figures, %d tables, %d blocks; one %d, %d, %d", r.Task, len(f), len(g),
				b, len(one), len(tables), blocks)
		}
		ids := map[string]bool{}
		for _, x := range f {
			if ids[x.ID] && x.SVG != "" {
				t.Errorf("%s: two figures have the name %s", r.Task, x.ID)
			}
			ids[x.ID] = true
		}
		for _, x := range g {
			if ids[x.ID] {
				t.Errorf("%s: two tables have the name %s", r.Task, x.ID)
			}
			ids[x.ID] = true
		}
	}
	if seen < 16 {
		t.Errorf("%d tasks with figures", seen)
	}
}

// λ in the table is over all models of a side: seeds count alike, one without a λ not at all.
func TestLambdaOfSeeds(t *testing.T) {
	p := pageOf("attention", "", task.AttentionDetail{Lambda: []float64{0.25, 0.5}},
		task.AttentionDetail{Lambda: []float64{0.75, 0.5}}, task.AttentionDetail{})
	var all eval.Side
	for _, s := range p.Evaluation.Sides() {
		all.Models = append(all.Models, s.Models...)
	}
	rows := lambdaRows(p.Evaluation, p.Evaluation.Questions()[0], []eval.Side{all, {Models: all.Models[2:]}})
	if len(rows) != 1 || rows[0].cells[0].text != "0.500 (0.25 to 0.75)" || rows[0].cells[1].text != "" {
		t.Errorf("%+v", rows)
	}
	all.Models[1].Results[0].Detail = json.RawMessage(`{"lambda": [1`)
	if rows := lambdaRows(p.Evaluation, p.Evaluation.Questions()[0],
		[]eval.Side{all}); rows[0].cells[0].text != "0.375 (0.25 to 0.50)" {
		t.Errorf("one of damaged data: %+v", rows)
	}
}
