package eval

import (
	"context"
	"fmt"
	"slices"
)

// attentionTasks is where the token that must answer looks (the paper's Table 3 and Figure 1).
func attentionTasks() []Task {
	return []Task{{
		Name: "attention", Version: 1, Shots: -1, Inside: true,
		Doc:      "attention to the answer of a needle prompt and to everything else, by depth, layer and head",
		Measures: []Measure{{"answer", higher}, {"noise", lower}, {"signed_answer", neither}, {"signed_noise", neither}},
		Settings: needleSettings(4, 1, 5),
		Prepare:  prepareAttention,
	}}
}

// AttentionDetail is what the figures of the task attention are drawn from.
type AttentionDetail struct {
	Lengths []int             `json:"lengths"`
	Results []AttentionResult `json:"results"`          // by length
	Lambda  []float64         `json:"lambda,omitempty"` // mean by layer; empty without λ
}

func prepareAttention(p *Plan) (*Job, error) {
	cases, ids, err := p.needleGrid()
	if err != nil {
		return nil, err
	}
	prompts := make([]string, len(cases))
	for i, c := range cases {
		prompts[i] = c.Prompt
	}
	j := &Job{IDs: ids, Chunk: 4, Config: map[string]any{"text_hash": textHash(prompts...)}}
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		s := lm.(*Subject)
		out := make([]Answer, len(which))
		for i, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			g, err := s.look(cases[w].Needle)
			if err != nil {
				return nil, err
			}
			out[i] = g.answer()
			out[i].Values["length"], out[i].Values["depth"] = float64(cases[w].length), cases[w].depth
			for l, x := range s.Model.Lambdas(nil) {
				out[i].Values[fmt.Sprintf("lambda.%d", l)] = x
			}
			out[i].Doc = map[string]any{"prompt": cases[w].Prompt}
		}
		return out, nil
	}
	lengths, depths := p.needleLengths(), p.Floats("depths")
	j.Finish = func(r *Result) error { return finishAttention(r, lengths, depths) }
	return j, nil
}

func finishAttention(r *Result, lengths []int, depths []float64) error {
	d := AttentionDetail{Lengths: lengths}
	for _, n := range lengths {
		sum := newAttentionSum(depths)
		for i := range r.Answers {
			if a := &r.Answers[i]; a.Values["length"] == float64(n) {
				sum.add(slices.Index(depths, a.Values["depth"]), a.gaze())
			}
		}
		d.Results = append(d.Results, sum.result())
	}
	for l := 0; meanOf(r.Answers, fmt.Sprintf("lambda.%d", l)).N > 0; l++ {
		d.Lambda = append(d.Lambda, meanOf(r.Answers, fmt.Sprintf("lambda.%d", l)).Value)
	}
	return r.SetDetail(d)
}

// answer keeps a gaze as values: the shares that are measured, weighted by the sums they are shares of, and every head's sums.
func (g gaze) answer() Answer {
	a := Answer{Values: map[string]float64{}, Weights: map[string]float64{}}
	signed, absolute := total(g.signed), total(g.absolute)
	share := func(name string, x, of float64) {
		if of != 0 { // with sign it is negative where λ is beyond 1
			a.Values[name], a.Weights[name] = x/of, of
		}
	}
	share("answer", absolute.Answer, absolute.total())
	share("noise", absolute.Noise(), absolute.total())
	share("signed_answer", signed.Answer, signed.total())
	share("signed_noise", signed.Noise(), signed.total())
	for l := range g.signed {
		for h := range g.signed[l] {
			for k, x := range g.signed[l][h].list() {
				a.Values[gazeKey(l, h, k, "signed")] = x
				a.Values[gazeKey(l, h, k, "absolute")] = g.absolute[l][h].list()[k]
			}
		}
	}
	return a
}

func gazeKey(layer, head, segment int, kind string) string {
	return fmt.Sprintf("%s.%d.%d.%d", kind, layer, head, segment)
}

// gaze reads what gaze.answer kept.
func (a *Answer) gaze() (g gaze) {
	read := func(kind string) (out [][]Segments) {
		for l := 0; ; l++ {
			var heads []Segments
			for h := 0; ; h++ {
				if _, ok := a.Values[gazeKey(l, h, 0, kind)]; !ok {
					break
				}
				var s Segments
				for k, to := range []*float64{&s.BOS, &s.Before, &s.Answer, &s.After, &s.Query} {
					*to = a.Values[gazeKey(l, h, k, kind)]
				}
				heads = append(heads, s)
			}
			if heads == nil {
				return out
			}
			out = append(out, heads)
		}
	}
	return gaze{read("signed"), read("absolute")}
}
