package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"antiphase/layer"
)

// lowbitTasks is the effect of few bits on another task (the paper's Figure 8 quantises attention logits and asks HellaSwag). The
// paper does not say which logits share a scale: see layer.Granularity for the choices.
func lowbitTasks() []Task {
	return []Task{{
		Name: "lowbit", Version: 1, Shots: -1, Inside: true,
		Doc:      "another task with attention logits, or keys and values, of 8, 6 and 4 bits",
		Measures: []Measure{{"exact", higher}},
		Settings: []Setting{
			{"task", "hellaswag", "the task to be asked"},
			{"with", "", "its settings, as KEY=VALUE;KEY=VALUE"},
			{"bits", []int{8, 6, 4}, "of every number, 2 to 16"},
			{"of", []string{"logits", "cache"}, "what is quantised: attention logits, or keys and values (one scale per head and token)"},
			{"per", string(layer.PerTensor), "logits that share a scale: tensor (all of a layer and sequence), head or row"},
			{"samples", 40, "questions of the task"},
		},
		Prepare: prepareLowbit,
	}}
}

// LowbitDetail is what the figure of the task lowbit is drawn from.
type LowbitDetail struct {
	Task   string      `json:"task"`
	Metric string      `json:"metric"`
	Per    string      `json:"per"`
	Exact  Mean        `json:"exact"`
	Rows   []LowbitRow `json:"rows"`
}

// LowbitRow is one precision: the score, and how far each sample's lies from exact.
type LowbitRow struct {
	Of     string `json:"of"`
	Bits   int    `json:"bits"`
	Score  Mean   `json:"score"`
	Change Mean   `json:"change"`
}

// precise is one way to compute.
type precise struct {
	name string // of its measure
	of   string
	bits int
	q    layer.Lowbit
}

// precisions are the exact way and all those asked for.
func (p *Plan) precisions() ([]precise, error) {
	out := []precise{{name: "exact"}}
	per := layer.Granularity(p.Text("per"))
	for _, of := range p.Texts("of") {
		for _, bits := range p.Ints("bits") {
			x := precise{fmt.Sprintf("%s@%d", of, bits), of, bits, layer.Lowbit{}}
			switch of {
			case "logits":
				x.q = layer.Lowbit{Logits: bits, Per: per}
			case "cache":
				x.q = layer.Lowbit{Cache: bits}
			default:
				return nil, fmt.Errorf("of has %q, must be logits or cache", of)
			}
			if err := x.q.Check(); err != nil || bits == 0 {
				return nil, errors.Join(err, fmt.Errorf("bits has %d", bits))
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func prepareLowbit(p *Plan) (*Job, error) {
	ways, err := p.precisions()
	if err != nil {
		return nil, err
	}
	all := Tasks()
	at := slices.IndexFunc(all, func(t Task) bool { return t.Name == p.Text("task") })
	if at < 0 || all[at].Name == "lowbit" {
		return nil, fmt.Errorf("task is %q; want one of those that \"antiphase eval ls\" lists, but this one", p.Text("task"))
	}
	inner, err := p.inner(&all[at])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", all[at].Name, err)
	}
	n := min(len(inner.IDs), max(p.Int("samples"), 1))
	questions, err := json.Marshal([]any{inner.task.Version, inner.Config, inner.Gold})
	if err != nil {
		return nil, err
	}
	j := &Job{Chunk: n, Config: map[string]any{"questions_hash": textHash(string(questions))}}
	for _, w := range ways {
		for _, id := range inner.IDs[:n] {
			j.IDs = append(j.IDs, w.name+" "+id)
		}
	}
	metric := all[at].Measures[0]
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		return askLowbit(ctx, lm.(*Subject), inner, metric.Name, ways, n, which)
	}
	j.Finish = func(r *Result) error {
		r.Metrics[0].Better = metric.Better
		return finishLowbit(r, LowbitDetail{Task: all[at].Name, Metric: metric.Name, Per: p.Text("per")}, ways, metric.Better)
	}
	return j, nil
}

// inner prepares the task to be asked, under the same options and its own settings.
func (p *Plan) inner(t *Task) (job, error) {
	opt := *p.Options
	opt.Set = map[string]string{}
	for _, s := range strings.Split(p.Text("with"), ";") {
		if key, value, ok := strings.Cut(s, "="); ok {
			opt.Set[t.Name+"."+strings.TrimSpace(key)] = value
		} else if s != "" {
			return job{}, fmt.Errorf("with has %q, want KEY=VALUE", s)
		}
	}
	if err := opt.checkSettings([]Task{*t}); err != nil {
		return job{}, err
	}
	return opt.prepare(t)
}

// askLowbit asks way after way. What an earlier way has left in the model's cache is of that way, and is dropped.
func askLowbit(ctx context.Context, s *Subject, inner job, metric string, ways []precise, n int, which []int) (out []Answer, err error) {
	defer func() {
		s.Close()
		err = errors.Join(err, s.Model.SetLowbit(layer.Lowbit{}))
	}()
	for len(which) > 0 {
		w := ways[which[0]/n]
		var part []int
		for len(which) > 0 && ways[which[0]/n] == w {
			part = append(part, which[0]%n)
			which = which[1:]
		}
		s.Close()
		if err := s.Model.SetLowbit(w.q); err != nil {
			return nil, err
		}
		got, err := inner.Ask(ctx, s, part)
		if err != nil {
			return nil, err
		}
		for i := range got {
			a := Answer{Values: map[string]float64{}, Doc: got[i].Doc}
			if x, ok := got[i].Values[metric]; ok {
				a.Values[w.name] = x
				a.Weights = map[string]float64{w.name: got[i].weight(metric)}
			}
			out = append(out, a)
		}
	}
	return out, nil
}

func finishLowbit(r *Result, d LowbitDetail, ways []precise, better direction) error {
	n := len(r.Answers) / len(ways)
	d.Exact = meanOf(r.Answers, "exact")
	for k, w := range ways[1:] {
		row := LowbitRow{Of: w.of, Bits: w.bits, Score: meanOf(r.Answers, w.name)}
		var change ratio
		for i := range n {
			a, b := &r.Answers[i], &r.Answers[(k+1)*n+i]
			x, ok := a.Values["exact"]
			y, also := b.Values[w.name]
			if ok && also {
				change.add(a.weight("exact")*(y-x), a.weight("exact"))
			}
		}
		row.Change = change.mean()
		r.Add(w.name, better, row.Score)
		d.Rows = append(d.Rows, row)
	}
	return r.SetDetail(d)
}
