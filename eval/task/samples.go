package task

import (
	"context"
	"math/rand/v2"

	"antiphase/data"
	"antiphase/eval"
)

// The model's continuations of a few prompts, for reading.
func init() {
	register(46, eval.Task{
		Name: "samples", Version: 1, Shots: -1, Slow: true,
		Doc:      "greedy continuations of a few prompts, to be read",
		Measures: []eval.Measure{{Name: "bytes", Label: "length of the continuation, bytes"}},
		Settings: []eval.Setting{
			{Key: "prompts", Default: []string{}, Doc: "separated by commas; empty: a few of our own"},
			{Key: "tokens", Default: 48, Rule: eval.AtLeast(1), Doc: "of each continuation"},
		},
		Prepare: prepareSamples,
	})
}

// Sample is a prompt and its continuation.
type Sample struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

func prepareSamples(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	prompts := p.Texts("prompts")
	if len(prompts) == 0 {
		g := rand.New(rand.NewPCG(p.Seed, 22))
		code := data.NewNeedle(g, data.NeedleOptions{Needles: 2, Queries: 2, Depth: 0.3, Bytes: 400})
		prompts = []string{"The old ", code.Prompt, data.Prose(g, 120)}
	}
	prompts = prompts[:p.Limited(len(prompts))]
	j := eval.NewJob(prompts, len(prompts))
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		reqs := make([]eval.Generation, len(which))
		for i, w := range which {
			reqs[i] = eval.Generation{Prompt: prompts[w], MaxTokens: p.Int("tokens")}
		}
		texts, err := lm.GenerateUntil(ctx, reqs)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			out[i].Values = map[string]float64{"bytes": float64(len(texts[i]))}
			if err := out[i].SetDetail(Sample{prompts[w], texts[i]}); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	j.Finish = func(r *eval.Result) error {
		list, err := eval.Details[Sample](r.Answers)
		if err != nil {
			return err
		}
		return r.SetDetail(list)
	}
	return j, nil
}
