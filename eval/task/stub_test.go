package task

import (
	"context"
	"math/rand/v2"
	"strings"

	"antiphase/eval"
)

// knower is an LM that knows the right answers of a job, and nothing else.
type knower struct {
	gold  map[string]string // prompt → continuation
	pairs map[eval.Continuation]bool
	calls int
}

// knows makes one that is always right.
func knows(j *eval.Job) *knower {
	k := &knower{gold: map[string]string{}, pairs: map[eval.Continuation]bool{}}
	for _, g := range j.Gold {
		k.pairs[g] = true
		k.gold[g.Context] = g.Text
	}
	return k
}

func (k *knower) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	k.calls++
	out := make([]eval.Score, len(reqs))
	for i, r := range reqs {
		out[i] = eval.Score{LogProb: -50 * float64(len(r.Text)), Tokens: len(r.Text)}
		if k.pairs[r] {
			out[i].LogProb, out[i].Greedy = -0.01, true
		}
	}
	return out, nil
}

func (k *knower) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	k.calls++
	out := make([]eval.Score, len(texts))
	for i, t := range texts {
		out[i] = eval.Score{LogProb: -float64(len(t)), Tokens: len(t)}
	}
	return out, nil
}

// Choose takes the option that the right continuation begins with, also after some of it.
func (k *knower) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	k.calls++
	out := make([]int, len(reqs))
	for i, r := range reqs {
		out[i] = -1
		for prompt, text := range k.gold {
			if after, ok := strings.CutPrefix(r.Prompt, prompt); ok && strings.HasPrefix(text, after) {
				for o, option := range r.Options {
					if strings.HasPrefix(text[len(after):]+"\n", option) {
						out[i] = o
					}
				}
			}
		}
	}
	return out, nil
}

func (k *knower) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
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

func (g guesser) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i, r := range reqs {
		out[i] = eval.Score{LogProb: -float64(len(r.Text)) * (1 + 0.1*g.Float64()), Tokens: 1}
	}
	return out, nil
}

func (g guesser) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	out := make([]eval.Score, len(texts))
	for i, t := range texts {
		out[i] = eval.Score{LogProb: -8 * 0.6931471805599453 * float64(len(t)), Tokens: len(t)} // a uniform byte
	}
	return out, nil
}

func (g guesser) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	return make([]string, len(reqs)), nil
}

func (g guesser) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	out := make([]int, len(reqs))
	for i, r := range reqs {
		out[i] = g.IntN(len(r.Options))
	}
	return out, nil
}
