package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"antiphase/eval"
)

// mcItem is a multiple-choice question: the likelihood of ending k given context k decides. Most sets have one context
// for all endings; WinoGrande has one ending after different contexts; LAMBADA has a single ending, which must be the
// model's own greedy choice.
type mcItem struct {
	id       string
	contexts []string
	endings  []string // without the leading space
	gold     int
}

// context is the text before ending k.
func (q *mcItem) context(k int) string { return q.contexts[min(k, len(q.contexts)-1)] }

// ending is the text of choice k.
func (q *mcItem) ending(k int) string { return q.endings[min(k, len(q.endings)-1)] }

func (q *mcItem) choices() int { return max(len(q.contexts), len(q.endings)) }

// solved is the question with its right answer, as an example.
func (q *mcItem) solved() string { return q.context(q.gold) + " " + q.ending(q.gold) }

// The seven sets of the paper's Tables 1 and 8, and LAMBADA, with the prompts and scoring of lm-evaluation-harness: acc
// takes the ending with the highest summed log-likelihood, acc_norm the highest per character of the ending (the
// harness divides by Python's len of a string, which counts characters, not bytes). HellaSwag is published by acc_norm,
// the others by acc.
func init() {
	for i, set := range mcSets {
		acc := eval.Measure{Name: "acc", Better: eval.Higher, Label: "accuracy, %"}
		norm := eval.Measure{Name: "acc_norm", Better: eval.Higher, Label: "accuracy, per character, %"}
		t := eval.Task{Name: set.name, Group: "mc", Version: 3, Doc: set.doc,
			Measures: []eval.Measure{acc, norm},
			Settings: []eval.Setting{{Key: "same_shots", Default: false,
				Doc: "the same examples before every question but those among them, which is faster; the harness " +
					"draws new ones each time"}},
			Beside:  set.single, // the paper's mean is of the other seven
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareMC(ctx, p, set) }}
		switch {
		case set.single || set.accOnly:
			t.Measures = t.Measures[:1]
		case set.byNorm:
			t.Measures = []eval.Measure{norm, acc}
		}
		registerAt(20, i, t)
	}
}

// mcSet is one data set.
type mcSet struct {
	name, doc string
	test      string                         // file of the questions
	train     string                         // file of the examples; if empty they are other questions of test
	accOnly   bool                           // endings have similar lengths, and the harness does not normalise
	byNorm    bool                           // published by acc_norm
	single    bool                           // one ending, scored by greedy decoding, with its perplexity
	f1        func(gold, said []int) float64 // published with the accuracy; nil: none
	read      func(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error)
	make      func(g *rand.Rand) mcItem // a stand-in
}

func prepareMC(ctx context.Context, p *eval.Plan, set mcSet) (*eval.Job, error) {
	items, pool, err := set.load(ctx, p)
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: 64, Config: map[string]any{"source": p.Source(set.test)}}
	chance := 0.0
	g := p.Rand("shots")
	var order []int // of the examples
	heads := make([]string, len(items))
	for i := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q := &items[i]
		j.IDs = append(j.IDs, fmt.Sprintf("%d %s", i, q.id))
		if i == 0 || !p.Bool("same_shots") {
			order = g.Perm(len(pool))
		}
		heads[i] = shotsText(order, pool, q, p.Shots)
		j.Gold = append(j.Gold, eval.Continuation{Context: heads[i] + q.context(q.gold), Text: " " + q.ending(q.gold)})
		if !set.single {
			chance += 1 / float64(q.choices()) / float64(len(items))
		}
	}
	if !set.single {
		j.Floors = eval.Chance(chance, "acc", "acc_norm")
	}
	cut, err := tooLong(ctx, p, j.Gold)
	if err != nil {
		return nil, err
	}
	j.Config["prompts_cut"] = cut // cut at the beginning, as the harness does
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		return askMC(ctx, lm, items, heads, which, &set)
	}
	if set.f1 != nil {
		j.Finish = func(r *eval.Result) error {
			m, err := eval.OfDecisions(r, set.f1)
			r.Add("f1", "F1", eval.Higher, m)
			return err
		}
	}
	if set.single {
		j.Finish = func(r *eval.Result) error {
			r.Add("perplexity", "perplexity", eval.Lower, eval.MeanOf(r.Answers, "nll").Exp())
			return nil
		}
	}
	return j, nil
}

