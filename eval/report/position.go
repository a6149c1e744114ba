package report

import (
	"fmt"

	"antiphase/eval/task"
)

// Loss by length of context (the paper's Figure 4).
func init() { register(30, positionSection) }

func positionSection(p *Page) (section, error) {
	s := section{Title: "Loss by length of context", Lead: "Mean held-out loss of all tokens up to a position, every " +
		"point over the same texts. Lower at the right means that more context helps."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("lm") {
		models, err := detailsOf[task.LMDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		var list []series
		note := ""
		for _, m := range models {
			if len(m.Detail.ByPosition) < 2 {
				continue
			}
			x := series{name: m.Name, class: m.Class, format: "%.3f", dots: true}
			for _, at := range m.Detail.ByPosition {
				x.line, x.err = append(x.line, [2]float64{float64(at.Position), at.Loss.Value}),
					append(x.err, at.Loss.StdErr)
			}
			list = append(list, x)
			note = fmt.Sprintf("%d texts that are at least as long as the curve", m.Detail.Pieces)
			if m.Detail.Left > 0 {
				note += fmt.Sprintf("; %d are shorter and left out", m.Detail.Left)
			}
		}
		if list != nil {
			s.add(titles[q.Question], note, list)
		}
	}
	if s.Figures == nil {
		return s, nil
	}
	base, diff := series{name: baseName, class: "s0", dots: true, format: "%.3f"},
		series{name: diffName, class: "s1", dots: true, format: "%.3f"}
	for i, at := range paperPositions.at {
		base.line = append(base.line, [2]float64{float64(at), paperPositions.base[i]})
		diff.line = append(diff.line, [2]float64{float64(at), paperPositions.diff[i]})
	}
	s.add("The paper", "64K models on books: other text and other lengths than here. Its axis has no labels; ticks "+
		"are taken as 2.1 to 2.9", []series{base, diff})
	return s, nil
}

func (s *section) add(title, note string, list []series) {
	x, y := around(list)
	x.log = true
	s.Figures = append(s.Figures, lineFigure("position-"+slug(title), title, note, "tokens of context",
		"nats per token", x, y, list))
}
