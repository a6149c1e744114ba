package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// cutLists calls do for every list inside v with a function that shortens it.
func cutLists(v any, path string, do func(path string, n int, set func(n int))) {
	visit := func(key string, x any, set func(any)) {
		if list, ok := x.([]any); ok && len(list) > 0 {
			do(key, len(list), func(n int) { set(list[:n]) })
		}
		cutLists(x, key, do)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			visit(path+"."+k, x, func(to any) { v[k] = to })
		}
	case []any:
		for i, x := range v {
			visit(fmt.Sprintf("%s[%d]", path, i), x, func(to any) { v[i] = to })
		}
	}
}

// A detail with any one of its lists cut short, of either model, gives a page or an error, never a fault.
func TestCutDetails(t *testing.T) {
	results := func(x float64) []*eval.Result {
		one := eval.Mean{Value: x, N: 1}
		curve := task.NoiseCurve{Kind: "typos", Label: "typos", Doses: []float64{0, 1}, Scores: []eval.Mean{one, one}}
		return append(fakeResults(x), made("noise", "", "area", "area, %", 4, 1,
			task.NoiseDetail{Curves: []task.NoiseCurve{curve, curve}}))
	}
	cuts := 0
	for i := range results(0) {
		for which := range 2 {
			pair := []*eval.Result{results(0)[i], results(1)[i]}
			p := &Page{Evaluation: eval.Assemble([]*eval.Cell{cellOf(eval.Model{Name: "A", Hash: "a"}, 0, pair[0]),
				cellOf(eval.Model{Name: "B", Hash: "b"}, 0, pair[1])})}
			r := &p.Evaluation.Models[which].Results[0]
			var v any
			if len(r.Detail) == 0 || json.Unmarshal(r.Detail, &v) != nil {
				continue
			}
			cutLists(v, r.Task, func(path string, n int, set func(n int)) {
				for _, k := range []int{0, n - 1} {
					set(k)
					cuts++
					r.Detail, _ = json.Marshal(v) // of JSON
					func() {
						defer func() {
							if fault := recover(); fault != nil {
								t.Errorf("%s of model %d cut to %d of %d: %v", path, which, k, n, fault)
							}
						}()
						_, _ = allSections(p)
						_ = p.Table(false)
					}()
				}
				set(n)
			})
		}
	}
	if cuts < 100 {
		t.Errorf("%d cuts", cuts)
	}
}
