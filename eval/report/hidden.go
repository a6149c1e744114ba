package report

import "antiphase/eval/task"

// Retrieval from long texts by length: needles through hops, and the tasks after RULER.
func init() { register(42, hiddenSection) }

func hiddenSection(p *Page) (section, error) {
	s := section{Title: "Retrieval through hops, and RULER"}
	e := p.evaluation()
	titles := titles(e)
	for _, kind := range []string{"needle_hop", "ruler_variables", "ruler_values", "ruler_common"} {
		for _, q := range e.Of(kind) {
			models, err := detailsOf[task.HiddenDetail](e, q.Question)
			if err != nil {
				return s, err
			}
			for cell := 0; len(models) > 0 && cell < max(1, len(models[0].Detail.Cells)); cell++ {
				if f, ok := hiddenFigure(titles[q.Question], models, cell); ok {
					s.Figures = append(s.Figures, f)
				}
			}
		}
	}
	return s, nil
}

// hiddenFigure is the bound score by length; a single length has no figure.
func hiddenFigure(title string, models []shown[task.HiddenDetail], cell int) (figure, bool) {
	var list []series
	for _, m := range models {
		x := series{name: m.Name, class: m.Class, dots: true, format: "%.3f"}
		for i, length := range m.Detail.Lengths {
			y := m.Detail.Scores["bound"][cell][i]
			x.line, x.err = append(x.line, [2]float64{float64(length), y.Value}), append(x.err, y.StdErr)
		}
		list = append(list, x)
	}
	if len(list[0].line) < 2 {
		return figure{}, false
	}
	name := title
	if cells := models[0].Detail.Cells; len(cells) > 0 {
		name += ", " + cells[cell]
	}
	x, y := around(list)
	return lineFigure(slug("hidden "+name), name, "right among those named, by the length of the prompt", "tokens",
		"score", x, y, list), true
}
