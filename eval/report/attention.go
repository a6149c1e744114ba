package report

import (
	"fmt"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Attention of the answer's token, and λ (the paper's Table 3 and Figure 1).
func init() {
	register(50, attentionSection)
	detailRows["attention"] = lambdaRows
}

// panelKinds are the kinds of sums that panels show; a plain head has only some.
var panelKinds = []struct {
	how string
	two bool // for heads with two maps
	of  func(h *task.HeadGaze) *task.Segments
}{
	{"by magnitude", false, func(h *task.HeadGaze) *task.Segments { return &h.Magnitude }},
	{"weighted by values", false, func(h *task.HeadGaze) *task.Segments { return &h.Value }},
	{"with sign", true, func(h *task.HeadGaze) *task.Segments { return &h.Signed }},
	{"A1 alone", true, func(h *task.HeadGaze) *task.Segments { return &h.A1 }},
	{"A2 alone", true, func(h *task.HeadGaze) *task.Segments { return &h.A2 }},
}

func attentionSection(p *Page) (section, error) {
	s := section{Title: "Where the answer's token looks", Lead: "Each head's row is divided by the sum of its " +
		"magnitudes, then heads are averaged. Noise is the context that is not the answer. With sign, negative " +
		"scores lie left of zero."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("attention") {
		models, err := detailsOf[task.AttentionDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		if len(models) == 0 {
			continue // rows may come without what figures need
		}
		for i := range models {
			if err := attentionFigures(&s, titles[q.Question], &models[i]); err != nil {
				return s, err
			}
		}
		s.Figures = append(s.Figures, layerFigure(titles[q.Question], models), lambdaFigure(titles[q.Question], models))
		if g := outcomeTable(titles[q.Question], models); len(g.Rows) > 1 {
			s.Tables = append(s.Tables, g)
		}
	}
	if s.Figures == nil {
		return s, nil
	}
	for _, x := range segmentNames {
		s.Key = append(s.Key, keyEntry{x.class, x.name})
	}
	for i, x := range []task.Segments{paperSegments.base, paperSegments.diff} {
		name := []string{paperBase, paperDiff}[i]
		s.Figures = append(s.Figures, segmentFigure("attention-paper-"+fmt.Sprint(i), name, sideClass(i),
			"4K tokens of context; its formula and the sign are not public", []float64{0.5}, []task.Segments{x}))
	}
	return s, nil
}

// attentionFigures are one model's bars and its heads.
func attentionFigures(s *section, title string, m *shown[task.AttentionDetail]) error {
	n := len(m.Detail.Results)
	if n == 0 {
		return nil
	}
	r := m.Detail.Results[n-1] // the longest prompts
	if len(r.ByDepth) != len(m.Detail.Depths) {
		return fmt.Errorf("%s: detail of attention: %d rows for %d depths", m.Name, len(r.ByDepth),
			len(m.Detail.Depths))
	}
	for _, kind := range panelKinds {
		if kind.two && r.Maps < 2 {
			continue
		}
		var list []task.Segments
		for d := range r.ByDepth {
			list = append(list, *kind.of(&r.ByDepth[d]))
		}
		s.Figures = append(s.Figures, segmentFigure(slug("attention "+title+" "+kind.how+" "+m.Name), m.Name, m.Class,
			kind.how, m.Detail.Depths, list))
	}
	s.Figures = append(s.Figures, headHeat(slug("attention-heads "+title+" "+m.Name), m.Name, m.Class, r.ByHead))
	return nil
}

func segmentFigure(id, name, class, how string, depths []float64, list []task.Segments) figure {
	f := figure{ID: id, Title: name, Note: how, Class: class, SVG: segmentBars(name+" "+how, depths, list),
		rows: [][]string{{"model", "how", "depth", "bos", "before", "answer", "after", "query"}}}
	for d, seg := range list {
		row := []string{name, how, value(depths[d])}
		for _, x := range seg.List() {
			row = append(row, value(x))
		}
		f.rows = append(f.rows, row)
	}
	return f
}

// headHeat is the share of attention on the answer by layer and head.
func headHeat(id, name, class string, heads [][]task.HeadGaze) figure {
	most := 0
	f := figure{ID: id, Title: name, Class: class,
		Note: "share on the answer by layer and head, by magnitude, mean over depths",
		rows: [][]string{{"layer", "head", "bos", "before", "answer", "after", "query"}}}
	var rows, cols []string
	for l, list := range heads {
		rows = append(rows, fmt.Sprint(l+1))
		most = max(most, len(list))
		for h := range list {
			row := []string{fmt.Sprint(l + 1), fmt.Sprint(h + 1)}
			for _, x := range list[h].Magnitude.List() {
				row = append(row, value(x))
			}
			f.rows = append(f.rows, row)
		}
	}
	for h := range most {
		cols = append(cols, fmt.Sprint(h+1))
	}
	f.SVG = heatChart("attention to the answer by head, "+name, class, "layer", "head", rows, cols,
		func(r, c int) (eval.Mean, bool) {
			if c >= len(heads[r]) {
				return eval.Mean{}, false
			}
			return eval.Mean{Value: heads[r][c].Magnitude.Answer}, true
		})
	return f
}

// layerFigure is the share on the answer by layer, by magnitude, mean over heads and depths.
func layerFigure(title string, models []shown[task.AttentionDetail]) figure {
	var list []series
	for _, m := range models {
		x := series{name: m.Name, class: m.Class, dots: true}
		if n := len(m.Detail.Results); n > 0 {
			for l, heads := range m.Detail.Results[n-1].ByHead {
				sum := 0.0
				for h := range heads {
					sum += 100 * heads[h].Magnitude.Answer / float64(len(heads))
				}
				x.line = append(x.line, [2]float64{float64(l + 1), sum})
			}
		}
		list = append(list, x)
	}
	x, y := around(list)
	x.whole, y.lo = true, 0
	return lineFigure(slug("attention-layers "+title), "By layer",
		"share of attention on the answer in percent, by magnitude", "layer", "percent", x, y, list)
}

// outcomeTable separates right from wrong retrievals.
func outcomeTable(title string, models []shown[task.AttentionDetail]) grid {
	g := grid{ID: slug("attention-outcome " + title), Title: title + ", right and wrong retrievals", left: 2,
		Note: "percent of each head's magnitude, mean over heads and prompts; ‖a·v‖ weights positions by their values",
		Rows: [][]string{{"model", "number beside its key", "prompts", "answer", "noise", "answer, A1", "answer, A2",
			"answer, ‖a·v‖", "noise, ‖a·v‖"}}}
	for _, m := range models {
		n := len(m.Detail.Results)
		if n == 0 {
			continue
		}
		r := &m.Detail.Results[n-1]
		for _, o := range []struct {
			name string
			*task.Outcome
		}{{"right", r.Right}, {"wrong", r.Wrong}} {
			if o.Outcome == nil {
				continue
			}
			x, a2 := &o.Gaze, "–"
			if r.Maps == 2 {
				a2 = show("%.1f", 100*x.A2.Answer)
			}
			g.Rows = append(g.Rows, []string{m.Name, o.name, fmt.Sprint(o.N), show("%.1f", 100*x.Magnitude.Answer),
				show("%.1f", 100*x.Magnitude.Noise()), show("%.1f", 100*x.A1.Answer), a2,
				show("%.1f", 100*x.Value.Answer), show("%.1f", 100*x.Value.Noise())})
		}
	}
	return g
}
