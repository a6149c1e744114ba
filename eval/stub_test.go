package eval

import (
	"context"
	"strings"
)

// knower is an LM that knows the right answers of a job, and nothing else.
type knower struct {
	gold  map[string]string // prompt → continuation
	pairs map[Continuation]bool
	calls int
}

func (k *knower) Loglikelihood(_ context.Context, reqs []Continuation) ([]Score, error) {
	k.calls++
	out := make([]Score, len(reqs))
	for i, r := range reqs {
		out[i] = Score{LogProb: -50 * float64(len(r.Text)), Tokens: len(r.Text)}
		if k.pairs[r] {
			out[i].LogProb, out[i].Greedy = -0.01, true
		}
	}
	return out, nil
}

func (k *knower) LoglikelihoodRolling(_ context.Context, texts []string) ([]Score, error) {
	k.calls++
	out := make([]Score, len(texts))
	for i, t := range texts {
		out[i] = Score{LogProb: -float64(len(t)), Tokens: len(t)}
	}
	return out, nil
}

func (k *knower) GenerateUntil(_ context.Context, reqs []Generation) ([]string, error) {
	k.calls++
	out := make([]string, len(reqs))
	for i, r := range reqs {
		out[i] = k.gold[r.Prompt]
		for _, stop := range r.Until {
			out[i], _, _ = strings.Cut(out[i], stop)
		}
	}
	return out, nil
}
