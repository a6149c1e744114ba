package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"antiphase/eval"
)

// line is one row of a table: a metric over all sides.
type line struct {
	task, measure string
	question      string
	name          string // of the metric
	minor         bool   // detail of the row above
	floors        map[string]string
	cells         []cell
	diffs         []string // of each side except the first
}

// cell is one side's displayed value.
type cell struct {
	text string // empty if not measured
	mark string // "▸" better than every other side, "≈" no difference
}

// Marks of a cell.
const (
	best = "▸"
	tied = "≈"
)

// detailRows adds a task's own rows below its metrics, such as a score by depth. Files of figures register them.
var detailRows = map[string]func(e *eval.Evaluation, q *eval.Result, sides []eval.Side) []line{}

// lines are all rows of the page's table.
func (p *Page) lines() []line {
	e := p.evaluation()
	sides := e.Sides()
	out := p.facts(sides)
	titles := titles(e)
	for _, q := range e.Questions() {
		at := len(out)
		for i := range q.Metrics {
			if show, brief := p.Brief[q.Kind]; brief && !slices.Contains(show, q.Metrics[i].Name) {
				continue
			}
			out = append(out, metricLine(e, sides, q, &q.Metrics[i], i == 0))
		}
		if f := detailRows[q.Kind]; f != nil && len(out) > at {
			out = append(out, f(e, q, sides)...)
		}
		if len(out) > at {
			out[at].task, out[at].minor = titles[q.Question], false
		}
		out = append(out, groupLines(e, sides, q)...)
	}
	return out
}

// metricLine is a metric with its marks and differences.
func metricLine(e *eval.Evaluation, sides []eval.Side, q *eval.Result, m *eval.Metric, headline bool) line {
	x := line{measure: label(m), question: q.Question, name: m.Name, minor: !headline, floors: map[string]string{}}
	share := percent(m)
	for floor, v := range m.Floors {
		x.floors[floor] = show("%.3g", v)
		if share {
			x.floors[floor] = show("%.1f", 100*v)
		}
	}
	list := make([]eval.Metric, len(sides))
	known := make([]bool, len(sides))
	for i := range sides {
		list[i], known[i] = sides[i].Metric(q.Question, m.Name)
	}
	digits := rowDecimals(share, list)
	x.show(list, known, digits)
	for i := 1; i < len(sides); i++ {
		d := ""
		if p, ok := e.Between(q.Question, m.Name, sides[0].Name, sides[i].Name); ok {
			d = difference(&p, share, digits)
		}
		x.diffs = append(x.diffs, d)
	}
	x.judge(e, sides, m)
	return x
}

// show adds the sides' values; one that is not known is left empty.
func (x *line) show(list []eval.Metric, known []bool, digits int) {
	for i := range list {
		c := cell{}
		if known[i] {
			c.text = text(&list[i], digits)
		}
		x.cells = append(x.cells, c)
	}
}

// judge marks the side that is better than every other in the paired test, or all if none is.
func (x *line) judge(e *eval.Evaluation, sides []eval.Side, m *eval.Metric) {
	if m.Better == eval.Neither {
		return
	}
	compared := false
	wins := make([]int, len(sides))
	for i := range sides {
		for k := i + 1; k < len(sides); k++ {
			p, ok := e.Between(x.question, x.name, sides[i].Name, sides[k].Name)
			if !ok {
				continue
			}
			compared = true
			switch p.Better(m.Better) {
			case 1:
				wins[k]++
			case -1:
				wins[i]++
			}
		}
	}
	if !compared {
		return
	}
	if top := slices.Index(wins, len(sides)-1); top >= 0 {
		if m, ok := sides[top].Metric(x.question, x.name); ok && aboveFloors(&m) {
			x.cells[top].mark = best
		}
		return
	}
	for i := range x.cells {
		if len(sides) == 2 {
			x.cells[i].mark = tied
		}
	}
}

// aboveFloors reports whether a score requires knowledge: its 95 % interval is above every floor. A score below a floor
// may be better than another one, yet both earn less than guessing or copying. A floor of 1, as for a single needle, is
// uninformative.
func aboveFloors(m *eval.Metric) bool {
	low := m.Low
	if m.Low == 0 && m.High == 0 { // no interval
		low = m.Value
	}
	for _, floor := range m.Floors {
		if m.Better == eval.Higher && floor < 1 && low <= floor {
			return false
		}
	}
	return true
}

// facts describe models rather than scores.
func (p *Page) facts(sides []eval.Side) []line {
	params, seen, speed := line{measure: "parameters"}, line{measure: "training tokens", minor: true},
		line{measure: "training speed, tokens/s", minor: true}
	for _, s := range sides {
		m := s.Models[0]
		params.cells = append(params.cells, cell{text: count(float64(m.Parameters))})
		t := p.trained(s.Models)
		seen.cells = append(seen.cells, cell{text: count(float64(t.Tokens))})
		speed.cells = append(speed.cells, cell{text: count(t.TokensPerSecond)})
	}
	if p.shared() {
		for i := range speed.cells {
			speed.cells[i].text = "–"
		}
	}
	var out []line
	for _, x := range []line{params, seen, speed} {
		if slices.ContainsFunc(x.cells, func(c cell) bool { return c.text != "" }) {
			x.diffs = make([]string, len(sides)-1)
			out = append(out, x)
		}
	}
	if len(out) > 0 {
		out[0].task = "model"
	}
	return out
}

