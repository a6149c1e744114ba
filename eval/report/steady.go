package report

import (
	"fmt"
	"slices"

	"antiphase/metrics"
)

// Gradient norms and spikes during training, which DIFF V2's page calls stability.
func init() { register(22, steadySection) }

// AddGroups adds one step's gradient norms by kind of parameter.
func (t *Training) AddGroups(step int, groups metrics.Groups) {
	for _, g := range groups {
		i := slices.IndexFunc(t.Groups, func(c GroupCurve) bool { return c.Name == g.Name })
		if i < 0 {
			i = len(t.Groups)
			t.Groups = append(t.Groups, GroupCurve{Name: g.Name})
		}
		t.Groups[i].Points = append(t.Groups[i].Points, [2]float64{float64(step), g.Norm})
	}
}

func steadySection(p *Page) (section, error) {
	s := section{Title: "Steadiness of training", Lead: "Gradient norms are before clipping. A loss spike is a step " +
		"more than 8 median deviations and 10 % above the running median; a gradient spike, ten times its running " +
		"median."}
	if f, ok := gradFigure(p.Training); ok {
		s.Figures = append(s.Figures, f)
	}
	g := grid{ID: "steadiness", left: 1, Note: "middle and late are the median gradient norms of the middle and the " +
		"last tenth; noise is their range from the 10th to the 90th percentile over the median",
		Rows: [][]string{{"model", "steps", "loss spikes", "gradient spikes", "middle", "late",
			"noise, late", "largest"}}}
	for _, t := range p.Training {
		if x := t.Steady; x != nil && x.Steps > 0 {
			g.Rows = append(g.Rows, []string{t.Model, fmt.Sprint(x.Steps), fmt.Sprint(x.LossSpikes),
				fmt.Sprint(x.GradSpikes), show("%.3g", x.Middle), show("%.3g", x.Late), show("%.2f", x.LateNoise),
				show("%.3g", x.Largest)})
		}
	}
	if len(g.Rows) > 1 {
		s.Tables = []grid{g}
	}
	return s, nil
}

// gradFigure is the gradient norm by step; each point is the largest since the previous one.
func gradFigure(list []Training) (figure, bool) {
	var lines []series
	last := 0.0
	for i, t := range list {
		x := series{name: t.Model, class: sideClass(i)}
		for _, c := range t.Curve {
			if c.Grad > 0 {
				x.line = append(x.line, [2]float64{float64(c.Step), c.Grad})
				last = max(last, float64(c.Step))
			}
		}
		if len(x.line) > 1 {
			lines = append(lines, x)
		}
	}
	if lines == nil {
		return figure{}, false
	}
	var late [][][2]float64
	for _, x := range lines {
		late = append(late, after(x.line, last/20))
	}
	_, hi := extent(late...)
	return lineFigure("grad-norm", "Gradient norm by training step",
		"the largest of each stretch; the first steps may lie above the frame", "training step", "gradient norm",
		scale{lo: 0, hi: last, whole: true}, scale{lo: 0, hi: hi}, lines), true
}
