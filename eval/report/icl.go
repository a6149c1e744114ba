package report

import (
	"strings"

	"antiphase/eval/task"
)

// Accuracy over growing shots (the paper's Figure 6).
func init() { register(60, iclSection) }

func iclSection(p *Page) (section, error) {
	s := section{Title: "Many-shot learning", Lead: "Accuracy of classification as the examples before the question " +
		"grow. Dotted: chance; dashed: where the paper's models level off at 64K tokens, shown where the context is " +
		"as long."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Questions() {
		if q.Group != "icl" {
			continue
		}
		models, err := detailsOf[task.ICLDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		var list []series
		for _, m := range models {
			x := series{name: m.Name, class: m.Class, dots: true, format: "%.2f"}
			for k, n := range m.Detail.Shots[:min(len(m.Detail.Shots), len(m.Detail.Acc))] {
				x.line, x.err = append(x.line, [2]float64{float64(max(n, 1)), m.Detail.Acc[k].Value}),
					append(x.err, m.Detail.Acc[k].StdErr)
			}
			if len(x.line) > 0 {
				list = append(list, x)
			}
		}
		if list == nil {
			continue
		}
		x, _ := around(list)
		x.log = true
		level := func(name string, y float64) {
			list = append(list, series{name: name, class: "quiet", dashed: true, format: "%.2f",
				line: [][2]float64{{x.lo, y}, {x.hi, y}}})
		}
		if c := models[0].Detail.Chance; c > 0 {
			level("chance", c)
		}
		set := strings.TrimPrefix(q.Task, "icl_")
		for _, t := range paperICL {
			if t.set == set && len(changed(q, "plateau")) == 0 {
				level("T paper", t.base)
				level("DIFF paper", t.diff)
			}
		}
		s.Figures = append(s.Figures, lineFigure(slug(titles[q.Question]), titles[q.Question], "", "examples",
			"accuracy", x, scale{lo: 0, hi: 1}, list))
	}
	return s, nil
}
