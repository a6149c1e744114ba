package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
	"antiphase/layer"
)

// The effect of few bits on another task (the paper's Figure 8 quantises attention logits and asks HellaSwag, published by acc_norm).
// The paper does not say which logits share a scale: see layer.Granularity for the choices. A scale belongs to a sequence: whatever
// else is computed beside it, its numbers are the same.
func init() {
	register(70, eval.Task{
		Name: "lowbit", Version: 2, Shots: -1, Inside: true,
		Doc:      "another task with attention logits, or keys and values, of 8, 6 and 4 bits",
		Measures: []eval.Measure{{Name: "exact", Better: eval.Higher, Label: "score, exact"}},
		Settings: []eval.Setting{
			{Key: "task", Default: "hellaswag", Doc: "the task to be asked"},
			{Key: "metric", Default: "", Doc: "its measure; empty: its headline"},
			{Key: "with", Default: "", Doc: "its settings, as KEY=VALUE;KEY=VALUE"},
			{Key: "bits", Default: []int{8, 6, 4}, Doc: "of every number, 2 to 16"},
			{Key: "of", Default: []string{"logits", "cache"}, Doc: "what is quantised: attention logits, or keys and values (one scale per head and token)"},
			{Key: "per", Default: string(layer.PerTensor), Doc: "logits that share a scale: tensor (all of a layer and sequence), head or row"},
			{Key: "samples", Default: 40, Doc: "questions of the task"},
		},
		Prepare: prepareLowbit,
	})
}

// LowbitDetail is the data of the figure of the task lowbit.
type LowbitDetail struct {
	Task    string      `json:"task"`
	Metric  string      `json:"metric"`
	Shots   int         `json:"shots"`
	StandIn bool        `json:"stand_in,omitempty"` // the task asked generated questions
	Per     string      `json:"per"`
	Exact   eval.Mean   `json:"exact"`
	Rows    []LowbitRow `json:"rows"`
}

// LowbitRow is one precision: the score, and how far each sample's lies from exact.
type LowbitRow struct {
	Of     string    `json:"of"`
	Bits   int       `json:"bits"`
	Score  eval.Mean `json:"score"`
	Change eval.Mean `json:"change"`
}

// precise is one way to compute.
type precise struct {
	name string // of its measure
	of   string
	bits int
	q    layer.Lowbit
}

// precisions are the exact way and all those asked for.
func precisions(p *eval.Plan) ([]precise, error) {
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

// lowbitJob is the inner task under every precision.
type lowbitJob struct {
	inner  *eval.Prepared
	metric eval.Measure
	ways   []precise
	n      int // questions
}

func prepareLowbit(p *eval.Plan) (*eval.Job, error) {
	ways, err := precisions(p)
	if err != nil {
		return nil, err
	}
	inner, metric, err := innerTask(p)
	if err != nil {
		return nil, err
	}
	l := &lowbitJob{inner: inner, metric: metric, ways: ways, n: min(len(inner.IDs), max(p.Int("samples"), 1))}
	if p.Limit > 0 { // a limit counts all answers, at least one of each precision
		l.n = max(1, min(l.n, p.Limit/len(ways)))
	}
	questions, err := json.Marshal([]any{inner.Task.Version, inner.Config, inner.Gold})
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: l.n, Config: map[string]any{"questions_hash": eval.HashText(string(questions)), "source": inner.Config["source"],
		"inner_shots": max(inner.Plan.Shots, 0)}}
	for _, w := range ways {
		for _, id := range inner.IDs[:l.n] {
			j.IDs = append(j.IDs, w.name+" "+id)
		}
	}
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		return l.ask(ctx, lm.(*eval.Subject), which)
	}
	d := LowbitDetail{Task: inner.Task.Name, Metric: metric.Name, Shots: max(inner.Plan.Shots, 0), Per: p.Text("per"),
		StandIn: inner.Config["source"] == eval.StandIn}
	j.Finish = func(r *eval.Result) error {
		r.Metrics[0].Better = metric.Better
		return l.finish(r, d)
	}
	return j, nil
}

// innerTask prepares the task to be asked, under the same options and its own settings, and finds its measure.
func innerTask(p *eval.Plan) (*eval.Prepared, eval.Measure, error) {
	all := All()
	at := slices.IndexFunc(all, func(t eval.Task) bool { return t.Name == p.Text("task") })
	if at < 0 || all[at].Name == "lowbit" {
		return nil, eval.Measure{}, fmt.Errorf("task is %q; want one of those that \"antiphase eval ls\" lists, but this one", p.Text("task"))
	}
	t := &all[at]
	opt := *p.Options
	opt.Set, opt.Limit = map[string]string{}, 0
	if p.Limit > 0 {
		opt.Limit = min(p.Limit, p.Int("samples"))
	}
	for _, s := range strings.Split(p.Text("with"), ";") {
		if key, value, ok := strings.Cut(s, "="); ok {
			opt.Set[t.Name+"."+strings.TrimSpace(key)] = value
		} else if s != "" {
			return nil, eval.Measure{}, fmt.Errorf("with has %q, want KEY=VALUE", s)
		}
	}
	metric := t.Measures[0]
	if name := p.Text("metric"); name != "" {
		k := slices.IndexFunc(t.Measures, func(m eval.Measure) bool { return m.Name == name })
		if k < 0 {
			return nil, metric, fmt.Errorf("metric is %q, which %s does not have", name, t.Name)
		}
		metric = t.Measures[k]
	}
	if err := opt.CheckSettings([]eval.Task{*t}); err != nil {
		return nil, metric, fmt.Errorf("%s: %w", t.Name, err)
	}
	inner, err := opt.Prepare(t)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.Name, err)
	}
	return inner, metric, err
}

// ask goes through the precisions one after the other.
func (l *lowbitJob) ask(ctx context.Context, s *eval.Subject, which []int) (out []eval.Answer, err error) {
	defer func() { err = errors.Join(err, s.SetLowbit(layer.Lowbit{})) }()
	for len(which) > 0 {
		w := l.ways[which[0]/l.n]
		var part []int
		for len(which) > 0 && l.ways[which[0]/l.n] == w {
			part = append(part, which[0]%l.n)
			which = which[1:]
		}
		if err := s.SetLowbit(w.q); err != nil {
			return nil, err
		}
		got, err := l.inner.Ask(ctx, s, part)
		if err != nil {
			return nil, err
		}
		for i := range got {
			a := eval.Answer{Values: map[string]float64{}, Doc: got[i].Doc}
			if x, ok := got[i].Values[l.metric.Name]; ok {
				a.Values[w.name] = x
				a.Weights = map[string]float64{w.name: got[i].Weight(l.metric.Name)}
			}
			out = append(out, a)
		}
	}
	return out, nil
}

func (l *lowbitJob) finish(r *eval.Result, d LowbitDetail) error {
	d.Exact = eval.MeanOf(r.Answers, "exact")
	for k, w := range l.ways[1:] {
		row := LowbitRow{Of: w.of, Bits: w.bits, Score: eval.MeanOf(r.Answers, w.name)}
		var change eval.Ratio
		for i := range l.n {
			a, b := &r.Answers[i], &r.Answers[(k+1)*l.n+i]
			x, ok := a.Values["exact"]
			y, also := b.Values[w.name]
			if ok && also {
				change.Add(a.Weight("exact")*(y-x), a.Weight("exact"))
			}
		}
		row.Change = change.Mean()
		r.Add(w.name, fmt.Sprintf("score, %s of %d bits", w.of, w.bits), l.metric.Better, row.Score)
		d.Rows = append(d.Rows, row)
	}
	return r.SetDetail(d)
}
