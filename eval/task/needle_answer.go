package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// answerFreely lets the model write freely, up to the length of the right answer.
func answerFreely(ctx context.Context, lm eval.LM, w *wording, cases []data.Needle) ([]string, error) {
	reqs := make([]eval.Generation, len(cases))
	for i, c := range cases {
		// No token is shorter than a byte, so the right answer always fits, in any vocabulary.
		reqs[i] = eval.Generation{Prompt: c.Prompt, Until: []string{"\n"}, MaxTokens: len(w.completion(c))}
	}
	return lm.GenerateUntil(ctx, reqs)
}

// picked is the model's choice, and the share of it that is right.
type picked struct {
	text string
	hits float64
}

// answerAmong constrains the model to the hidden numbers: for each requested city, after the right answers to the
// previous ones, the model picks one of the N. Options are sorted, so that their order carries no information.
func answerAmong(ctx context.Context, lm eval.LM, w *wording, cases []data.Needle) ([]picked, error) {
	var reqs []eval.Choice
	for _, c := range cases {
		prompt := c.Prompt
		options := []string{}
		for _, n := range slices.Sorted(slices.Values(slices.Concat(c.Answers, c.OtherNumbers))) {
			options = append(options, " "+n+".")
		}
		for q := range c.Answers {
			reqs = append(reqs, eval.Choice{Prompt: prompt, Options: options})
			if q+1 < len(c.Answers) {
				prompt += " " + c.Answers[q] + ". " + fmt.Sprintf(w.begin, c.Cities[q+1])
			}
		}
	}
	choices, err := eval.Choose(ctx, lm, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]picked, len(cases))
	at := 0
	for i, c := range cases {
		for _, want := range c.Answers {
			said := ""
			if choices[at] >= 0 {
				said = reqs[at].Options[choices[at]]
			}
			out[i].text += said
			if said == " "+want+"." {
				out[i].hits += 1 / float64(len(c.Answers))
			}
			at++
		}
	}
	return out, nil
}

// isDigit is what a number is made of.
func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// numbers are the whole numbers of a text.
func numbers(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isDigit(r) })
}

// freeHits is the share of requested numbers that occur anywhere in the output as whole numbers.
func freeHits(c data.Needle, out string) float64 {
	said := numbers(out)
	found := 0
	for _, want := range c.Answers {
		if slices.Contains(said, want) {
			found++
		}
	}
	return float64(found) / float64(len(c.Answers))
}

// boundHits is the share of requested numbers that the output gives for their own keys. The prompt ends with the first
// key, so the output begins with its answer; after that, the first number after a key is that key's. An output without
// keys and with exactly as many numbers as requested gives them in the order of the question.
func boundHits(c data.Needle, out string) float64 {
	given := map[string]string{}
	keys := slices.Concat(c.Cities, c.OtherCities)
	key, rest, named := c.Cities[0], out, false
	for {
		next, at := "", len(rest)
		for _, k := range keys {
			if i := strings.Index(rest, k); i >= 0 && i < at {
				next, at = k, i
			}
		}
		if said := numbers(rest[:at]); len(said) > 0 && given[key] == "" {
			given[key] = said[0]
		}
		if next == "" {
			break
		}
		key, rest, named = next, rest[at+len(next):], true
	}
	if said := numbers(out); !named && len(said) == len(c.Answers) {
		for i, city := range c.Cities {
			given[city] = said[i]
		}
	}
	found := 0
	for i, city := range c.Cities {
		if given[city] == c.Answers[i] {
			found++
		}
	}
	return float64(found) / float64(len(c.Answers))
}
