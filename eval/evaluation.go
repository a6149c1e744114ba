package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// Evaluation is all that one call found out: models side by side, and where they differ.
type Evaluation struct {
	Title   string   `json:"title,omitempty"`
	Machine string   `json:"machine,omitempty"`
	Commit  string   `json:"commit,omitempty"`
	Date    string   `json:"date,omitempty"`
	Data    string   `json:"data,omitempty"` // empty: generated stand-ins
	Seed    uint64   `json:"seed"`
	Limit   int      `json:"limit,omitempty"`
	Models  []Judged `json:"models"`
	Paired  []Paired `json:"paired,omitempty"`
}

// Judged is one model's part.
type Judged struct {
	Name       string      `json:"name"`
	Arch       string      `json:"arch,omitempty"`
	Parameters int         `json:"parameters,omitempty"`
	Context    int         `json:"context"`
	Results    []Result    `json:"results"`
	Groups     []GroupMean `json:"groups,omitempty"`
}

// Result finds a task's result.
func (m *Judged) Result(task string) (*Result, bool) {
	for i := range m.Results {
		if m.Results[i].Task == task {
			return &m.Results[i], true
		}
	}
	return nil, false
}

// JSON writes the evaluation.
func (e *Evaluation) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(e)
}

// ReadEvaluation reads what JSON wrote.
func ReadEvaluation(r io.Reader) (*Evaluation, error) {
	var e Evaluation
	if err := json.NewDecoder(r).Decode(&e); err != nil {
		return nil, fmt.Errorf("eval: evaluation: %w", err)
	}
	if len(e.Models) == 0 {
		return nil, fmt.Errorf("eval: evaluation: it has no models; want the evaluation.json of \"antiphase eval --output\"")
	}
	return &e, nil
}

// Table renders the evaluation as aligned text: a row per metric, a column per model, and the paired difference to the first
// model behind each other one.
func (e *Evaluation) Table(color bool) string {
	t := table{head: []string{"task", "shots", "metric"}}
	for i, m := range e.Models {
		t.head = append(t.head, m.Name)
		if i > 0 {
			t.head = append(t.head, "difference")
		}
	}
	for at, first := range e.Models[0].Results {
		for k, metric := range first.Metrics {
			row := []string{"", "", metric.Name}
			if k == 0 {
				row[0], row[1] = first.label(), fmt.Sprint(first.Shots)
			}
			for i := range e.Models {
				row = append(row, e.cells(i, first.Task, metric)...)
			}
			t.rows = append(t.rows, row)
		}
		if list := e.Models[0].Results; first.Group != "" && (at == len(list)-1 || list[at+1].Group != first.Group) {
			t.rows = append(t.rows, e.groupRow(first.Group)...)
		}
	}
	out := t.render(color)
	if len(e.Models) > 1 {
		out += "± one standard error; differences are paired by sample, * p < 0.05, ** p < 0.01 (sign-flip test)\n"
	} else {
		out += "± one standard error\n"
	}
	for _, s := range e.remarks() {
		out += s + "\n"
	}
	return out
}

// groupRow is the row of a group's mean, where there is one.
func (e *Evaluation) groupRow(group string) [][]string {
	for k, g := range e.Models[0].Groups {
		if g.Group != group {
			continue
		}
		row := []string{fmt.Sprintf("%s, mean of %d", group, len(g.Tasks)), "", g.Metric.Name}
		for i := range e.Models {
			x := e.Models[i].Groups[k]
			row = append(row, x.Metric.text())
			if i > 0 {
				row = append(row, Paired{Diff: x.Diff.Value, StdErr: x.Diff.StdErr, P: 1}.text())
			}
		}
		return [][]string{row}
	}
	return nil
}

// cells are a model's value and, behind the first model, its difference.
func (e *Evaluation) cells(i int, task string, metric Metric) []string {
	out := []string{"–"}
	if r, ok := e.Models[i].Result(task); ok {
		if m, ok := r.Metric(metric.Name); ok {
			out[0] = m.text()
		}
	}
	if i == 0 {
		return out
	}
	for _, p := range e.Paired {
		if p.Task == task && p.Metric == metric.Name && p.B == e.Models[i].Name {
			return append(out, p.text())
		}
	}
	return append(out, "")
}

// text shows two digits of the error; of a value without one, four.
func (m Metric) text() string {
	verb := precision(m.StdErr)
	switch {
	case m.StdErr == 0:
		return show("%.4g", m.Value)
	case math.Abs(m.Value) >= 1e6:
		verb = "%.3g"
	}
	return show(verb, m.Value) + " ± " + show(verb, m.StdErr)
}

// precision is the format that shows two digits of err.
func precision(err float64) string {
	digits := 0
	for x := err; x < 9.5 && digits < 6; x *= 10 {
		digits++
	}
	return fmt.Sprintf("%%.%df", digits)
}

// table is text in columns: the first three to the left, numbers to the right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) render(color bool) string {
	width := make([]int, len(t.head))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, c := range r {
			width[i] = max(width[i], runes(c))
		}
	}
	line := func(r []string) string {
		var b strings.Builder
		for i, c := range r {
			gap := strings.Repeat(" ", width[i]-runes(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < 3 {
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
	out := paint(color, "1", line(t.head)) + "\n" + rule
	for _, r := range t.rows {
		out += line(r) + "\n"
	}
	return out + rule
}
