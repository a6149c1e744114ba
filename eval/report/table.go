package report

import (
	"fmt"
	"strings"

	"antiphase/eval"
)

// Table renders the page's rows as aligned text: a row per metric, a column per side, the better value marked, and the
// paired difference of every other side to the first.
func (p *Page) Table(color bool) string {
	sides := p.evaluation().Sides()
	rows := p.lines()
	floors := floorNames(rows)
	t := grid{left: 2, Rows: [][]string{{"task", "measure"}}}
	for i, s := range sides {
		t.Rows[0] = append(t.Rows[0], s.Name)
		if i > 0 {
			t.Rows[0] = append(t.Rows[0], differenceHead(len(sides)))
		}
	}
	t.Rows[0] = append(t.Rows[0], floors...)
	var styles []string
	for _, x := range rows {
		row := []string{x.task, x.measure}
		if x.minor {
			row[1] = "  " + x.measure
		}
		for i, c := range x.cells {
			text := strings.TrimSpace(c.mark + " " + c.text)
			if c.text == "" {
				text = "–"
			}
			row = append(row, text)
			if i > 0 {
				row = append(row, x.diffs[i-1])
			}
		}
		for _, f := range floors {
			row = append(row, x.floors[f])
		}
		t.Rows = append(t.Rows, row)
		styles = append(styles, map[bool]string{true: "2"}[x.minor])
	}
	out := t.text(color, styles)
	for _, s := range p.legend(floors) {
		out += s + "\n"
	}
	return out
}

// differenceHead is short if there is only one difference.
func differenceHead(sides int) string {
	if sides == 2 {
		return "difference"
	}
	return "to the first"
}

// legend explains marks and caveats.
func (p *Page) legend(floors []string) []string {
	e := p.evaluation()
	out := []string{"± one standard error"}
	if len(e.Sides()) > 1 {
		out[0] = best + " better, " + tied +
			" cannot be told apart, ± one standard error; differences paired by sample, * p < 0.05, ** p < 0.01 (Holm)"
	}
	if len(floors) > 0 && len(e.Sides()) > 1 {
		out = append(out, "a score whose 95 % interval reaches one of its floors is not marked as better")
	}
	if p.shared() {
		out = append(out, "no training speed: not every run had its device to itself, so that speeds do not compare")
	}
	for _, f := range floors {
		switch f {
		case "chance":
			out = append(out, "chance: what guessing scores")
		case "copy":
			out = append(out, "copy: what naming any of the hidden numbers scores, whichever was asked for")
		}
	}
	for _, q := range e.Questions() {
		if q.StandIn() {
			out = append(out, standInMark+
				" questions generated in place of a data set: the number says nothing about the set of that name")
			break
		}
	}
	return append(out, remarks(e)...)
}

// grid is a table: the first row is the head, the first left columns are text.
type grid struct {
	ID, Title, Note string
	Rows            [][]string
	left            int
}

// text aligns the columns; styles are those of the body's rows.
func (g *grid) text(color bool, styles []string) string {
	width := make([]int, len(g.Rows[0]))
	for _, r := range g.Rows {
		for i, c := range r {
			width[i] = max(width[i], runes(c))
		}
	}
	row := func(r []string) string {
		var b strings.Builder
		for i, c := range r {
			gap := strings.Repeat(" ", width[i]-runes(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < g.left {
				b.WriteString(c + gap)
			} else {
				b.WriteString(gap + c)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	total := 2 * (len(width) - 1)
	for _, w := range width {
		total += w
	}
	rule := strings.Repeat("─", total) + "\n"
	out := paint(color, "1", row(g.Rows[0])) + "\n" + rule
	for i, r := range g.Rows[1:] {
		style := ""
		if i < len(styles) {
			style = styles[i]
		}
		out += paint(color, style, row(r)) + "\n"
	}
	return out + rule
}

// number converts a setting that may have been read from JSON.
func number(x any) float64 {
	switch v := x.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return -1
}

// remarks are caveats: questions that did not fit the context, differing units, unclear verdicts, damaged rows.
func remarks(e *eval.Evaluation) []string {
	var out []string
	for _, q := range e.Questions() {
		if n := number(q.Config["prompts_cut"]); n > 0 {
			out = append(out, fmt.Sprintf("%s: %g of %d prompts are longer than the context and lost their beginning",
				q.Task, n, q.N))
		}
		if n := number(q.Config["sources_cut"]); n > 0 {
			out = append(out, fmt.Sprintf("%s: %g of %d sources are longer than the context and lost their middle",
				q.Task, n, q.N))
		}
		if n := number(q.Config["examples_fit"]); n >= 0 && n < float64(q.Shots) {
			out = append(out, fmt.Sprintf("%s: the context has room for %s of %d examples, on average", q.Task,
				show("%.1f", n), q.Shots))
		}
		out = append(out, unitRemarks(e, q)...)
	}
	for _, m := range e.Models {
		for _, r := range m.Results {
			if x, ok := r.Metric("unclear"); ok && x.Value > 0 {
				out = append(out,
					fmt.Sprintf("%s: %s: the judge's verdict was unclear for %.0f of %d, which \"judge\" leaves out",
						m.Name, r.Task, x.Value*float64(x.N), x.N))
			}
		}
	}
	return append(out, e.Warnings...)
}

// unitRemarks reports models that cannot be compared because they count different units.
func unitRemarks(e *eval.Evaluation, q *eval.Result) []string {
	if q.Kind != "lm" {
		return nil
	}
	sides := e.Sides()
	for i := range sides {
		for k := i + 1; k < len(sides); k++ {
			_, a := sides[i].Metric(q.Question, "loss")
			_, b := sides[k].Metric(q.Question, "loss")
			if _, ok := e.Between(q.Question, "loss", sides[i].Name, sides[k].Name); a && b && !ok && q.N > 1 {
				return []string{q.Task +
					": models with different tokenizers cannot be compared by loss per token; compare bits per byte"}
			}
		}
	}
	return nil
}
