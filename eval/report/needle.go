package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Retrieval by depth and length (the paper's Table 2 and Figure 5).
func init() {
	register(40, needleSection)
	detailRows["needle"] = needleRows
}

// scoreNames are the needle's scores as headings.
var scoreNames = map[string]string{"bound": "number beside its key", "constrained": "choosing among the hidden numbers",
	"free": "number anywhere in the output"}

func needleSection(p *Page) (section, error) {
	s := section{Title: "Retrieval", Lead: "Share of hidden numbers given for their own key, in percent, by the " +
		"depth of the first one asked for and the length of the prompt. Knowing which numbers are hidden, and not " +
		"which is whose, earns the floor “copy”."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("needle") {
		models, err := detailsOf[task.NeedleGrid](e, q.Question)
		if err != nil {
			return s, err
		}
		for _, score := range []string{"bound", "free"} {
			for i := range models {
				m := &models[i]
				if len(m.Detail.Cells[score]) != len(m.Detail.Depths) {
					return s, fmt.Errorf("%s: detail of needle: %d rows of %s for %d depths", m.Name,
						len(m.Detail.Cells[score]), score, len(m.Detail.Depths))
				}
				s.Figures = append(s.Figures, needleHeat(titles[q.Question], m, score))
			}
		}
	}
	if s.Figures == nil {
		return s, nil
	}
	base, diff := paperNeedleGrid()
	for i, g := range []task.NeedleGrid{base, diff} {
		m := shown[task.NeedleGrid]{[]string{paperBase, paperDiff}[i], sideClass(i), g}
		f := needleHeat("", &m, "paper")
		f.Note = "8 hidden, 1 asked for, 8K to 64K tokens; the paper's text and scoring are not public"
		s.Figures = append(s.Figures, f)
	}
	return s, nil
}

// needleHeat is a model's grid of lengths and depths under one score.
func needleHeat(title string, m *shown[task.NeedleGrid], score string) figure {
	g := &m.Detail
	var rows, cols []string
	for _, x := range g.Depths {
		rows = append(rows, show("%.0f %%", 100*x))
	}
	for _, n := range g.Lengths {
		cols = append(cols, tokens(n))
	}
	cells := g.Cells[score]
	at := func(r, c int) (eval.Mean, bool) {
		if r >= len(cells) || c >= len(cells[r]) {
			return eval.Mean{}, false
		}
		return cells[r][c], cells[r][c].N > 0
	}
	f := figure{ID: slug("needle " + title + " " + score + " " + m.Name), Title: m.Name, Class: m.Class,
		rows: [][]string{{"score", "depth", "length", "accuracy", "stderr", "n", "chance", "copy"}}}
	f.Note = fmt.Sprintf("%s: %s", title, scoreNames[score])
	floors := g.Floors[score]
	if c, ok := floors["copy"]; ok {
		f.Note += show("; floors: chance %.1f", 100*floors["chance"]) + show(", copy %.1f %%", 100*c)
	}
	for r, depth := range g.Depths {
		for c, n := range g.Lengths {
			if x, ok := at(r, c); ok {
				f.rows = append(f.rows, []string{score, value(depth), fmt.Sprint(n), value(x.Value), value(x.StdErr),
					fmt.Sprint(x.N), value(floors["chance"]), value(floors["copy"])})
			}
		}
	}
	f.SVG = heatChart("retrieval by depth and length, "+m.Name, m.Class, "depth", "tokens", rows, cols, at)
	return f
}

// needleRows is the headline score by depth, of questions of one length.
func needleRows(_ *eval.Evaluation, q *eval.Result, sides []eval.Side) []line {
	x := line{minor: true, diffs: make([]string, max(len(sides)-1, 0))}
	for _, s := range sides {
		sum, n := []float64(nil), 0.0
		for _, m := range s.Models {
			r, ok := m.Find(q.Question)
			var g task.NeedleGrid
			if !ok || json.Unmarshal(r.Detail, &g) != nil || len(g.Lengths) != 1 ||
				len(g.Cells["bound"]) != len(g.Depths) ||
				slices.ContainsFunc(g.Cells["bound"], func(row []eval.Mean) bool { return len(row) == 0 }) {
				continue
			}
			x.measure = "at depths " + percents(g.Depths)
			sum = append(sum, make([]float64, max(0, len(g.Depths)-len(sum)))...)
			for d, row := range g.Cells["bound"] {
				sum[d] += row[0].Value
			}
			n++
		}
		for d := range sum {
			sum[d] /= n
		}
		x.cells = append(x.cells, cell{text: percents(sum)})
	}
	if x.measure == "" || !slices.ContainsFunc(x.cells, func(c cell) bool { return c.text != "" }) {
		return nil
	}
	return []line{x}
}
