package report

import (
	"math"
	"strconv"

	"antiphase/eval/task"
)

// The effect of interventions in attention on loss and retrieval.
func init() { register(68, interventionsSection) }

func interventionsSection(p *Page) (section, error) {
	s := section{Title: "Interventions", Lead: "Attention heads changed at run time: what a change does to loss and " +
		"retrieval is what the changed part was for."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("interventions") {
		models, err := detailsOf[task.InterventionsDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		g := grid{ID: slug("interventions " + titles[q.Question]), Title: titles[q.Question], left: 2,
			Note: "changes are paired with the unchanged model, ± one standard error; KL is to the unchanged model's " +
				"next-token distribution, nats per token",
			Rows: [][]string{{"model", "intervention", "loss", "change", "number beside its key, %", "change", "KL"}}}
		for _, m := range models {
			g.Rows = append(g.Rows, interventionRows(&m)...)
			if len(m.Detail.Heads) > 0 {
				s.Figures = append(s.Figures, headsFigure(slug("heads "+m.Name+" "+titles[q.Question]), &m))
			}
		}
		if len(g.Rows) > 1 {
			s.Tables = append(s.Tables, g)
		}
	}
	return s, nil
}

// interventionRows are one model's.
func interventionRows(m *shown[task.InterventionsDetail]) (out [][]string) {
	find := func(list []task.VariantScore, name string) (task.VariantScore, bool) {
		for _, v := range list {
			if v.Variant == name {
				return v, true
			}
		}
		return task.VariantScore{}, false
	}
	for i, v := range m.Detail.Loss {
		row := []string{m.Name, v.Variant, show("%.4f", v.Score.Value), "", "–", "", ""}
		if i > 0 {
			row[0], row[3] = "", show("%+.4f", v.Change.Value)+show(" ± %.4f", v.Change.StdErr)
		}
		if b, ok := find(m.Detail.Bound, v.Variant); ok {
			row[4] = show("%.1f", 100*b.Score.Value)
			if i > 0 {
				row[5] = show("%+.1f", 100*b.Change.Value) + show(" ± %.1f", 100*b.Change.StdErr)
			}
		}
		if k, ok := find(m.Detail.KL, v.Variant); ok {
			row[6] = show("%.4f", k.Score.Value)
		}
		out = append(out, row)
	}
	return out
}

// headsFigure is the change of the loss by layer and head.
func headsFigure(id string, m *shown[task.InterventionsDetail]) figure {
	f := figure{ID: id, Title: m.Name + ": " + m.Detail.Each + ", head by head",
		Note: "change of the loss in thousandths of a nat per token; stronger is a larger rise", Class: m.Class,
		rows: [][]string{{"layer", "head", "change"}}}
	var rows, cols []string
	most := 0.0
	for l, heads := range m.Detail.Heads {
		rows = append(rows, strconv.Itoa(l+1))
		for h, x := range heads {
			if l == 0 {
				cols = append(cols, strconv.Itoa(h+1))
			}
			most = max(most, math.Abs(x))
			f.rows = append(f.rows, []string{strconv.Itoa(l + 1), strconv.Itoa(h + 1), value(x)})
		}
	}
	f.SVG = heatMap(f.Title, m.Class, "layer", "head", rows, cols, func(r, c int) (heat, bool) {
		if c >= len(m.Detail.Heads[r]) {
			return heat{}, false
		}
		x := m.Detail.Heads[r][c]
		return heat{x / max(most, 1e-12), show("%.0f", 1000*x), show("%+.5f", x)}, true
	})
	return f
}
