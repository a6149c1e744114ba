package task

import (
	"context"
	"errors"
	"strconv"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/layer"
)

// The role of the second map, tested by changing it: λ scaled or dropped, the second map shuffled or averaged, heads
// disabled. For each change, the loss on held-out text, bound retrieval, and the divergence of the next-token
// distribution from the plain model's; and the effect of one intervention on the loss when applied to each single head.
func init() {
	register(47, eval.Task{
		Name: "interventions", Version: 1, Shots: -1, Inside: true,
		Doc: "loss and retrieval with λ scaled, the second map dropped, shuffled or averaged, and heads knocked out",
		Measures: []eval.Measure{
			{Name: "loss plain", Better: eval.Lower, Label: "held-out loss, unchanged, nats/token"},
			{Name: "bound plain", Better: eval.Higher, Label: "number beside its key, unchanged, %"},
		},
		Settings: []eval.Setting{
			{Key: "ways", Default: []string{"lambda=0", "lambda=0.5", "lambda=2", "second=shuffled:1",
				"second=averaged", "knockout@H1"},
				Rule: eval.Parsed(func(text string) error { _, err := layer.ParseIntervention(text); return err }),
				Doc: "interventions: lambda=FACTOR, second=shuffled:SEED, second=averaged, knockout, joined by +; " +
					"@L2 and @H1.3 say where, counted from 1"},
			{Key: "each", Default: "knockout",
				Rule: eval.Parsed(func(text string) error { _, err := newEachHead(text, nil); return err }),
				Doc:  "an intervention applied to each head alone; empty: none"},
			{Key: "pieces", Default: 16, Rule: eval.AtLeast(1), Doc: "held-out texts for loss and divergence"},
			{Key: "samples", Default: 4, Rule: eval.AtLeast(1), Doc: "needle prompts per depth"},
			{Key: "needles", Default: 4, Rule: eval.Between(1, float64(data.MostNeedles())),
				Doc: "numbers hidden (N); one is asked for"},
			{Key: "length", Default: 0, Rule: eval.AtLeast(2).OrZero(),
				Doc: "tokens of a text or prompt; 0: the context, at most 1024"},
		},
		Valid:   validLength,
		Prepare: prepareInterventions,
	})
}

// InterventionsDetail is the data of the figures of the task interventions. A Transformer, whose heads have one map,
// has only knock-outs.
type InterventionsDetail struct {
	Loss  []VariantScore `json:"loss"` // the first is the plain model
	Bound []VariantScore `json:"bound"`
	KL    []VariantScore `json:"kl"` // Change is not set
	Each  string         `json:"each,omitempty"`
	Heads [][]float64    `json:"heads,omitempty"` // change of the loss by layer and head
}

const plainName = "plain"

// interventionVariants parses the interventions; the first is the plain model.
func interventionVariants(texts []string) ([]variant, error) {
	out := []variant{{name: plainName, set: func(s *eval.Subject) error { return s.Intervene() }}}
	for _, text := range texts {
		v, err := layer.ParseIntervention(text)
		if err != nil {
			return nil, eval.BadSetting("ways: %w", err)
		}
		out = append(out, variant{name: v.String(), set: func(s *eval.Subject) error { return s.Intervene(v) },
			can: canIntervene(v)})
	}
	return out, nil
}

// canIntervene reports whether a model has the maps, layers and heads that an intervention names.
func canIntervene(v layer.Intervention) func(s *eval.Subject) bool {
	return func(s *eval.Subject) bool {
		c := s.Model.Config
		arch, err := layer.LookupArch(c.Arch)
		return err == nil && layer.CheckIntervention(v, arch, c.Layers, c.Heads) == nil
	}
}

// interventionsJob is a task in three parts: retrieval, loss with divergence, and single heads.
type interventionsJob struct {
	bound *variants
	loss  *variants
	kl    *divergence
	each  *eachHead
}

