package report

import (
	"cmp"
	"fmt"

	"antiphase/eval/task"
)

// The RMS of attention outputs, by layer and by length (DIFF V2's argument for omitting a norm over heads).
func init() { register(58, contextSection) }

func contextSection(p *Page) (section, error) {
	s := section{Title: "Context RMS", Lead: "RMS of Σ a·v before any norm over heads, over the RMS of the values. " +
		"Uniform attention over n uncorrelated values gives 1/√n, which a norm over heads must magnify by √n; V2 can " +
		"reach 0 without one."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("context_rms") {
		models, err := detailsOf[task.ContextDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		if len(models) == 0 {
			continue // rows may come without what figures need
		}
		for _, m := range models {
			if err := contextFits(&m, q.Task); err != nil {
				return s, err
			}
		}
		var layers, lengths []series
		g := grid{ID: slug("context " + titles[q.Question]), Title: titles[q.Question], left: 1,
			Note: "least and largest are those of any head and position; gain is the largest factor of the " +
				"norm over heads",
			Rows: [][]string{{"model", "layer", "value RMS", "context RMS", "least", "largest", "gain"}}}
		for _, m := range models {
			byLayer, byLength := series{name: m.Name, class: m.Class, dots: true, format: "%.2f"},
				series{name: m.Name, class: m.Class, dots: true, format: "%.2f"}
			for l, x := range m.Detail.Layers {
				byLayer.line = append(byLayer.line, [2]float64{float64(l + 1), x.Context / x.Value})
				gain := "–"
				if x.Gain > 0 {
					gain = show("%.1f", x.Gain)
				}
				g.Rows = append(g.Rows, []string{m.Name, fmt.Sprint(l + 1), show("%.3g", x.Value),
					show("%.3g", x.Context), show("%.3g", x.Least), show("%.3g", x.Largest), gain})
			}
			byLength.line = contextByLength(&m.Detail)
			layers, lengths = append(layers, byLayer), append(lengths, byLength)
		}
		bound := series{name: "1/√n", class: "quiet", dashed: true}
		for i, end := range models[0].Detail.Ends {
			bound.line = append(bound.line, [2]float64{float64(end - 1), models[0].Detail.Bound[i]})
		}
		x, y := around(layers)
		x.whole, y.lo = true, 0
		s.Figures = append(s.Figures, lineFigure(slug("context-layers "+titles[q.Question]), "By layer",
			"mean over heads and positions", "layer", "context RMS over value RMS", x, y, layers))
		x, y = around(append(lengths, bound))
		x.log, y.lo = true, 0
		s.Figures = append(s.Figures, lineFigure(slug("context-lengths "+titles[q.Question]),
			"By positions attended to", "mean over heads and layers", "positions", "context RMS over value RMS", x, y,
			append(lengths, bound)))
		s.Tables = append(s.Tables, g)
	}
	return s, nil
}

// contextByLength returns the mean over layers for each number of positions attended to.
func contextByLength(d *task.ContextDetail) (line [][2]float64) {
	for i, end := range d.Ends {
		sum := 0.0
		for l := range d.Grid {
			sum += d.Grid[l][i] / float64(len(d.Grid))
		}
		line = append(line, [2]float64{float64(end - 1), sum})
	}
	return line
}

// contextFits checks that all lists of a detail are as long as its ends.
func contextFits(m *shown[task.ContextDetail], name string) error {
	want := len(m.Detail.Ends)
	err := fits(m.Name, name, "bounds", len(m.Detail.Bound), want)
	for _, row := range m.Detail.Grid {
		err = cmp.Or(err, fits(m.Name, name, "positions of a layer", len(row), want))
	}
	return err
}
