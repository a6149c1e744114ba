package task

import (
	"context"
	"fmt"
	"strconv"

	"antiphase/eval"
	"antiphase/layer"
)

// The effect of low precision on another task (the paper's Figure 8 quantises attention logits on HellaSwag, published
// by acc_norm) and on the next-token distribution, over bits × what is quantised × which numbers share a scale. The
// paper does not say which logits share one: see layer.Granularity for the choices. A scale belongs to a sequence, so
// results do not depend on what else is computed in the batch.
func init() {
	register(70, eval.Task{
		Name: "lowbit", Version: 3, Shots: -1, Inside: true,
		Doc: "another task, and the divergence from exact, with attention logits, keys or values of 8, " +
			"6 and 4 bits",
		Measures: []eval.Measure{{Name: "exact", Better: eval.Higher, Label: "score, exact"}},
		Settings: []eval.Setting{
			{Key: "task", Default: "hellaswag", Doc: "the task to run"},
			{Key: "metric", Default: "", Doc: "the task's measure; empty: its headline"},
			{Key: "with", Default: "", Doc: "the task's settings, as KEY=VALUE;KEY=VALUE"},
			{Key: "bits", Default: []int{8, 6, 4}, Rule: eval.Between(2, 16), Doc: "bits of each number, 2 to 16"},
			{Key: "of", Default: []string{"logits", "cache"},
				Rule: eval.OneOf("logits", "keys", "values", "cache", "both"),
				Doc:  "what is quantised: logits, keys, values, cache (keys and values) or both (all of them)"},
			{Key: "per", Default: []string{usualScale},
				Rule: eval.OneOf(usualScale, string(layer.PerTensor), string(layer.PerHead), string(layer.PerRow)),
				Doc: "numbers that share a scale: tensor (all of a layer and sequence), head or row; usual: tensor " +
					"for logits, row (a head of one token) for keys and values"},
			{Key: "samples", Default: 40, Rule: eval.AtLeast(1), Doc: "questions of the task"},
			{Key: "texts", Default: 4, Rule: eval.AtLeast(0), Doc: "held-out texts for the divergence; 0: none"},
			{Key: "length", Default: 128, Rule: eval.AtLeast(2), Doc: "tokens of each text"},
		},
		Valid:   validInner,
		Prepare: prepareLowbit,
	})
}

// usualScale is a tensor's for logits and a row's for keys and values.
const usualScale = "usual"

// LowbitDetail is the data of the figures of the task lowbit.
type LowbitDetail struct {
	Task    string      `json:"task"`
	Metric  string      `json:"metric"`
	Shots   int         `json:"shots"`
	StandIn bool        `json:"stand_in,omitempty"` // the task asked generated questions
	Exact   eval.Mean   `json:"exact"`
	Rows    []LowbitRow `json:"rows"`
}

// LowbitRow is one precision: the score, the difference of each sample from exact, and the divergence from exact in
// nats per token.
type LowbitRow struct {
	Of     string     `json:"of"`
	Per    string     `json:"per"`
	Bits   int        `json:"bits"`
	Score  eval.Mean  `json:"score"`
	Change eval.Mean  `json:"change"`
	KL     *eval.Mean `json:"kl,omitempty"`
}

// precisions are the exact variant and all requested ones, and their rows of the detail.
func precisions(p *eval.Plan) (list []variant, rows []LowbitRow) {
	list = []variant{{name: "exact", set: func(s *eval.Subject) error { return s.SetLowbit(layer.Lowbit{}) }}}
	for _, of := range p.Texts("of") {
		for _, per := range p.Texts("per") {
			for _, bits := range p.Ints("bits") {
				q := lowbitOf(of, per, bits)
				name := of + "@" + strconv.Itoa(bits)
				if len(p.Texts("per")) > 1 || per != usualScale {
					name = of + "/" + per + "@" + strconv.Itoa(bits)
				}
				list = append(list, variant{name: name, set: func(s *eval.Subject) error { return s.SetLowbit(q) }})
				rows = append(rows, LowbitRow{Of: of, Per: per, Bits: bits})
			}
		}
	}
	return list, rows
}