// trained is how a side's models were trained, with their mean speed.
func (p *Page) trained(models []*eval.Judged) (mean Training) {
	n := 0.0
	for _, m := range models {
		if i := slices.IndexFunc(p.Training, func(t Training) bool { return t.Model == m.Name }); i >= 0 {
			n++
			mean.Tokens = p.Training[i].Tokens
			mean.TokensPerSecond += (p.Training[i].TokensPerSecond - mean.TokensPerSecond) / n
		}
	}
	return mean
}

// shared reports whether runs used a device at the same time: their speeds depend on the others' load, and the table
// shows none.
func (p *Page) shared() bool {
	return slices.ContainsFunc(p.Training, func(t Training) bool { return t.Shared && t.TokensPerSecond > 0 })
}

// groupLines are the means of a group, after its last question.
func groupLines(e *eval.Evaluation, sides []eval.Side, q *eval.Result) []line {
	all := e.Questions()
	at := slices.IndexFunc(all, func(r *eval.Result) bool { return r.Question == q.Question })
	if slices.ContainsFunc(all[at+1:], func(r *eval.Result) bool { return r.Group == q.Group }) {
		return nil
	}
	var out []line
	for _, g := range groupMeans(e, sides, q.Group) {
		x := line{task: g.title, measure: g.measure, diffs: make([]string, len(sides)-1)}
		list, known := make([]eval.Metric, len(sides)), make([]bool, len(sides))
		for i := range sides {
			list[i], known[i] = g.of(e, &sides[i])
		}
		x.show(list, known, rowDecimals(percent(&g.Metric), list))
		out = append(out, x)
	}
	return out
}

// titles name every question: the task, with what distinguishes it from other questions of the same task.
func titles(e *eval.Evaluation) map[string]string {
	out := map[string]string{}
	all := e.Questions()
	for _, q := range all {
		same := slices.DeleteFunc(slices.Clone(all), func(r *eval.Result) bool { return r.Task != q.Task })
		parts := []string{q.Kind}
		if q.StandIn() {
			parts[0] += standInMark
		}
		if n, ok := q.Config["needles"]; ok && q.Config["queries"] != nil {
			parts = append(parts, fmt.Sprintf("N=%v R=%v", n, q.Config["queries"]))
		}
		if q.Shots > 0 {
			parts = append(parts, fmt.Sprintf("%d-shot", q.Shots))
		}
		for _, key := range differing(same) {
			if key != "needles" && key != "queries" {
				parts = append(parts, fmt.Sprintf("%s=%v", key, configured(q, key)))
			}
		}
		parts = append(parts, circumstances(q, same)...)
		out[q.Question] = strings.Join(parts, " ")
	}
	// Questions that still share a name are numbered.
	seen := map[string]int{}
	for _, q := range all {
		t := out[q.Question]
		if seen[t]++; seen[t] > 1 {
			out[q.Question] = fmt.Sprintf("%s (%d)", t, seen[t])
		}
	}
	return out
}

// configured is a setting as it was used: for lengths, 0 is the context.
func configured(q *eval.Result, key string) any {
	if key == "lengths" {
		return lengthsOf(q)
	}
	return q.Config[key]
}

// circumstances distinguish a question from others of its task, besides settings.
func circumstances(q *eval.Result, same []*eval.Result) []string {
	var out []string
	for _, x := range []struct {
		name string
		of   func(r *eval.Result) string
	}{
		{"seed", func(r *eval.Result) string { return fmt.Sprint(r.Seed) }},
		{"samples", func(r *eval.Result) string { return fmt.Sprint(r.N) }},
		{"context", func(r *eval.Result) string { return fmt.Sprint(r.Context) }},
		{"version", func(r *eval.Result) string { return fmt.Sprint(r.Version) }},
		{"replicate", func(r *eval.Result) string { return r.Replicate }},
	} {
		differ := slices.ContainsFunc(same, func(r *eval.Result) bool { return x.of(r) != x.of(q) })
		if v := x.of(q); differ && v != "" {
			out = append(out, x.name+"="+v)
		}
	}
	return out
}

// standInMark follows the name of a task whose questions were generated instead of read from a set.
const standInMark = "°"

// differing are the settings in which questions of one task differ.
func differing(list []*eval.Result) []string {
	var out []string
	keys := map[string]bool{}
	for _, r := range list {
		for k := range r.Config {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if strings.HasSuffix(k, "_hash") || k == "source" || k == "prompts_cut" {
			continue
		}
		values := map[string]bool{}
		for _, r := range list {
			values[fmt.Sprint(r.Config[k])] = true
		}
		if len(values) > 1 {
			out = append(out, k)
		}
	}
	return out
}

// floorNames are the floors that any row has, in a fixed order.
func floorNames(list []line) []string {
	seen := map[string]bool{}
	for _, x := range list {
		for f := range x.floors {
			seen[f] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), cmp.Compare[string])
}
