package report

import (
	"fmt"
	"html/template"
	"strings"

	"antiphase/eval"
)

// tableView is the table of scores on the page.
type tableView struct {
	Sides  []string
	Floors []string
	Rows   []tableRow
	Legend []string
	csv    [][]string
}

type tableRow struct {
	Task, Measure string
	Minor         bool
	Cells         []tableCell
	Floors        []string
}

type tableCell struct {
	Text, Mark, Diff string
	Best             bool
}

// CSV is the table with its numbers, intervals and floors.
func (t tableView) CSV() template.URL { return csvLink(t.csv) }

func (p *Page) tableView() tableView {
	e := p.evaluation()
	rows := p.lines()
	t := tableView{Floors: floorNames(rows), csv: scoreRows(e)}
	t.Legend = p.legend(t.Floors)
	for _, s := range e.Sides() {
		t.Sides = append(t.Sides, s.Name)
	}
	for _, x := range rows {
		r := tableRow{Task: x.task, Measure: x.measure, Minor: x.minor}
		for i, c := range x.cells {
			y := tableCell{Text: c.text, Mark: c.mark, Best: c.mark == best}
			if i > 0 {
				y.Diff = strings.TrimSpace(x.diffs[i-1])
			}
			r.Cells = append(r.Cells, y)
		}
		for _, f := range t.Floors {
			r.Floors = append(r.Floors, x.floors[f])
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// scoreRows are all metrics of all sides as numbers.
func scoreRows(e *eval.Evaluation) [][]string {
	out := [][]string{{"task", "settings", "shots", "metric", "side", "models", "value", "stderr", "low95", "high95",
		"n", "chance", "copy", "difference", "difference_stderr", "p_holm"}}
	titles := titles(e)
	sides := e.Sides()
	for _, q := range e.Questions() {
		for _, m := range q.Metrics {
			for i := range sides {
				x, ok := sides[i].Metric(q.Question, m.Name)
				if !ok {
					continue
				}
				row := []string{q.Task, titles[q.Question], fmt.Sprint(q.Shots), m.Name, sides[i].Name,
					fmt.Sprint(len(sides[i].Models)), value(x.Value), value(x.StdErr), value(x.Low), value(x.High),
					fmt.Sprint(x.N), floor(m.Floors, "chance"), floor(m.Floors, "copy"), "", "", ""}
				if p, ok := e.Between(q.Question, m.Name, sides[0].Name, sides[i].Name); ok {
					row[13], row[14], row[15] = value(p.Diff), value(p.StdErr), value(p.PHolm)
				}
				out = append(out, row)
			}
		}
	}
	return out
}

func floor(f map[string]float64, name string) string {
	if v, ok := f[name]; ok {
		return value(v)
	}
	return ""
}

// The paper's numbers, and the differences between its protocol and ours.
func init() { register(140, paperSection) }

func paperSection(p *Page) (section, error) {
	s := section{Title: "The paper's numbers",
		Lead: "Where nothing stands under “what differs” the protocol is the same, and only model and data are not."}
	e := p.evaluation()
	titles := titles(e)
	sides := e.Sides()
	head := []string{"task", "metric"}
	for _, x := range sides {
		head = append(head, x.Name)
	}
	g := grid{ID: "paper", Rows: [][]string{append(head, paperBase, paperDiff, "what differs here")}}
	for _, q := range e.Questions() {
		for _, m := range q.Metrics {
			n, ok := paperScore(q.Kind, q.Shots, q.Config, m.Name)
			if !ok {
				continue
			}
			row := []string{titles[q.Question], label(&m)}
			for i := range sides {
				x, ok := sides[i].Metric(q.Question, m.Name)
				if !ok {
					row = append(row, "–")
					continue
				}
				row = append(row, text(&x, rowDecimals(percent(&x), []eval.Metric{x})))
			}
			f := 1.0
			if percent(&m) {
				f = 100
			}
			g.Rows = append(g.Rows, append(row, plain(f*n.base), plain(f*n.diff),
				strings.Join(differs(q, m.Name), "; ")))
		}
	}
	if len(g.Rows) > 1 {
		s.Tables = []grid{g}
	}
	return s, nil
}

// pairsSection compares any two sides if there are more than two.
func init() { register(15, pairsSection) }

func pairsSection(p *Page) (section, error) {
	s := section{Title: "Any two sides"}
	e := p.evaluation()
	if len(e.Sides()) < 3 {
		return s, nil
	}
	titles := titles(e)
	g := grid{ID: "pairs", Note: "headline measures; intervals of 95 %, p after Holm's correction",
		Rows: [][]string{{"task", "measure", "A", "B", "B − A", "low", "high", "p", "models"}}}
	for _, q := range e.Questions() {
		if len(q.Metrics) == 0 || q.Metrics[0].Better == eval.Neither {
			continue
		}
		m := q.Metrics[0]
		f := 1.0
		if percent(&m) {
			f = 100
		}
		for _, x := range e.Paired {
			if x.Question == q.Question && x.Metric == m.Name {
				g.Rows = append(g.Rows, []string{titles[q.Question], label(&m), x.A, x.B, show("%+.4g", f*x.Diff),
					show("%.4g", f*x.Low), show("%.4g", f*x.High), show("%.3g", x.PHolm),
					fmt.Sprintf("%d, %d", x.Seeds[0], x.Seeds[1])})
			}
		}
	}
	if len(g.Rows) > 1 {
		s.Tables = []grid{g}
	}
	return s, nil
}