// lowbitOf is a precision in the layer's terms.
func lowbitOf(of, per string, bits int) layer.Lowbit {
	scale, cache := layer.Granularity(per), layer.Granularity(per)
	if per == usualScale {
		scale, cache = layer.PerTensor, layer.PerRow
	}
	switch of {
	case "logits":
		return layer.Lowbit{Logits: bits, Per: scale}
	case "keys":
		return layer.Lowbit{Keys: bits, CachePer: cache}
	case "values":
		return layer.Lowbit{Values: bits, CachePer: cache}
	case "cache":
		return layer.Lowbit{Keys: bits, Values: bits, CachePer: cache}
	}
	return layer.Lowbit{Logits: bits, Per: scale, Keys: bits, Values: bits, CachePer: cache} // both
}

func prepareLowbit(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	list, rows := precisions(p)
	a, err := askedInner(p)
	if err != nil {
		return nil, err
	}
	in, metric, err := inner(ctx, p, a)
	if err != nil {
		return nil, err
	}
	x := &variants{inner: in, metric: metric, list: list, n: min(len(in.IDs), max(p.Int("samples"), 1)),
		label: func(v *variant) string { return v.name }}
	if p.Limit > 0 { // a limit counts all answers, at least one of each precision
		x.n = max(1, min(x.n, p.Limit/len(list)))
	}
	hash, err := x.hash()
	if err != nil {
		return nil, err
	}
	kl := &divergence{length: min(p.Int("length"), p.Context), list: list}
	if n := p.Limited(p.Int("texts")); n > 0 {
		if kl.texts, _, err = heldOut(ctx, p, "", kl.length, n); err != nil {
			return nil, err
		}
	}
	j := &eval.Job{Chunk: x.n, IDs: append(x.ids(), kl.ids()...), Config: map[string]any{
		"questions_hash": hash, "text_hash": eval.HashText(kl.texts...), "source": in.Config["source"],
		"inner_shots": max(in.Plan.Shots, 0)}}
	j.Ask = both(len(list)*x.n, x.ask, kl.ask)
	d := LowbitDetail{Task: in.Task.Name, Metric: metric.Name, Shots: max(in.Plan.Shots, 0),
		StandIn: in.Config["source"] == eval.StandIn}
	j.Finish = func(r *eval.Result) error {
		r.Metrics[0].Better = metric.Better
		return finishLowbit(r, x, kl, d, rows)
	}
	return j, nil
}

// both sends the first n questions of a job to one function and the others to another.
func both(n int, first, second func(context.Context, *eval.Subject, []int) ([]eval.Answer, error)) func(context.Context,
	eval.LM, []int) ([]eval.Answer, error) {
	return func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		at := 0
		for at < len(which) && which[at] < n {
			at++
		}
		var out []eval.Answer
		if at > 0 {
			got, err := first(ctx, s, which[:at])
			if err != nil {
				return nil, err
			}
			out = got
		}
		if at == len(which) {
			return out, nil
		}
		rest := make([]int, len(which)-at)
		for i, w := range which[at:] {
			rest[i] = w - n
		}
		got, err := second(ctx, s, rest)
		return append(out, got...), err
	}
}

func finishLowbit(r *eval.Result, x *variants, kl *divergence, d LowbitDetail, rows []LowbitRow) error {
	scores := x.scores(r.Answers)
	d.Exact = scores[0].Score
	for i, row := range rows {
		s, v := scores[i+1], &x.list[i+1]
		row.Score, row.Change = s.Score, s.Change
		what := fmt.Sprintf("%s of %d bits", row.Of, row.Bits)
		if row.Per != usualScale {
			what += " per " + row.Per
		}
		r.Add(v.name, "score, "+what, x.metric.Better, s.Score)
		if len(kl.texts) > 0 {
			m := eval.MeanOf(r.Answers, klName(v))
			r.Add(klName(v), "KL to exact, "+what, eval.Lower, m)
			row.KL = &m
		}
		d.Rows = append(d.Rows, row)
	}
	return r.SetDetail(d)
}
