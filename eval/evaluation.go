package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Evaluation is a set of cells for a report: models side by side, and their differences.
type Evaluation struct {
	Title    string   `json:"title,omitempty"`
	Machine  string   `json:"machine,omitempty"`
	Commit   string   `json:"commit,omitempty"`
	Date     string   `json:"date,omitempty"`
	Data     string   `json:"data,omitempty"` // empty: generated stand-ins
	Seed     uint64   `json:"seed"`
	Limit    int      `json:"limit,omitempty"`
	Models   []Judged `json:"models"`
	Paired   []Paired `json:"paired,omitempty"`
	Skipped  []Skip   `json:"skipped,omitempty"` // what some models cannot be asked
	Warnings []string `json:"-"`                 // damaged rows of the store
}

// Judged is one model's part.
type Judged struct {
	Model
	Results []Result `json:"results"`
}

// Assemble puts cells side by side. Models are distinguished by everything that can change their numbers: one model in
// two precisions is two columns.
func Assemble(cells []*Cell) *Evaluation {
	e := &Evaluation{}
	at := map[Model]int{}
	for _, c := range cells {
		id := c.Head.Model
		id.Name, id.Group, id.Threads, id.Run, id.Tokens = "", "", 0, "", 0
		i, ok := at[id]
		if !ok {
			i = len(e.Models)
			at[id] = i
			e.Models = append(e.Models, Judged{Model: c.Head.Model})
		}
		m := &e.Models[i]
		m.Name, m.Group = c.Head.Model.Name, c.Head.Model.Group
		m.Run, m.Tokens = cmp.Or(c.Head.Model.Run, m.Run), cmp.Or(c.Head.Model.Tokens, m.Tokens)
		if !slices.ContainsFunc(m.Results, func(r Result) bool { return r.Question == c.Result.Question }) {
			m.Results = append(m.Results, *c.Result)
			r := &m.Results[len(m.Results)-1]
			r.Seed, r.Replicate = c.Head.Seed, c.Head.Replicate
		}
		e.Machine, e.Commit, e.Data, e.Seed, e.Limit = c.Head.Machine, c.Head.Commit, c.Head.Data,
			c.Head.Seed, c.Head.Limit
		e.Date = max(e.Date, c.Head.Time.Format("2006-01-02"))
	}
	e.distinguish()
	for i := range e.Models {
		slices.SortStableFunc(e.Models[i].Results, func(a, b Result) int { return cmp.Compare(a.Place, b.Place) })
	}
	e.compare(e.Seed)
	return e
}

// distinguish adds to models with the same name what distinguishes them.
func (e *Evaluation) distinguish() {
	for _, more := range []func(m *Judged) string{
		func(m *Judged) string { return m.Precision },
		func(m *Judged) string { return m.Device },
		func(m *Judged) string { return m.Hash[:min(8, len(m.Hash))] },
	} {
		values := map[string]map[string]bool{} // values of the models with each name
		for i := range e.Models {
			m := &e.Models[i]
			if values[m.Name] == nil {
				values[m.Name] = map[string]bool{}
			}
			values[m.Name][more(m)] = true
		}
		for i := range e.Models {
			m := &e.Models[i]
			if s := more(m); len(values[m.Name]) > 1 && s != "" {
				m.Name += " " + s
				if m.Group != "" {
					m.Group += " " + s
				}
			}
		}
	}
}

// Find is the model's result of a question.
func (m *Judged) Find(question string) (*Result, bool) {
	for i := range m.Results {
		if m.Results[i].Question == question {
			return &m.Results[i], true
		}
	}
	return nil, false
}

// Result is the model's first result of a task.
func (m *Judged) Result(kind string) (*Result, bool) {
	for i := range m.Results {
		if m.Results[i].Kind == kind {
			return &m.Results[i], true
		}
	}
	return nil, false
}

// Questions are all questions asked of any model, in the order of tasks. Each is a result that represents the question
// and has every metric that any model has for it.
func (e *Evaluation) Questions() []*Result {
	var out []*Result
	at := map[string]*Result{}
	for i := range e.Models {
		for k := range e.Models[i].Results {
			r := &e.Models[i].Results[k]
			q := at[r.Question]
			if q == nil {
				copied := *r
				copied.Metrics = slices.Clone(r.Metrics)
				q = &copied
				at[r.Question], out = q, append(out, q)
				continue
			}
			for _, m := range r.Metrics {
				if _, ok := q.Metric(m.Name); !ok {
					q.Metrics = append(q.Metrics, m)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *Result) int { return cmp.Compare(a.Place, b.Place) })
	return out
}

// Of returns the questions of a task, including stand-ins.
func (e *Evaluation) Of(kind string) []*Result {
	return slices.DeleteFunc(e.Questions(), func(r *Result) bool { return r.Kind != kind })
}

// Side is a column of a comparison: a model, or the models of a group.
type Side struct {
	Name   string
	Models []*Judged
}

// Sides are the columns, in order of first appearance.
func (e *Evaluation) Sides() []Side {
	var out []Side
	for i := range e.Models {
		m := &e.Models[i]
		name := cmp.Or(m.Group, m.Name)
		k := slices.IndexFunc(out, func(s Side) bool { return s.Name == name })
		if k < 0 || m.Group == "" {
			k = len(out)
			out = append(out, Side{Name: name})
		}
		out[k].Models = append(out[k].Models, m)
	}
	return out
}

// results are the side's results for a question.
func (s *Side) results(question string) []*Result {
	var out []*Result
	for _, m := range s.Models {
		if r, ok := m.Find(question); ok {
			out = append(out, r)
		}
	}
	return out
}

// Metric is the side's value of a metric: for a model its own; for a group the mean over its models, with an error over
// seeds and items.
func (s *Side) Metric(question, name string) (Metric, bool) {
	list := s.results(question)
	var values []float64
	var out Metric
	for _, r := range list {
		if m, ok := r.Metric(name); ok {
			out = m
			values = append(values, m.Value)
		}
	}
	if len(values) < 2 {
		return out, len(values) == 1
	}
	S := float64(len(values))
	out.Mean = Mean{average(values), math.Sqrt(variance(values) / S), out.N}
	d := StudentQuantile(0.975, S-1) * out.StdErr
	if t, ok := newTable(list, nil, name); ok && len(list) == len(values) {
		out.Mean, d = t.side()
	}
	out.Low, out.High = out.Value-d, out.Value+d
	return out, true
}

// Between finds the comparison of two sides.
func (e *Evaluation) Between(question, metric, a, b string) (Paired, bool) {
	for _, p := range e.Paired {
		if p.Question == question && p.Metric == metric && p.A == a && p.B == b {
			return p, true
		}
	}
	return Paired{}, false
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
		return nil, fmt.Errorf("eval: evaluation: it has no models")
	}
	return &e, nil
}
