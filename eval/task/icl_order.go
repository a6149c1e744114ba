package task

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"antiphase/eval"
)

// Sensitivity to the order of the same examples (the paper's Figures 7 and 11): best minus worst accuracy over seeds,
// with the examples in random order and alternating by class.
func init() {
	for i, set := range iclSets {
		registerAt(95, i, eval.Task{
			Name: "icl_order_" + set.name, Group: "icl_order", Version: 3, Shots: -1, Doc: set.doc +
				": spread over orders of the examples",
			Measures: []eval.Measure{{Name: "acc", Better: eval.Higher, Label: "accuracy over all orders, %"}},
			Settings: []eval.Setting{
				{Key: "shots", Default: 0, Rule: eval.AtLeast(0),
					Doc: "examples; 0: half of what the context has room for"},
				{Key: "items", Default: 50, Rule: eval.AtLeast(1), Doc: "questions for each order"},
				{Key: "seeds", Default: 10, Rule: eval.AtLeast(2),
					Doc: "orders of each kind; the paper takes 10 random and 30 alternating ones"},
			},
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareOrder(ctx, p, set) },
		})
	}
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

// alternate cycles through the classes in one order; the seed decides which example of a class comes when.
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

func prepareOrder(ctx context.Context, p *eval.Plan, set iclSet) (*eval.Job, error) {
	t, err := set.load(ctx, p)
	if err != nil {
		return nil, err
	}
	fit, err := t.fit(ctx, p)
	if err != nil {
		return nil, err
	}
	shots, seeds := p.Int("shots"), p.Int("seeds")
	if shots == 0 {
		shots = max(fit/2, 1)
	}
	if shots > fit {
		return nil, eval.BadSetting("shots is %d, there is room for 1 to %d", shots, fit)
	}
	j := &eval.Job{Chunk: len(t.test), Floors: eval.Chance(1/float64(len(t.labels)), "acc")}
	j.Config = map[string]any{"source": p.Source(set.test), "classes": len(t.labels), "used_shots": shots}
	runs := len(arrangements) * seeds
	slots, err := p.Grid(runs, len(t.test), p.Context*shots/fit)
	if err != nil {
		return nil, err
	}
	var asked []iclAsked
	head, headOf := "", -1 // samples of a run stay together
	for _, s := range slots {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.Cell != headOf {
			head, headOf = t.arranged(s.Cell/seeds, p.Seed, uint64(s.Cell%seeds), shots), s.Cell
		}
		asked = append(asked, iclAsked{run: s.Cell, item: s.K, prompt: head + t.question(t.test[s.K])})
		j.IDs = append(j.IDs, fmt.Sprintf("%s seed=%d %d", arrangements[s.Cell/seeds].name, s.Cell%seeds, s.K))
	}
	t.put(j, asked)
	j.Finish = func(r *eval.Result) error { return finishOrder(r, asked, shots, seeds, p.Seed) }
	return j, nil
}

// arranged is the first examples in an order of a kind.
func (t *iclTask) arranged(kind int, seed, order uint64, shots int) string {
	var head strings.Builder
	for _, x := range arrangements[kind].arrange(rand.New(rand.NewPCG(seed, order)), t.train[:shots], t.labels) {
		head.WriteString(t.example(x))
	}
	return head.String()
}

// OrderDetail is the data of the box plots of order robustness.
type OrderDetail struct {
	Shots int                  `json:"shots"`
	Acc   map[string][]float64 `json:"acc"` // kind of order → accuracy of each seed
}

func finishOrder(r *eval.Result, asked []iclAsked, shots, seeds int, seed uint64) error {
	d := OrderDetail{Shots: shots, Acc: map[string][]float64{}}
	for k, kind := range arrangements {
		var table [][]float64 // right or wrong, [order][item]
		for s := range seeds {
			var row []float64
			for i := range r.Answers {
				if asked[i].run == k*seeds+s {
					row = append(row, r.Answers[i].Values["acc"])
				}
			}
			if len(row) > 0 {
				table = append(table, row)
			}
		}
		if len(table) < 2 {
			continue // a limit left fewer than two orders, which have no spread
		}
		list := orderMeans(table, nil)
		d.Acc[kind.name] = list
		spread := eval.Mean{Value: slices.Max(list) - slices.Min(list), N: len(list)}
		spread.StdErr = spreadError(table, seed)
		r.Add("spread_"+kind.name, "best minus worst, "+kind.name+" orders, %", eval.Lower, spread)
	}
	return r.SetDetail(d)
}

// orderMeans is the accuracy of each order over the items drawn; nil: all.
func orderMeans(table [][]float64, items []int) []float64 {
	out := make([]float64, len(table))
	for o, row := range table {
		if items == nil {
			for _, x := range row {
				out[o] += x / float64(len(row))
			}
			continue
		}
		for _, i := range items {
			out[o] += row[i%len(row)] / float64(len(items))
		}
	}
	return out
}

// spreadError is the standard error of best minus worst by a bootstrap over items; the orders are fixed.
func spreadError(table [][]float64, seed uint64) float64 {
	const draws = 200
	g := rand.New(rand.NewPCG(seed, 0x0d))
	n := 0
	for _, row := range table {
		n = max(n, len(row))
	}
	sum, square := 0.0, 0.0
	items := make([]int, n)
	for range draws {
		for i := range items {
			items[i] = g.IntN(n)
		}
		list := orderMeans(table, items)
		x := slices.Max(list) - slices.Min(list)
		sum, square = sum+x/draws, square+x*x/draws
	}
	return math.Sqrt(max(0, square-sum*sum))
}
