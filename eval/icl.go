package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// iclTasks is many-shot classification under constrained decoding (the paper's Figure 6, after Bertsch et al. 2024): accuracy as
// the examples before the question grow to fill the context.
//
// The paper gives no prompts. Our choices are those of the public code for the protocol: "Question: …\nType: …\n==\n" for TREC,
// "query: … intent: …" for Banking-77, "utterance: … intent: …" for CLINC-150. Examples are drawn class by class in random order, so
// that each class comes once in every round; those of more shots begin with those of fewer.
func iclTasks() []Task {
	var out []Task
	for _, set := range iclSets {
		out = append(out, Task{
			Name: "icl_" + set.name, Group: "icl", Version: 2, Shots: -1, Doc: set.doc + ": accuracy over growing shots",
			Measures: []Measure{{"acc", higher}},
			Settings: []Setting{
				{"shots", []int{0}, "numbers of examples; 0: doubling from one of each class until the context is full"},
				{"items", 100, "questions for each number of examples"},
			},
			Prepare: func(p *Plan) (*Job, error) { return prepareICL(p, set) },
		})
	}
	return out
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

// options are the labels as they stand in text, with the end of their line: without it "cancel" could never be chosen beside "cancel
// reservation", since nothing would tell where it ends.
func (t *iclTask) options() []string {
	out := make([]string, len(t.labels))
	for i, l := range t.labels {
		out[i] = " " + l + "\n"
	}
	return out
}

// fit is how many of the examples the context has room for, besides any question and label.
func (t *iclTask) fit(p *Plan) (int, error) {
	label, question := 0, 0
	for _, o := range t.options() {
		label = max(label, p.count(o))
	}
	for _, x := range t.test {
		question = max(question, p.count(t.question(x)))
	}
	room := question + label
	for n, x := range t.train {
		if room += p.count(t.example(x)); room > p.context {
			if n == 0 {
				return 0, fmt.Errorf("a question and one example have %d tokens, the context is %d", room, p.context)
			}
			return n, nil
		}
	}
	return len(t.train), nil
}

// rounds orders items so that each class comes once in every round, in random order, as long as it has items left.
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

// shotCounts are the numbers of examples that are tried.
func (t *iclTask) shotCounts(p *Plan) ([]int, error) {
	fit, err := t.fit(p)
	if err != nil {
		return nil, err
	}
	asked := p.Ints("shots")
	if !slices.Equal(asked, []int{0}) {
		for _, n := range asked {
			if n < 1 || n > fit {
				return nil, fmt.Errorf("shots: %d is asked for, there is room for 1 to %d", n, fit)
			}
		}
		return asked, nil
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

func prepareICL(p *Plan, set iclSet) (*Job, error) {
	t, err := set.load(p)
	if err != nil {
		return nil, err
	}
	counts, err := t.shotCounts(p)
	if err != nil {
		return nil, err
	}
	j := &Job{Chunk: len(t.test), Chance: 1 / float64(len(t.labels))}
	j.Config = map[string]any{"source": p.source(set.test), "classes": len(t.labels), "shot_counts": counts}
	var head strings.Builder
	var prompts []string
	have := 0
	for _, n := range counts {
		for ; have < n; have++ {
			head.WriteString(t.example(t.train[have]))
		}
		for i, x := range t.test {
			j.IDs = append(j.IDs, fmt.Sprintf("shots=%d %d", n, i))
			prompts = append(prompts, head.String()+t.question(x))
			j.Gold = append(j.Gold, Continuation{prompts[len(prompts)-1], " " + x.label})
		}
	}
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		return t.ask(ctx, lm, prompts, which, func(w int) map[string]float64 {
			return map[string]float64{"shots": float64(counts[w/len(t.test)])}
		})
	}
	j.Finish = func(r *Result) error { return finishICL(r, counts) }
	return j, nil
}

// ask labels the questions; the w-th prompt asks for test item w mod len(test).
func (t *iclTask) ask(ctx context.Context, lm LM, prompts []string, which []int, values func(w int) map[string]float64) ([]Answer, error) {
	reqs := make([]Choice, len(which))
	options := t.options()
	for i, w := range which {
		reqs[i] = Choice{prompts[w], options}
	}
	picks, err := choose(ctx, lm, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]Answer, len(which))
	for i, w := range which {
		x, said := t.test[w%len(t.test)], ""
		if picks[i] >= 0 {
			said = t.labels[picks[i]]
		}
		v := values(w)
		v["acc"] = truth(said == x.label)
		out[i] = Answer{Values: v, Cluster: fmt.Sprint(w % len(t.test)), Doc: map[string]any{"text": x.text, "wanted": x.label, "answer": said}}
	}
	return out, nil
}

// ICLDetail is what the curve of a many-shot task is drawn from.
type ICLDetail struct {
	Shots []int  `json:"shots"`
	Acc   []Mean `json:"acc"`
}

func finishICL(r *Result, counts []int) error {
	d := ICLDetail{Shots: counts}
	for _, n := range counts {
		d.Acc = append(d.Acc, meanOf(where(r.Answers, func(a *Answer) bool { return a.Values["shots"] == float64(n) }), "acc"))
	}
	for i, m := range d.Acc {
		r.Add(fmt.Sprintf("acc_%dshot", counts[i]), higher, m)
	}
	return r.SetDetail(d)
}
