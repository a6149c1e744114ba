package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"antiphase/eval"
)

// Loss by parameters and by tokens (the paper's Figure 3).
func init() { register(25, scalingSection) }

func scalingSection(p *Page) (section, error) {
	s := section{Title: "Scaling"}
	for i := range p.Scaling {
		r := &p.Scaling[i]
		unit := "parameters"
		paper := paperScaling()
		if r.By == "tokens" {
			unit, paper = "training tokens", paperTokens()
		}
		s.Figures = append(s.Figures, scalingFigure("scaling-"+r.By, "Held-out loss by "+unit, r))
		theirs, err := eval.Scaling(r.By, paper, paperPoint(r), 1)
		if err != nil {
			return s, err
		}
		f := scalingFigure("scaling-"+r.By+"-paper", "The paper", theirs)
		f.Note = paperClaims[r.By] + " By our fit of its points: " + f.Note
		s.Figures = append(s.Figures, f)
	}
	return s, nil
}

// paperPoint is where the paper compares: by tokens, DIFF after 160B; by parameters, its 6.8B.
func paperPoint(r *eval.ScalingResult) float64 {
	if r.By == "tokens" {
		return 160e9
	}
	return 6.8365e9
}

func scalingFigure(id, title string, r *eval.ScalingResult) figure {
	var list []series
	f := figure{ID: id, Title: title, rows: [][]string{{"series", r.By, "loss", "fit"}}}
	for i := range r.Curves {
		c := &r.Curves[i]
		dots := series{name: c.Name, class: sideClass(i), dots: true, bare: true}
		line := series{name: c.Name, class: sideClass(i), format: "%.3f"}
		lo, hi := c.Points[0].X, c.Points[len(c.Points)-1].X
		for k := range 41 {
			x := lo * math.Pow(hi/lo, float64(k)/40)
			line.line = append(line.line, [2]float64{x, c.At(x)})
		}
		for _, p := range c.Points {
			dots.line = append(dots.line, [2]float64{p.X, p.Loss})
			f.rows = append(f.rows, []string{c.Name, value(p.X), value(p.Loss), value(c.At(p.X))})
		}
		list = append(list, line, dots)
	}
	f.Note = strings.Join(findings(r), ". ")
	if f.Note != "" {
		f.Note += ". "
	}
	x, y := around(list)
	x.log, x.tens = true, true
	f.SVG = lineChart(title, r.By, x, y, list)
	return f
}

// ScalingTable renders the curves and the findings.
func ScalingTable(r *eval.ScalingResult, color bool) string {
	t := grid{left: 1, Rows: [][]string{{"architecture", r.By, "loss", "fit"}}}
	for i := range r.Curves {
		c := &r.Curves[i]
		for k, p := range c.Points {
			name := c.Name
			if k > 0 {
				name = ""
			}
			t.Rows = append(t.Rows, []string{name, count(p.X), show("%.4f", p.Loss), show("%.4f", c.At(p.X))})
		}
	}
	out := t.text(color, nil)
	for _, c := range r.Curves {
		out += fmt.Sprintf("%s: L(x) = %s + %s·x^−%s, residuals %s\n", c.Name, show("%.4f", c.E), show("%.4g", c.A),
			show("%.4f", c.Alpha), show("%.2g", c.RMS))
	}
	for _, s := range findings(r) {
		out += s + "\n"
	}
	return out
}

// findings states what each challenger needs.
func findings(r *eval.ScalingResult) []string {
	var out []string
	first := &r.Curves[0]
	for _, c := range r.Curves[1:] {
		at := slices.IndexFunc(r.Matches, func(m eval.ScalingMatch) bool { return m.Name == c.Name })
		if at < 0 {
			high, low, x := &c, first, first.Points[len(first.Points)-1].X
			if r.At > 0 {
				high, low, x = first, &c, r.At
			}
			out = append(out, fmt.Sprintf("%s's curve never comes down to the loss %s that %s has at %s %s",
				high.Name, show("%.4f", low.At(x)), low.Name, short(x), r.By))
			continue
		}
		m := r.Matches[at]
		s := fmt.Sprintf("%s needs %s %s, %s %% of %s, for the loss %s that %s has there",
			m.Name, short(m.Needs), r.By, show("%.1f", 100*m.Ratio), short(m.At), show("%.4f", m.Loss), first.Name)
		switch {
		case m.High > 0:
			s += fmt.Sprintf(" (95 %% interval %s to %s %%", show("%.1f", 100*m.Low), show("%.1f", 100*m.High))
			if first.Rho > 0 || c.Rho > 0 {
				s += fmt.Sprintf(", neighbouring errors correlated by %s and %s", show("%.2f", first.Rho),
					show("%.2f", c.Rho))
			}
			s += ")"
		case min(len(first.Points), len(c.Points)) < eval.LeastForInterval:
			s += " (too few points for an interval)"
		default:
			s += fmt.Sprintf(" (no interval: %d of %d resampled curves come so low)", m.Draws, eval.BootstrapDraws)
		}
		out = append(out, s)
	}
	return out
}