// tooLong counts the prompts that do not fit the context with their answers.
func tooLong(ctx context.Context, p *eval.Plan, list []eval.Continuation) (int, error) {
	n := 0
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if p.Count(c.Context+c.Text) > p.Context+1 {
			n++
		}
	}
	return n, nil
}

// load returns the questions and the pool of examples.
func (set *mcSet) load(ctx context.Context, p *eval.Plan) (items, pool []mcItem, err error) {
	if p.Data == "" {
		g := p.Rand("stand-in")
		for i := range p.Limited(standIns) {
			q := set.make(g)
			q.id = fmt.Sprint(i)
			items = append(items, q)
		}
		for range max(p.Shots, 0) * 4 {
			pool = append(pool, set.make(g))
		}
		return items, pool, nil
	}
	if items, err = set.read(ctx, p, set.test, p.Limit); err != nil || p.Shots <= 0 {
		return items, nil, err
	}
	if set.train == "" {
		pool, err = set.read(ctx, p, set.test, 0)
	} else {
		pool, err = set.read(ctx, p, set.train, 0)
	}
	if err == nil && len(pool) <= p.Shots {
		err = eval.BadSetting("%d examples are asked for, the set has %d to draw from", p.Shots, len(pool))
	}
	return items, pool, err
}

// shotsText is the first n solved examples in an order, excluding the question itself.
func shotsText(order []int, pool []mcItem, q *mcItem, n int) string {
	if n <= 0 {
		return ""
	}
	var b strings.Builder
	for _, i := range order {
		if pool[i].solved() == q.solved() {
			continue
		}
		b.WriteString(pool[i].solved() + "\n\n")
		if n--; n == 0 {
			break
		}
	}
	return b.String()
}

// askMC scores all endings of the questions in one call, so that shared prefixes are computed once.
func askMC(ctx context.Context, lm eval.LM, items []mcItem, heads []string, which []int,
	set *mcSet) ([]eval.Answer, error) {
	var reqs []eval.Continuation
	for _, w := range which {
		for k := range items[w].choices() {
			reqs = append(reqs, eval.Continuation{Context: heads[w] + items[w].context(k), Text: " " +
				items[w].ending(k)})
		}
	}
	scores, err := lm.Loglikelihood(ctx, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Answer, len(which))
	for i, w := range which {
		q := &items[w]
		n := q.choices()
		out[i] = q.score(scores[:n], set.single)
		if set.f1 != nil {
			if err := out[i].SetDetail(eval.Decision{Gold: q.gold, Said: likeliest(scores[:n])}); err != nil {
				return nil, err
			}
		}
		out[i].Doc = map[string]any{"context": reqs[0].Context, "endings": q.endings, "gold": q.gold,
			"loglikelihoods": logProbs(scores[:n])}
		scores, reqs = scores[n:], reqs[n:]
	}
	return out, nil
}

// score applies the harness's rules; the first of equal endings counts.
func (q *mcItem) score(scores []eval.Score, single bool) eval.Answer {
	if single {
		return eval.Answer{Values: map[string]float64{"acc": truth(scores[0].Greedy), "nll": -scores[0].LogProb}}
	}
	norm := 0
	per := func(k int) float64 { return scores[k].LogProb / float64(utf8.RuneCountInString(q.ending(k))) }
	for k := range scores {
		if per(k) > per(norm) {
			norm = k
		}
	}
	return eval.Answer{Values: map[string]float64{"acc": truth(likeliest(scores) == q.gold),
		"acc_norm": truth(norm == q.gold)}}
}

// likeliest is the first ending with the highest log-likelihood.
func likeliest(scores []eval.Score) int {
	best := 0
	for k := range scores {
		if scores[k].LogProb > scores[best].LogProb {
			best = k
		}
	}
	return best
}

func logProbs(scores []eval.Score) []float64 {
	out := make([]float64, len(scores))
	for i, s := range scores {
		out[i] = s.LogProb
	}
	return out
}
