package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"antiphase/eval/task"
)

// Robustness to the order of examples (the paper's Figures 7 and 11).
func init() { register(70, orderSection) }

func orderSection(p *Page) (section, error) {
	s := section{Title: "Robustness to the order of examples",
		Lead: "Accuracy over orders of the same examples: quartiles, median, worst and best."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Questions() {
		if q.Group != "icl_order" {
			continue
		}
		models, err := detailsOf[task.OrderDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		var boxes []box
		rows := [][]string{{"model", "order", "seed", "accuracy"}}
		for _, m := range models {
			for _, kind := range slices.Sorted(maps.Keys(m.Detail.Acc)) {
				boxes = append(boxes, box{m.Name + ", " + kind, m.Class, m.Detail.Acc[kind]})
				for seed, x := range m.Detail.Acc[kind] {
					rows = append(rows, []string{m.Name, kind, fmt.Sprint(seed), value(x)})
				}
			}
		}
		if boxes == nil {
			continue
		}
		note := ""
		for _, t := range paperICL {
			if t.set == strings.TrimPrefix(q.Task, "icl_order_") && len(changed(q, "spread_random")) == 0 {
				note = fmt.Sprintf(
					"spread of the paper's models over ten random orders, in points: Transformer %.0f, DIFF %.0f",
					100*t.baseSpread, 100*t.diffSpread)
			}
		}
		s.Figures = append(s.Figures, figure{ID: slug(titles[q.Question]), Title: titles[q.Question], Note: note,
			SVG: boxChart("accuracy over orders, "+q.Task, boxes), rows: rows})
	}
	return s, nil
}
