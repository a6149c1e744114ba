package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// groupOf is an evaluation of models by what each was asked: "task/shots" with a share of right answers, a loss where
// the task begins with "ppl", generated questions where it begins with "standin_".
func groupOf(asked map[string]map[string]float64) *eval.Evaluation {
	var cells []*eval.Cell
	for _, model := range []string{"A", "B", "C"} {
		for place, task := range []string{"x/0", "y/0", "x/5", "y/5", "z/5", "standin_p/5", "standin_q/5",
			"ppl1/0", "ppl2/0"} {
			share, ok := asked[model][task]
			if !ok {
				continue
			}
			name, shots, _ := strings.Cut(task, "/")
			r := made(strings.TrimPrefix(name, "standin_"), "g", "acc", "accuracy, %", 8, share, nil)
			if strings.HasPrefix(name, "ppl") {
				r.Metrics[0] = eval.Metric{Name: "perplexity", Label: "perplexity",
					Mean: eval.Mean{Value: share, StdErr: 0.3, N: 8}, Better: eval.Lower}
			}
			r.Question, r.Task, r.Shots = task, name, int(shots[0]-'0')
			cells = append(cells, cellOf(eval.Model{Name: model, Hash: model, Run: "run", Tokens: int64(model[0]-'A') +
				1}, place, r))
		}
	}
	return eval.Assemble(cells)
}

// A row of means holds one number per side over the same questions: sides that were asked other sets, or with another
// number of examples, have rows of their own.
func TestMeansOfTheSameQuestions(t *testing.T) {
	all := map[string]float64{"x/0": 0, "y/0": 0.25, "x/5": 0.5, "y/5": 1}
	five := map[string]float64{"x/5": 0.25, "y/5": 0.5}
	for name, c := range map[string]struct {
		asked map[string]map[string]float64
		want  []string
	}{
		"the same": {map[string]map[string]float64{"A": five, "B": five}, []string{"g, mean of 2: acc, %: 37.5 37.5"}},
		"examples": {map[string]map[string]float64{"A": all, "B": five},
			[]string{"g, mean of 2: acc, %: 12.5 –", "g, mean of 2 5-shot: acc, %: 75.0 37.5"}},
		"first without": {map[string]map[string]float64{"A": five, "B": all},
			[]string{"g, mean of 2 5-shot: acc, %: 37.5 75.0", "g, mean of 2: acc, %: – 12.5"}},
		"other sets": {map[string]map[string]float64{"A": five, "B": {"x/5": 1, "z/5": 0},
			"C": {"x/5": 1, "y/5": 1, "z/5": 0.25}},
			[]string{"g, mean of 2: acc, %: 37.5 – –", "g, mean of 2 (2): acc, %: – 50.0 –",
				"g, mean of 3: acc, %: – – 75.0"}},
		"generated": {map[string]map[string]float64{"A": {"x/5": 1, "y/5": 1, "standin_p/5": 0.25, "standin_q/5": 0}},
			[]string{"g, mean of 2: acc, %: 100.0", "g°, mean of 2: acc, %: 12.5"}},
		"perplexities": {map[string]map[string]float64{"A": {"ppl1/0": 12, "ppl2/0": 8},
			"B": {"ppl1/0": 6, "ppl2/0": 8}}, []string{"g, mean of 2: perplexity: 10.00 7.00"}},
		"one": {map[string]map[string]float64{"A": {"x/0": 1, "x/5": 1}}, nil},
	} {
		var got []string
		for _, x := range (&Page{Evaluation: groupOf(c.asked)}).lines() {
			if !strings.Contains(x.task, ", mean of") {
				continue
			}
			row := x.task + ": " + x.measure + ":"
			for _, c := range x.cells {
				v, _, _ := strings.Cut(c.text, " ±")
				if v == "" {
					v = "–"
				}
				row += " " + v
			}
			if len(x.diffs) != len(x.cells)-1 {
				t.Errorf("%s: %d differences of %d sides", row, len(x.diffs), len(x.cells))
			}
			got = append(got, row)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A line of means over training joins checkpoints that were asked the same questions.
func TestMeansOverTraining(t *testing.T) {
	all := map[string]float64{"x/0": 0, "y/0": 0.25, "x/5": 0.5, "y/5": 1}
	five := map[string]float64{"x/5": 0.25, "y/5": 0.5}
	for name, c := range map[string]struct {
		asked map[string]map[string]float64
		want  []string
	}{
		"the same": {map[string]map[string]float64{"A": five, "B": five},
			[]string{"g, mean of its sets, mean, %: 1 37.5 2 37.5"}},
		"examples": {map[string]map[string]float64{"A": all, "B": five},
			[]string{"g, mean of 2 5-shot, mean, %: 1 75 2 37.5"}},
		"both": {map[string]map[string]float64{"A": all, "B": five, "C": all},
			[]string{"g, mean of 2, mean, %: 1 12.5 3 12.5", "g, mean of 2 5-shot, mean, %: 1 75 2 37.5 3 75"}},
		"perplexities": {map[string]map[string]float64{"A": {"ppl1/0": 12, "ppl2/0": 8},
			"B": {"ppl1/0": 6, "ppl2/0": 8}}, []string{"g, mean of its sets, mean: 1 10 2 7"}},
	} {
		s, err := tokensSection(&Page{Evaluation: groupOf(c.asked)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ids := map[string]bool{}
		for _, f := range s.Figures {
			if ids[f.ID] {
				t.Errorf("%s: two figures %s", name, f.ID)
			}
			ids[f.ID] = true
			if !strings.Contains(f.Title, "mean of") {
				continue
			}
			line := fmt.Sprintf("%s, %s:", f.Title, f.rows[0][2])
			for _, r := range f.rows[1:] {
				line += " " + r[1] + " " + r[2]
			}
			got = append(got, line)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
