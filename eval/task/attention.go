package task

import (
	"context"
	"fmt"

	"antiphase/data"
	"antiphase/eval"
)

// Attention of the token that must answer (the paper's Table 3 and Figure 1).
//
// The paper's formula is not public; it averages over all heads and layers. Our choices: the query is the token that
// must produce the answer's first digit; each head's row is divided by the sum of its magnitudes, so that heads count
// equally whatever their λ. For a differential head the applied row A1 − λA2 is summed by magnitude and with its sign,
// and A1 and A2 are shown separately; all three also weighted by values, ‖a·v‖. The model also answers each prompt, so
// that right and wrong retrievals can be separated.
func init() {
	register(40, eval.Task{
		Name: "attention", Version: 3, Shots: -1, Inside: true,
		Doc: "attention to the answer of a needle prompt and to everything else, by depth, layer and head",
		Measures: []eval.Measure{
			{Name: "answer", Better: eval.Higher, Label: "attention to the answer, %"},
			{Name: "noise", Better: eval.Lower, Label: "attention noise, %"},
			{Name: "signed_answer", Label: "answer, with its sign, %"},
			{Name: "signed_noise", Label: "noise, with its sign, %"},
			{Name: "a1_answer", Label: "answer, map A1, %"},
			{Name: "a1_noise", Label: "noise, map A1, %"},
			{Name: "a2_answer", Label: "answer, map A2, %"},
			{Name: "a2_noise", Label: "noise, map A2, %"},
			{Name: "value_answer", Label: "answer, weighted by values, %"},
			{Name: "value_noise", Label: "noise, weighted by values, %"},
			{Name: "value_a1_answer", Label: "answer, map A1, weighted by values, %"},
			{Name: "value_a1_noise", Label: "noise, map A1, weighted by values, %"},
			{Name: "value_a2_answer", Label: "answer, map A2, weighted by values, %"},
			{Name: "value_a2_noise", Label: "noise, map A2, weighted by values, %"},
			{Name: "bound", Better: eval.Higher, Label: "number beside its key, %"},
		},
		Settings: needleSettings(4, 1, 5),
		Valid:    validNeedle,
		Prepare:  prepareAttention,
	})
}

// Gaze is one token's attention by layer and head, and λ by layer if there is one.
type Gaze struct {
	Heads  [][]HeadGaze `json:"heads"`
	Lambda []float64    `json:"lambda,omitempty"`
}

// HeadGaze is one head's row in shares of its magnitude. For a plain head A1 is the applied row, and there is no A2.
type HeadGaze struct {
	Magnitude Segments `json:"magnitude"` // Σ|a| over each segment; the five sum to 1
	Signed    Segments `json:"signed"`    // Σa
	A1        Segments `json:"a1"`
	A2        Segments `json:"a2,omitzero"`
	Value     Segments `json:"value"` // Σ‖a·v‖ of the applied row, then of A1 and A2
	ValueA1   Segments `json:"value_a1"`
	ValueA2   Segments `json:"value_a2,omitzero"`
}

// gazeKinds are the ways in which a head's row is summed.
var gazeKinds = []struct {
	prefix string
	two    bool // only for heads with two maps
	of     func(h *HeadGaze) *Segments
}{
	{"", false, func(h *HeadGaze) *Segments { return &h.Magnitude }},
	{"signed_", true, func(h *HeadGaze) *Segments { return &h.Signed }},
	{"a1_", true, func(h *HeadGaze) *Segments { return &h.A1 }},
	{"a2_", true, func(h *HeadGaze) *Segments { return &h.A2 }},
	{"value_", false, func(h *HeadGaze) *Segments { return &h.Value }},
	{"value_a1_", true, func(h *HeadGaze) *Segments { return &h.ValueA1 }},
	{"value_a2_", true, func(h *HeadGaze) *Segments { return &h.ValueA2 }},
}

// mean is the gaze over all heads.
func (g *Gaze) mean() HeadGaze {
	var out HeadGaze
	n := 0
	for _, heads := range g.Heads {
		n += len(heads)
	}
	for _, heads := range g.Heads {
		for h := range heads {
			out.add(&heads[h], 1/float64(n))
		}
	}
	return out
}

func (h *HeadGaze) add(o *HeadGaze, w float64) {
	for _, k := range gazeKinds {
		k.of(h).add(*k.of(o), w)
	}
}

