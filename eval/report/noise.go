package report

import (
	"cmp"
	"fmt"

	"antiphase/eval/task"
)

// A task's score by dose of noise in its prompts.
func init() { register(62, noiseSection) }

func noiseSection(p *Page) (section, error) {
	s := section{Title: "Noise in the input", Lead: "The same questions with disturbed prompts. Doses are the same " +
		"for all models; the area is the score's mean over all doses."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("noise") {
		models, err := detailsOf[task.NoiseDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		if len(models) == 0 {
			continue // rows may come without what figures need
		}
		for _, m := range models {
			err := fits(m.Name, q.Task, "curves", len(m.Detail.Curves), len(models[0].Detail.Curves))
			for _, c := range m.Detail.Curves {
				err = cmp.Or(err, fits(m.Name, q.Task, "scores of "+c.Kind, len(c.Scores), len(c.Doses)))
			}
			if err != nil {
				return s, err
			}
		}
		g := grid{ID: slug("noise " + titles[q.Question]), Title: "Score over all doses, %: " + titles[q.Question],
			left: 1, Note: "± one standard error", Rows: [][]string{{"noise"}}}
		for _, m := range models {
			g.Rows[0] = append(g.Rows[0], m.Name)
		}
		for k, c := range models[0].Detail.Curves {
			s.Figures = append(s.Figures, noiseFigure(titles[q.Question], models, k))
			row := []string{c.Label}
			for _, m := range models {
				a := m.Detail.Curves[k].Area
				row = append(row, show("%.1f", 100*a.Value)+show(" ± %.1f", 100*a.StdErr))
			}
			g.Rows = append(g.Rows, row)
		}
		s.Tables = append(s.Tables, g)
	}
	return s, nil
}

// noiseFigure is one kind of noise. All models of a question have the same kinds and doses.
func noiseFigure(title string, models []shown[task.NoiseDetail], k int) figure {
	var list []series
	d := &models[0].Detail
	note := fmt.Sprintf("%s of %s, %d-shot", d.Metric, d.Task, d.Shots)
	if d.StandIn {
		note += "; generated questions"
	}
	for _, m := range models {
		c := m.Detail.Curves[k]
		x := series{name: m.Name, class: m.Class, dots: true, format: "%.3f"}
		for i, dose := range c.Doses {
			x.line, x.err = append(x.line, [2]float64{dose, c.Scores[i].Value}), append(x.err, c.Scores[i].StdErr)
		}
		list = append(list, x)
	}
	c := d.Curves[k]
	x, y := around(list)
	return lineFigure(slug("noise "+c.Kind+" "+title), "Noise: "+c.Label, note, c.Unit, "score", x, y, list)
}
