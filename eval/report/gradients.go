package report

import (
	"fmt"
	"slices"

	"antiphase/eval/task"
)

// Gradient norms by kind of parameter (the paper's Appendix G), by probe and during training.
func init() { register(57, gradientsSection) }

func gradientsSection(p *Page) (section, error) {
	s := section{Title: "Gradients by kind of parameter", Lead: "The paper argues that gradients of DIFF and of the " +
		"Transformer differ by constants. Norm over the root of the number of parameters, so that sizes do not show; " +
		"q1 and k1 are the first map's, q2 and k2 the second's."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("gradients") {
		models, err := detailsOf[task.GradientsDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		g := grid{ID: slug("gradients " + titles[q.Question]), Title: titles[q.Question], left: 1,
			Note: "RMS of the gradient of the mean loss, over all layers", Rows: [][]string{{"model"}}}
		for _, m := range models {
			row := []string{m.Name}
			for _, x := range m.Detail.All {
				at := slices.Index(g.Rows[0], x.Name)
				if at < 0 {
					at = len(g.Rows[0])
					g.Rows[0] = append(g.Rows[0], x.Name)
				}
				for len(row) <= at {
					row = append(row, "–")
				}
				row[at] = show("%.3g", x.RMS)
			}
			g.Rows = append(g.Rows, row)
		}
		for i := range g.Rows {
			for len(g.Rows[i]) < len(g.Rows[0]) {
				g.Rows[i] = append(g.Rows[i], "–")
			}
		}
		if len(g.Rows) > 1 {
			s.Tables = append(s.Tables, g)
		}
		for _, name := range []string{"q", "v", "o", "mlp"} {
			if f, ok := groupFigure(name, titles[q.Question], models); ok {
				s.Figures = append(s.Figures, f)
			}
		}
	}
	if f, ok := groupCurves(p.Training); ok {
		s.Figures = append(s.Figures, f)
	}
	return s, nil
}

// groupFigure is one kind of parameter by layer. For a head with two maps, q has two lines.
func groupFigure(name, title string, models []shown[task.GradientsDetail]) (figure, bool) {
	var list []series
	for _, m := range models {
		for _, kind := range []string{name, name + "1", name + "2"} {
			x := series{name: m.Name, class: m.Class, dots: true}
			if kind != name {
				x.name += " " + kind
			}
			for l, groups := range m.Detail.Layers {
				if i := slices.IndexFunc(groups, func(g task.GroupNorm) bool { return g.Name == kind }); i >= 0 {
					x.line = append(x.line, [2]float64{float64(l + 1), groups[i].RMS})
				}
			}
			if len(x.line) > 0 {
				list = append(list, x)
			}
		}
	}
	if list == nil {
		return figure{}, false
	}
	x, y := around(list)
	x.whole, y.lo = true, 0
	return lineFigure(slug("gradients-"+name+" "+title), "Gradients of "+name, "RMS by layer", "layer", "RMS", x,
		y, list), true
}

// groupCurves is the share of each kind of parameter in the gradient during training, from metrics.jsonl.
func groupCurves(list []Training) (figure, bool) {
	var lines []series
	for i, t := range list {
		for _, g := range t.Groups {
			if !slices.Contains([]string{"q", "q1", "q2"}, g.Name) || len(g.Points) < 2 {
				continue
			}
			lines = append(lines, series{name: fmt.Sprintf("%s %s", t.Model, g.Name), class: sideClass(i),
				line: g.Points})
		}
	}
	if lines == nil {
		return figure{}, false
	}
	x, y := around(lines)
	y.lo = 0
	f := lineFigure("grad-groups", "Gradients of queries while training",
		"norm before clipping; the other kinds are in the CSV", "training step", "norm", x, y, lines)
	f.rows = [][]string{{"series", "training step", "norm", "stderr"}}
	for _, t := range list {
		for _, g := range t.Groups {
			for _, p := range g.Points {
				f.rows = append(f.rows, []string{t.Model + " " + g.Name, value(p[0]), value(p[1]), ""})
			}
		}
	}
	return f, true
}
