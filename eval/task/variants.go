package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
)

// variant is a way to compute: the plain model, or one with few bits or an intervention.
type variant struct {
	name string
	set  func(s *eval.Subject) error
	can  func(s *eval.Subject) bool // nil: every model can
}

// possible says whether a model has what the variant changes.
func (v *variant) possible(s *eval.Subject) bool { return v.can == nil || v.can(s) }

// variants is one measure of another task, asked of every variant of a model. The first variant is the plain model.
type variants struct {
	inner  *eval.Prepared
	metric eval.Measure
	list   []variant
	n      int                     // questions
	label  func(v *variant) string // of a variant's values in answers and results
}

// ids name every question of every variant.
func (x *variants) ids() (out []string) {
	for _, v := range x.list {
		for _, id := range x.inner.IDs[:x.n] {
			out = append(out, v.name+" "+id)
		}
	}
	return out
}

// hash identifies the questions.
func (x *variants) hash() (string, error) {
	b, err := json.Marshal([]any{x.inner.Task.Version, x.inner.Config, x.inner.Gold, x.inner.Data()})
	return eval.HashText(string(b)), err
}

// ask goes through the variants one after the other. A model that lacks what a variant changes gives answers without
// values.
func (x *variants) ask(ctx context.Context, s *eval.Subject, which []int) (out []eval.Answer, err error) {
	defer func() { err = errors.Join(err, x.list[0].set(s)) }()
	for len(which) > 0 {
		at := which[0] / x.n
		v := &x.list[at]
		var part []int
		for len(which) > 0 && which[0]/x.n == at {
			part = append(part, which[0]%x.n)
			which = which[1:]
		}
		if !v.possible(s) {
			out = append(out, make([]eval.Answer, len(part))...)
			continue
		}
		if err := v.set(s); err != nil {
			return nil, err
		}
		got, err := x.inner.Ask(ctx, s, part)
		if err != nil {
			return nil, err
		}
		for i := range got {
			a := eval.Answer{Values: map[string]float64{}, Doc: got[i].Doc}
			if y, ok := got[i].Values[x.metric.Name]; ok {
				a.Put(x.label(v), y*got[i].Weight(x.metric.Name), got[i].Weight(x.metric.Name))
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// VariantScore is a variant's score, and how far it lies from the plain model's, question by question.
type VariantScore struct {
	Variant string    `json:"variant"`
	Score   eval.Mean `json:"score"`
	Change  eval.Mean `json:"change"`
}

// scores are those of all variants that the model has; answers are those of ids, in order.
func (x *variants) scores(answers []eval.Answer) (out []VariantScore) {
	for k := range x.list {
		name := x.label(&x.list[k])
		part := answers[k*x.n : (k+1)*x.n]
		if !slices.ContainsFunc(part, func(a eval.Answer) bool { _, ok := a.Values[name]; return ok }) {
			continue
		}
		var change eval.Ratio
		for i := range part {
			plain := &answers[i]
			a, ok := plain.Values[x.label(&x.list[0])]
			b, also := part[i].Values[name]
			if ok && also {
				w := plain.Weight(x.label(&x.list[0]))
				change.Add(w*(b-a), w)
			}
		}
		out = append(out, VariantScore{x.list[k].name, eval.MeanOf(part, name), change.Mean()})
	}
	return out
}

// asksAnother says that a task puts another one's questions: it cannot be put by a third.
func asksAnother(t *eval.Task) bool {
	return slices.ContainsFunc(t.Settings, func(s eval.Setting) bool { return s.Key == "task" })
}

// innerAsk is another task whose questions this one asks.
type innerAsk struct {
	name    string
	metric  string // empty: its headline
	samples int
	context int // tokens of its prompts, at most
	set     map[string]string
}

// askedInner is the task that settings name.
func askedInner(p *eval.Plan) (innerAsk, error) {
	set, err := withSettings(p.Text("with"))
	return innerAsk{p.Text("task"), p.Text("metric"), p.Int("samples"), p.Context, set}, err
}

// validInner rejects a task that cannot be asked that way, and settings that it rejects itself.
func validInner(p *eval.Plan) error {
	a, err := askedInner(p)
	if err == nil {
		_, _, _, err = a.find(p)
	}
	return err
}

// find is the task, the options to prepare it with, and the measure.
func (a innerAsk) find(p *eval.Plan) (t *eval.Task, opt eval.Options, m eval.Measure, err error) {
	all := slices.Concat(p.Options.Tasks, All()) // a file's task counts before a built-in one of its name
	at := slices.IndexFunc(all, func(t eval.Task) bool { return t.Name == a.name })
	if at < 0 || all[at].Inside || asksAnother(&all[at]) {
		return nil, opt, m, eval.BadSetting(
			"task is %q; want one that \"antiphase eval ls\" lists and that asks questions", a.name)
	}
	t = &all[at]
	opt = p.Options.Within(a.context)
	opt.Set, opt.Limit = map[string]string{}, 0
	if p.Limit > 0 {
		opt.Limit = min(p.Limit, a.samples)
	}
	for key, value := range a.set {
		opt.Set[t.Name+"."+key] = value
	}
	m = t.Measures[0]
	if a.metric != "" {
		k := slices.IndexFunc(t.Measures, func(m eval.Measure) bool { return m.Name == a.metric })
		if k < 0 {
			return nil, opt, m, eval.BadSetting("metric is %q, which %s does not have", a.metric, t.Name)
		}
		m = t.Measures[k]
	}
	if err := opt.CheckSettings([]eval.Task{*t}); err != nil {
		return nil, opt, m, eval.BadSetting("%w", err)
	}
	return t, opt, m, nil
}

// inner prepares another task of the same name space under the same options, with settings of its own, and finds one of
// its measures.
func inner(ctx context.Context, p *eval.Plan, a innerAsk) (*eval.Prepared, eval.Measure, error) {
	t, opt, m, err := a.find(p)
	if err != nil {
		return nil, m, err
	}
	out, err := opt.Prepare(ctx, t)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.Name, err)
	}
	return out, m, err
}

// withSettings reads KEY=VALUE;KEY=VALUE.
func withSettings(text string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range strings.Split(text, ";") {
		if key, value, ok := strings.Cut(s, "="); ok {
			out[strings.TrimSpace(key)] = value
		} else if s != "" {
			return nil, eval.BadSetting("with has %q, want KEY=VALUE", s)
		}
	}
	return out, nil
}
