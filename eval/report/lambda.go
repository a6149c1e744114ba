package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/layer"
)

// lambdaFigure is the learned λ of the models that have one, with the paper's λ_init for reference.
func lambdaFigure(title string, models []shown[task.AttentionDetail]) figure {
	var list []series
	layers := 0
	f := figure{ID: slug("lambda " + title), Title: "λ by layer", Note: "mean over tokens and heads",
		rows: [][]string{{"model", "layer", "lambda"}}}
	for _, m := range models {
		x := series{name: m.Name, class: m.Class, format: "%.2f", dots: true}
		for l, lam := range m.Detail.Lambda {
			x.line = append(x.line, [2]float64{float64(l + 1), lam})
			f.rows = append(f.rows, []string{m.Name, fmt.Sprint(l + 1), value(lam)})
		}
		layers = max(layers, len(x.line))
		if len(x.line) > 0 {
			list = append(list, x)
		}
	}
	if layers == 0 {
		return figure{}
	}
	init := series{name: "λ_init (paper)", class: "quiet", dashed: true}
	for l := range layers {
		init.line = append(init.line, [2]float64{float64(l + 1), layer.LambdaSchedule(l)})
	}
	list = append(list, init)
	_, y := around(list)
	f.SVG = lineChart("λ by layer", "layer", scale{lo: 1, hi: float64(layers), whole: true},
		scale{lo: min(y.lo, 0), hi: max(y.hi, 1)}, list)
	return f
}

// lambdaRows is λ in the table: its mean over layers, and its range, over all models of a side.
func lambdaRows(_ *eval.Evaluation, q *eval.Result, sides []eval.Side) []line {
	x := line{measure: "λ, mean over layers (range)", minor: true, diffs: make([]string, max(len(sides)-1, 0))}
	any := false
	for _, s := range sides {
		c := cell{}
		if all := lambdas(&s, q.Question); len(all) > 0 {
			sum := 0.0
			for _, l := range all {
				sum += l
			}
			c.text = show("%.3f", sum/float64(len(all))) + show(" (%.2f", slices.Min(all)) +
				show(" to %.2f)", slices.Max(all))
			any = true
		}
		x.cells = append(x.cells, c)
	}
	if !any {
		return nil
	}
	return []line{x}
}

// lambdas are λ of every layer of every model of a side.
func lambdas(s *eval.Side, question string) (all []float64) {
	for _, m := range s.Models {
		var d task.AttentionDetail
		if r, ok := m.Find(question); ok && json.Unmarshal(r.Detail, &d) == nil {
			all = append(all, d.Lambda...)
		}
	}
	return all
}