// AttentionDetail is the data of the figures of the task attention.
type AttentionDetail struct {
	Lengths []int             `json:"lengths"`
	Depths  []float64         `json:"depths"`
	Results []AttentionResult `json:"results"`          // by length
	Lambda  []float64         `json:"lambda,omitempty"` // mean by layer; empty without λ
}

// AttentionResult is the mean over prompts of one length.
type AttentionResult struct {
	ByDepth []HeadGaze   `json:"by_depth"` // over all heads
	ByHead  [][]HeadGaze `json:"by_head"`  // [layer][head], over all depths
	Maps    int          `json:"maps"`     // softmax maps of a head
	Right   *Outcome     `json:"right,omitempty"`
	Wrong   *Outcome     `json:"wrong,omitempty"`
}

// Outcome is the mean over the prompts whose answer was right, or wrong.
type Outcome struct {
	N    int      `json:"n"`
	Gaze HeadGaze `json:"gaze"` // over all heads
}

func prepareAttention(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	cases, j, err := needleGrid(ctx, p)
	if err != nil {
		return nil, err
	}
	prompts := make([]string, len(cases))
	for i, c := range cases {
		prompts[i] = c.Prompt
	}
	j.Chunk, j.Config["text_hash"] = 4, eval.HashText(prompts...)
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		out, part := make([]eval.Answer, len(which)), make([]data.Needle, len(which))
		for i, w := range which {
			part[i] = cases[w].Needle
		}
		for i, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			g, maps, err := look(s, cases[w].Needle)
			if err != nil {
				return nil, err
			}
			out[i] = eval.Answer{Values: map[string]float64{},
				Doc: map[string]any{"prompt": cases[w].Prompt, "wanted": part[i].Answers}}
			mean := g.mean()
			for _, kind := range gazeKinds {
				if maps == 2 || !kind.two {
					out[i].Values[kind.prefix+"answer"], out[i].Values[kind.prefix+"noise"] = kind.of(&mean).Answer,
						kind.of(&mean).Noise()
				}
			}
			if err := out[i].SetDetail(g); err != nil {
				return nil, err
			}
		}
		texts, err := answerFreely(ctx, lm, wordingOf(p), part)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i].Values["bound"], out[i].Doc["answer"] = boundHits(part[i], texts[i]), texts[i]
		}
		return out, nil
	}
	d := AttentionDetail{Lengths: needleLengths(p), Depths: p.Floats("depths")}
	j.Finish = func(r *eval.Result) error { return finishAttention(r, cases, d) }
	return j, nil
}

func finishAttention(r *eval.Result, cases []needleCase, d AttentionDetail) error {
	gazes, err := eval.Details[Gaze](r.Answers)
	if err != nil {
		return err
	}
	_, two := r.Metric("a2_answer")
	for length := range d.Lengths {
		res := AttentionResult{ByDepth: make([]HeadGaze, len(d.Depths)), Maps: 1}
		if two {
			res.Maps = 2
		}
		count, all := make([]float64, len(d.Depths)), 0.0
		for _, c := range cases {
			if c.length == length {
				count[c.depth]++
				all++
			}
		}
		for i, c := range cases {
			if c.length != length {
				continue
			}
			mean := gazes[i].mean()
			res.ByDepth[c.depth].add(&mean, 1/count[c.depth])
			res.outcome(r.Answers[i].Values["bound"] == 1).take(&mean)
			for l, heads := range gazes[i].Heads {
				if l == len(res.ByHead) {
					res.ByHead = append(res.ByHead, make([]HeadGaze, len(heads)))
				}
				if len(heads) != len(res.ByHead[l]) {
					return fmt.Errorf("sample %s has %d heads in layer %d, others %d", r.Answers[i].ID, len(heads), l,
						len(res.ByHead[l]))
				}
				for h := range heads {
					res.ByHead[l][h].add(&heads[h], 1/all)
				}
			}
		}
		res.Right.addTo(r, "right", "when right", length, d.Lengths)
		res.Wrong.addTo(r, "wrong", "when wrong", length, d.Lengths)
		d.Results = append(d.Results, res)
	}
	for _, g := range gazes {
		for l, x := range g.Lambda {
			if l == len(d.Lambda) {
				d.Lambda = append(d.Lambda, 0)
			}
			d.Lambda[l] += x / float64(len(gazes))
		}
	}
	return r.SetDetail(d)
}
