package task

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"antiphase/eval"
)

// knower is an LM that knows the right answers of a job, and nothing else.
type knower struct {
	gold  map[string]string // prompt → continuation
	pairs map[eval.Continuation]bool
	calls int
	noisy bool // prompts may be disturbed
}

// about is the question that a prompt belongs to where noise has changed it: the one whose prompt shares the most
// words.
func (k *knower) about(prompt string) string {
	if _, ok := k.gold[prompt]; ok || !k.noisy {
		return prompt
	}
	has := map[string]bool{}
	for _, w := range strings.Fields(prompt) {
		has[w] = true
	}
	best, most := "", -1
	for _, known := range slices.Sorted(maps.Keys(k.gold)) {
		n := 0
		for _, w := range strings.Fields(known) {
			if has[w] {
				n++
			}
		}
		if n > most {
			best, most = known, n
		}
	}
	return best
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
			after, ok := strings.CutPrefix(r.Prompt, prompt)
			if k.noisy { // what follows the question's end, which noise leaves alone
				prompt = k.about(r.Prompt)
				text = k.gold[prompt]
				_, after, ok = strings.Cut(r.Prompt, prompt[asking(prompt):])
			}
			if ok && strings.HasPrefix(text, after) {
				for o, option := range r.Options {
					if strings.HasPrefix(text[len(after):]+"\n", option) {
						out[i] = o
					}
				}
			}
			if k.noisy {
				break
			}
		}
	}
	return out, nil
}

func (k *knower) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	k.calls++
	out := make([]string, len(reqs))
	for i, r := range reqs {
		out[i] = k.gold[k.about(r.Prompt)]
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

// copier names all numbers of the text in a random order, or all words, and picks any option: it knows what is hidden
// and not which of it is asked for.
type copier struct {
	*rand.Rand
	words bool
}

func (c copier) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		_, body, _ := strings.Cut(r.Prompt[:asking(r.Prompt)], "\n")
		list := numbers(body)
		if c.words {
			list = strings.FieldsFunc(body, func(r rune) bool { return !unicode.IsLetter(r) && !isDigit(r) })
		}
		slices.Sort(list)
		list = slices.Compact(list)
		c.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		out[i] = " " + strings.Join(list, " ") + "."
	}
	return out, nil
}

func (c copier) Loglikelihood(ctx context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	return guesser{c.Rand}.Loglikelihood(ctx, reqs)
}

func (c copier) LoglikelihoodRolling(ctx context.Context, texts []string) ([]eval.Score, error) {
	return guesser{c.Rand}.LoglikelihoodRolling(ctx, texts)
}

func (c copier) Choose(ctx context.Context, reqs []eval.Choice) ([]int, error) {
	return guesser{c.Rand}.Choose(ctx, reqs)
}
