package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// orderTasks measure how much the order of the same examples matters (the paper's Figures 7 and 11): best minus worst accuracy over
// seeds, with the examples in random order and alternating by class.
func orderTasks() []Task {
	var out []Task
	for _, set := range iclSets {
		out = append(out, Task{
			Name: "icl_order_" + set.name, Group: "icl_order", Version: 2, Shots: -1, Doc: set.doc + ": spread over orders of the examples",
			Measures: []Measure{{"acc", higher}},
			Settings: []Setting{
				{"shots", 0, "examples; 0: half of what the context has room for"},
				{"items", 50, "questions for each order"},
				{"seeds", 10, "orders of each kind; the paper takes 10 random and 30 alternating ones"},
			},
			Prepare: func(p *Plan) (*Job, error) { return prepareOrder(p, set) },
		})
	}
	return out
}

// arrangements are the kinds of order, and how a seed makes one of them.
var arrangements = []struct {
	name    string
	arrange func(g *rand.Rand, shots []iclItem, labels []string) []iclItem
}{
	{"random", func(g *rand.Rand, shots []iclItem, _ []string) []iclItem {
		out := make([]iclItem, len(shots))
		for i, k := range g.Perm(len(shots)) {
			out[i] = shots[k]
		}
		return out
	}},
	{"alternating", alternate},
}

// alternate goes through the classes in one order over and over; which example of a class comes when is the seed's.
func alternate(g *rand.Rand, shots []iclItem, labels []string) []iclItem {
	by := map[string][]iclItem{}
	for _, i := range g.Perm(len(shots)) {
		by[shots[i].label] = append(by[shots[i].label], shots[i])
	}
	cycle := g.Perm(len(labels))
	var out []iclItem
	for len(out) < len(shots) {
		for _, k := range cycle {
			if list := by[labels[k]]; len(list) > 0 {
				out = append(out, list[0])
				by[labels[k]] = list[1:]
			}
		}
	}
	return out
}

func prepareOrder(p *Plan, set iclSet) (*Job, error) {
	t, err := set.load(p)
	if err != nil {
		return nil, err
	}
	fit, err := t.fit(p)
	if err != nil {
		return nil, err
	}
	shots, seeds := p.Int("shots"), p.Int("seeds")
	if shots == 0 {
		shots = max(fit/2, 1)
	}
	if shots < 1 || shots > fit || seeds < 2 {
		return nil, fmt.Errorf("shots is %d, there is room for 1 to %d; seeds is %d, must be 2 or more", shots, fit, seeds)
	}
	j := &Job{Chunk: len(t.test), Chance: 1 / float64(len(t.labels))}
	j.Config = map[string]any{"source": p.source(set.test), "classes": len(t.labels), "used_shots": shots}
	var prompts []string
	for _, kind := range arrangements {
		for seed := range seeds {
			var head strings.Builder
			for _, x := range kind.arrange(rand.New(rand.NewPCG(p.Seed, uint64(seed))), t.train[:shots], t.labels) {
				head.WriteString(t.example(x))
			}
			for i, x := range t.test {
				j.IDs = append(j.IDs, fmt.Sprintf("%s seed=%d %d", kind.name, seed, i))
				prompts = append(prompts, head.String()+t.question(x))
				j.Gold = append(j.Gold, Continuation{prompts[len(prompts)-1], " " + x.label})
			}
		}
	}
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		return t.ask(ctx, lm, prompts, which, func(w int) map[string]float64 {
			run := w / len(t.test)
			return map[string]float64{"kind": float64(run / seeds), "seed": float64(run % seeds)}
		})
	}
	j.Finish = func(r *Result) error { return finishOrder(r, shots, seeds) }
	return j, nil
}

// OrderDetail is what the box plots of order robustness are drawn from.
type OrderDetail struct {
	Shots int                  `json:"shots"`
	Acc   map[string][]float64 `json:"acc"` // kind of order → accuracy of each seed
}

func finishOrder(r *Result, shots, seeds int) error {
	d := OrderDetail{Shots: shots, Acc: map[string][]float64{}}
	for k, kind := range arrangements {
		for seed := range seeds {
			one := where(r.Answers, func(a *Answer) bool { return a.Values["kind"] == float64(k) && a.Values["seed"] == float64(seed) })
			d.Acc[kind.name] = append(d.Acc[kind.name], meanOf(one, "acc").Value)
		}
		list := d.Acc[kind.name]
		r.Add("spread_"+kind.name, lower, Mean{Value: slices.Max(list) - slices.Min(list), N: seeds})
	}
	return r.SetDetail(d)
}
