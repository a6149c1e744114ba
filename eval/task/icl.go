package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"antiphase/eval"
)

// Many-shot classification under constrained decoding (the paper's Figure 6, after Bertsch et al. 2024): accuracy as
// the examples before the question grow to fill the context.
//
// The paper gives no prompts. Ours are those of the protocol's public code: "Question: …\nType: …\n==\n" for TREC,
// "query: … intent: …" for Banking-77, "utterance: … intent: …" for CLINC-150. Examples are drawn class by class in
// random order, so that each class occurs once in every round; those of fewer shots are a prefix of those of more.
func init() {
	for i, set := range iclSets {
		registerAt(90, i, eval.Task{
			Name: "icl_" + set.name, Group: "icl", Version: 3, Shots: -1, Doc: set.doc +
				": accuracy over growing shots",
			Measures: []eval.Measure{{Name: "acc", Better: eval.Higher, Label: "accuracy over all shots, %"}},
			Settings: []eval.Setting{
				{Key: "shots", Default: []int{0}, Rule: eval.AtLeast(0),
					Doc: "numbers of examples; 0: doubling from one of each class until the context is full"},
				{Key: "items", Default: 100, Rule: eval.AtLeast(1), Doc: "questions for each number of examples"},
			},
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareICL(ctx, p, set) },
		})
	}
}

// iclItem is a text with its label.
type iclItem struct{ text, label string }

// iclTask is a set with its questions drawn.
type iclTask struct {
	set    iclSet
	labels []string
	train  []iclItem // in the order in which they become examples
	test   []iclItem
}

// example is a solved text, question one that is to be labelled.
func (t *iclTask) example(x iclItem) string {
	return t.set.x + x.text + "\n" + t.set.y + " " + x.label + t.set.between
}
func (t *iclTask) question(x iclItem) string { return t.set.x + x.text + "\n" + t.set.y }

// options are the labels including the line break: without it "cancel" could never be chosen next to "cancel
// reservation", because nothing would mark its end.
func (t *iclTask) options() []string {
	out := make([]string, len(t.labels))
	for i, l := range t.labels {
		out[i] = " " + l + "\n"
	}
	return out
}

// fit is the number of examples that fit the context besides any question and label.
func (t *iclTask) fit(ctx context.Context, p *eval.Plan) (int, error) {
	label, question := 0, 0
	for _, o := range t.options() {
		label = max(label, p.Count(o))
	}
	for _, x := range t.test {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		question = max(question, p.Count(t.question(x)))
	}
	room := question + label
	for n, x := range t.train {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if room += p.Count(t.example(x)); room > p.Context {
			if n == 0 {
				return 0, eval.BadSetting("a question and one example have %d tokens, the context is %d",
					room, p.Context)
			}
			return n, nil
		}
	}
	return len(t.train), nil
}

// rounds orders items so that each class occurs once in every round, in random order, as long as it has items left.
func rounds(g *rand.Rand, items []iclItem, labels []string) []iclItem {
	by := map[string][]iclItem{}
	for _, i := range g.Perm(len(items)) {
		by[items[i].label] = append(by[items[i].label], items[i])
	}
	out := make([]iclItem, 0, len(items))
	for len(out) < len(items) {
		for _, k := range g.Perm(len(labels)) {
			if list := by[labels[k]]; len(list) > 0 {
				out = append(out, list[0])
				by[labels[k]] = list[1:]
			}
		}
	}
	return out
}

// shotCounts are the numbers of examples to try, ascending: prompts grow from one to the next.
func (t *iclTask) shotCounts(ctx context.Context, p *eval.Plan) ([]int, error) {
	fit, err := t.fit(ctx, p)
	if err != nil {
		return nil, err
	}
	asked := p.Ints("shots")
	if !slices.Equal(asked, []int{0}) {
		for _, n := range asked {
			if n < 1 || n > fit {
				return nil, eval.BadSetting("shots: %d is asked for, there is room for 1 to %d", n, fit)
			}
		}
		return slices.Sorted(slices.Values(asked)), nil
	}
	classes := len(t.labels)
	if fit < classes {
		return slices.Compact([]int{max(fit/2, 1), fit}), nil
	}
	var out []int
	for n := classes; n < fit; n *= 2 {
		out = append(out, n)
	}
	return append(out, fit), nil
}

func prepareICL(ctx context.Context, p *eval.Plan, set iclSet) (*eval.Job, error) {
	t, err := set.load(ctx, p)
	if err != nil {
		return nil, err
	}
	counts, err := t.shotCounts(ctx, p)
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: len(t.test), Floors: eval.Chance(1/float64(len(t.labels)), "acc")}
	j.Config = map[string]any{"source": p.Source(set.test), "classes": len(t.labels), "shot_counts": counts}
	slots, err := p.Grid(len(counts), len(t.test), p.Context)
	if err != nil {
		return nil, err
	}
	var head strings.Builder
	var asked []iclAsked
	have := 0
	for _, s := range slots {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for ; have < counts[s.Cell]; have++ {
			head.WriteString(t.example(t.train[have]))
		}
		asked = append(asked, iclAsked{run: s.Cell, item: s.K, prompt: head.String() + t.question(t.test[s.K])})
		j.IDs = append(j.IDs, fmt.Sprintf("shots=%d %d", counts[s.Cell], s.K))
	}
	t.put(j, asked)
	for _, n := range counts {
		j.Floors.Set(fmt.Sprintf("acc_%dshot", n), "chance", 1/float64(len(t.labels)))
	}
	j.Finish = func(r *eval.Result) error { return finishICL(r, asked, counts) }
	return j, nil
}

// iclAsked is one question: a test item under a run, which is a number of examples or an order of them.
type iclAsked struct {
	run, item int
	prompt    string
}

// put makes a job ask the questions.
func (t *iclTask) put(j *eval.Job, asked []iclAsked) {
	for _, q := range asked {
		j.Gold = append(j.Gold, eval.Continuation{Context: q.prompt, Text: " " + t.test[q.item].label})
	}
	options := t.options()
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		reqs := make([]eval.Choice, len(which))
		for i, w := range which {
			reqs[i] = eval.Choice{Prompt: asked[w].prompt, Options: options}
		}
		picks, err := eval.Choose(ctx, lm, reqs)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			x, said := t.test[asked[w].item], ""
			if picks[i] >= 0 {
				said = t.labels[picks[i]]
			}
			out[i] = eval.Answer{Values: map[string]float64{"acc": truth(said == x.label)},
				Cluster: fmt.Sprint(asked[w].item),
				Doc:     map[string]any{"text": x.text, "wanted": x.label, "answer": said}}
		}
		return out, nil
	}
}

// ICLDetail is the data of the curve of a many-shot task.
type ICLDetail struct {
	Shots  []int       `json:"shots"`
	Acc    []eval.Mean `json:"acc"`
	Chance float64     `json:"chance"`
}

func finishICL(r *eval.Result, asked []iclAsked, counts []int) error {
	d := ICLDetail{Shots: counts}
	if classes, ok := r.Config["classes"].(int); ok {
		d.Chance = 1 / float64(classes)
	}
	for k, n := range counts {
		m := eval.MeanOf(r.Where(func(i int) bool { return asked[i].run == k }), "acc")
		d.Acc = append(d.Acc, m)
		r.Add(fmt.Sprintf("acc_%dshot", n), fmt.Sprintf("accuracy after %d examples, %%", n), eval.Higher, m)
	}
	return r.SetDetail(d)
}