func prepareInterventions(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	list, err := interventionVariants(p.Texts("ways"))
	if err != nil {
		return nil, err
	}
	length := p.Int("length")
	if length == 0 {
		length = min(p.Context, 1024)
	}
	x := &interventionsJob{}
	if x.loss, err = innerVariants(ctx, p, list, "lm", "loss", p.Int("pieces"),
		map[string]string{"length": strconv.Itoa(length)}); err != nil {
		return nil, err
	}
	if x.bound, err = innerVariants(ctx, p, list, "needle", "bound", 5*p.Int("samples"),
		map[string]string{"lengths": strconv.Itoa(length),
			"samples": strconv.Itoa(p.Int("samples")), "needles": strconv.Itoa(p.Int("needles")),
			"queries": "1"}); err != nil {
		return nil, err
	}
	texts, source, err := heldOut(ctx, p, "", min(length, 128), min(x.loss.n, 4))
	if err != nil {
		return nil, err
	}
	x.kl = &divergence{texts: texts, length: min(length, 128), list: list}
	if x.each, err = newEachHead(p.Text("each"), texts); err != nil {
		return nil, err
	}
	lossHash, err := x.loss.hash()
	if err != nil {
		return nil, err
	}
	boundHash, err := x.bound.hash()
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: 16, Config: map[string]any{"source": source, "loss_hash": lossHash, "bound_hash": boundHash,
		"text_hash": eval.HashText(texts...)}}
	for _, id := range x.loss.ids() {
		j.IDs = append(j.IDs, "loss "+id)
	}
	for _, id := range x.bound.ids() {
		j.IDs = append(j.IDs, "bound "+id)
	}
	j.IDs = append(append(j.IDs, x.kl.ids()...), x.each.ids()...)
	n1, n2, n3 := len(x.loss.ids()), len(x.bound.ids()), len(x.kl.ids())
	rest := func(ctx context.Context, s *eval.Subject, which []int) ([]eval.Answer, error) {
		return both(n2, x.bound.ask, func(ctx context.Context, s *eval.Subject, which []int) ([]eval.Answer, error) {
			return both(n3, x.kl.ask, x.each.ask)(ctx, s, which)
		})(ctx, s, which)
	}
	j.Ask = both(n1, x.loss.ask, rest)
	j.Finish = func(r *eval.Result) error { return x.finish(r) }
	return j, nil
}

// innerVariants prepares one measure under all interventions.
func innerVariants(ctx context.Context, p *eval.Plan, list []variant, name, metric string, samples int,
	set map[string]string) (*variants, error) {
	in, m, err := inner(ctx, p, innerAsk{name, metric, samples, p.Context, set})
	if err != nil {
		return nil, err
	}
	x := &variants{inner: in, metric: m, list: list, n: min(len(in.IDs), samples),
		label: func(v *variant) string { return metric + " " + v.name }}
	if p.Limit > 0 { // a limit counts all answers, at least one of each variant
		x.n = max(1, min(x.n, p.Limit/len(list)))
	}
	return x, nil
}

func (x *interventionsJob) finish(r *eval.Result) error {
	n1 := len(x.loss.ids())
	n2 := n1 + len(x.bound.ids())
	n3 := n2 + len(x.kl.ids())
	d := InterventionsDetail{Loss: x.loss.scores(r.Answers[:n1]), Bound: x.bound.scores(r.Answers[n1:n2]),
		Each: x.each.name}
	for _, s := range d.Loss[1:] {
		r.Add("loss "+s.Variant, "loss, "+s.Variant, eval.Lower, s.Score)
	}
	for _, s := range d.Bound[1:] {
		r.Add("bound "+s.Variant, "number beside its key, "+s.Variant+", %", eval.Higher, s.Score)
	}
	for i := range x.kl.list[1:] {
		v := &x.kl.list[i+1]
		if m := eval.MeanOf(r.Answers[n2:n3], klName(v)); m.N > 0 {
			r.Add(klName(v), "KL to the plain model, "+v.name, eval.Neither, m)
			d.KL = append(d.KL, VariantScore{Variant: v.name, Score: m})
		}
	}
	var err error
	d.Heads, err = x.each.change(r.Answers[n3:])
	return errors.Join(err, r.SetDetail(d))
}
