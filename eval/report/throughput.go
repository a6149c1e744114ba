package report

import (
	"fmt"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Speed (the paper's Table 7).
func init() { register(120, throughputSection) }

func throughputSection(p *Page) (section, error) {
	s := section{Title: "Speed", Lead: "Tokens per second; in brackets the difference to the first model."}
	e := p.evaluation()
	g := grid{ID: "throughput", Rows: [][]string{{"model", "length", "batch", "forward", "forward and backward"}}}
	for _, q := range e.Of("throughput") {
		models, err := detailsOf[task.ThroughputDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		for i, m := range models {
			for k, r := range m.Detail.Rows {
				var base task.ThroughputRow
				if first := models[0].Detail.Rows; i > 0 && k < len(first) {
					base = first[k]
				}
				g.Rows = append(g.Rows, []string{m.Name, fmt.Sprint(r.Length), fmt.Sprint(r.Batch),
					rate(r.Forward, base.Forward), rate(r.ForwardBackward, base.ForwardBackward)})
			}
		}
	}
	if len(g.Rows) == 1 {
		return s, nil
	}
	paper := grid{ID: "throughput-paper", Title: "The paper: 3B and 13B models on an H100",
		Rows: [][]string{{"model", "forward", "DIFF", "forward and backward", "DIFF"}}}
	for _, t := range paperThroughput {
		with := func(base, diff float64) string { return count(diff) + show(" (%+.1f %%)", 100*(diff/base-1)) }
		paper.Rows = append(paper.Rows,
			[]string{t.model, count(t.baseForward), with(t.baseForward, t.diffForward), count(t.baseBoth),
				with(t.baseBoth, t.diffBoth)})
	}
	s.Tables = []grid{g, paper}
	return s, nil
}

// rate is a speed, and its loss relative to another.
func rate(m, base eval.Mean) string {
	out := count(m.Value)
	if base.Value > 0 {
		out += show(" (%+.1f %%)", 100*(m.Value/base.Value-1))
	}
	return out
}
