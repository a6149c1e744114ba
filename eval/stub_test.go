package eval

import (
	"context"
	"math/rand/v2"
	"strings"
)

// knower is an LM that knows the right answers of a job, and nothing else.
type knower struct {
	gold  map[string]string // prompt → continuation
	pairs map[Continuation]bool
	calls int
}

// knows makes one that is always right.
func knows(j *Job) *knower {
	k := &knower{gold: map[string]string{}, pairs: map[Continuation]bool{}}
	for _, g := range j.Gold {
		k.pairs[g] = true
		k.gold[g.Context] = g.Text
	}
	return k
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

// guesser answers at random, whatever the question.
type guesser struct{ *rand.Rand }

func (g guesser) Loglikelihood(_ context.Context, reqs []Continuation) ([]Score, error) {
	out := make([]Score, len(reqs))
	for i, r := range reqs {
		out[i] = Score{LogProb: -float64(len(r.Text)) * (1 + 0.1*g.Float64()), Tokens: 1}
	}
	return out, nil
}

func (g guesser) LoglikelihoodRolling(_ context.Context, texts []string) ([]Score, error) {
	out := make([]Score, len(texts))
	for i, t := range texts {
		out[i] = Score{LogProb: -8 * 0.6931471805599453 * float64(len(t)), Tokens: len(t)} // a uniform byte
	}
	return out, nil
}

func (g guesser) GenerateUntil(_ context.Context, reqs []Generation) ([]string, error) {
	return make([]string, len(reqs)), nil
}

func (g guesser) Choose(_ context.Context, reqs []Choice) ([]int, error) {
	out := make([]int, len(reqs))
	for i, r := range reqs {
		out[i] = g.IntN(len(r.Options))
	}
	return out, nil
}
