package report

import (
	"slices"
	"strings"

	"antiphase/eval"
)

// Scores by training tokens, from the checkpoints of runs (the paper's Figure 9).
func init() { register(26, tokensSection) }

// paperMathTokens is Figure 9: billions of tokens of mathematics, mean accuracy of eight sets in percent.
var paperMathTokens = struct{ tokens, base, diff []float64 }{
	[]float64{6, 8, 10, 12, 14, 16, 18, 20},
	[]float64{11.2, 6.9, 10.4, 9.7, 9.4, 12.7, 14.4, 20.1},
	[]float64{9.9, 5.7, 11.2, 10.5, 11.1, 21.6, 28.7, 31.4},
}

func tokensSection(p *Page) (section, error) {
	s := section{Title: "By training tokens", Lead: "Checkpoints of the same run, asked the same questions."}
	e := p.evaluation()
	titles := titles(e)
	math := false
	for _, q := range e.Questions() {
		if len(q.Metrics) == 0 {
			continue
		}
		m := q.Metrics[0]
		list := tokenSeries(e, func(x *eval.Judged) (eval.Metric, bool) {
			if r, ok := x.Find(q.Question); ok {
				return r.Metric(m.Name)
			}
			return eval.Metric{}, false
		})
		s.addTokens("tokens "+titles[q.Question], titles[q.Question], label(&m), list)
	}
	var each []eval.Side
	for i := range e.Models {
		each = append(each, eval.Side{Name: e.Models[i].Name, Models: []*eval.Judged{&e.Models[i]}})
	}
	for _, group := range groupsOf(e) {
		means := groupMeans(e, each, group)
		for _, g := range means {
			list := tokenSeries(e, func(x *eval.Judged) (eval.Metric, bool) {
				return g.of(e, &eval.Side{Name: x.Name, Models: []*eval.Judged{x}})
			})
			id, title := "tokens mean "+group, group+", mean of its sets"
			if len(means) > 1 {
				id, title = "tokens "+g.title, g.title
			}
			s.addTokens(id, title, strings.Replace(g.measure, g.Metric.Name, "mean", 1), list)
			math = math || group == "math" && list != nil
		}
	}
	if math {
		base, diff := series{name: baseName, class: "s0", dots: true}, series{name: diffName, class: "s1", dots: true}
		for i, n := range paperMathTokens.tokens {
			base.line, diff.line = append(base.line, [2]float64{1e9 * n, paperMathTokens.base[i]}),
				append(diff.line, [2]float64{1e9 * n, paperMathTokens.diff[i]})
		}
		x, y := around([]series{base, diff})
		s.Figures = append(s.Figures, lineFigure("tokens-paper", "Mathematics, the paper",
			"mean accuracy of eight sets in percent, 3B models trained on from 64K", "training tokens", "percent", x, y,
			[]series{base, diff}))
	}
	return s, nil
}

// addTokens adds a figure of runs with at least two checkpoints.
func (s *section) addTokens(id, title, what string, list []series) {
	if list == nil {
		return
	}
	x, y := around(list)
	s.Figures = append(s.Figures, lineFigure(slug(id), title, what, "training tokens", what, x, y, list))
}

// groupsOf are the groups of the tasks that were asked.
func groupsOf(e *eval.Evaluation) (out []string) {
	for _, q := range e.Questions() {
		if q.Group != "" && !slices.Contains(out, q.Group) {
			out = append(out, q.Group)
		}
	}
	return out
}

// tokenSeries is a line for every run with at least two checkpoints that have the number; shares are in percent.
func tokenSeries(e *eval.Evaluation, of func(m *eval.Judged) (eval.Metric, bool)) (out []series) {
	var runs []string
	for i := range e.Models {
		if r := e.Models[i].Run; r != "" && !slices.Contains(runs, r) {
			runs = append(runs, r)
		}
	}
	for k, run := range runs {
		x := series{name: run, class: sideClass(k), dots: true, format: "%.3g"}
		type point struct{ tokens, value, err float64 }
		var points []point
		for i := range e.Models {
			m := &e.Models[i]
			v, ok := of(m)
			if m.Run != run || m.Tokens == 0 || !ok {
				continue
			}
			f := 1.0
			if percent(&v) {
				f = 100
			}
			points = append(points, point{float64(m.Tokens), f * v.Value, f * v.StdErr})
		}
		slices.SortFunc(points, func(a, b point) int { return int(a.tokens - b.tokens) })
		for _, q := range points {
			x.line, x.err = append(x.line, [2]float64{q.tokens, q.value}), append(x.err, q.err)
		}
		if len(points) > 1 {
			out = append(out, x)
		}
	}
	return out
}
