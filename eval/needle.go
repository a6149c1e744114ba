package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/data"
)

// NeedleOptions is one multi-needle test: N needles, R of them asked for, the first asked one at each depth.
//
// The paper gives neither haystack, templates, digits, decoding nor how R = 2 is scored. Our choices: data.NewNeedle's
// text, greedy decoding, a hit is the number standing in the output, and R > 1 is averaged over the cities asked for.
type NeedleOptions struct {
	Needles, Queries int
	Depths           []float64
	Samples          int // per depth; the paper takes 50
	Bytes            int // length of the prompt
	Digits           int
	Seed             uint64
}

// Depths are the paper's five.
var Depths = []float64{0, 0.25, 0.5, 0.75, 1}

// NeedleResult is the accuracy by depth and over all.
type NeedleResult struct {
	Needles  int       `json:"needles"`
	Queries  int       `json:"queries"`
	Bytes    int       `json:"bytes"`
	Depths   []float64 `json:"depths"`
	ByDepth  []Mean    `json:"by_depth"`
	Accuracy Mean      `json:"accuracy"`
}

// Needle runs the test. The same options give every model the same prompts.
func Needle(ctx context.Context, lm LM, opt NeedleOptions) (NeedleResult, error) {
	r := NeedleResult{Needles: opt.Needles, Queries: opt.Queries, Bytes: opt.Bytes, Depths: opt.Depths}
	var all tally
	for i, depth := range opt.Depths {
		got, err := answerFreely(ctx, lm, wordings["own"], needles(opt, depth, uint64(i)))
		if err != nil {
			return r, err
		}
		var at tally
		for _, a := range got {
			at.add(a.hits)
			all.add(a.hits)
		}
		r.ByDepth = append(r.ByDepth, at.mean())
	}
	r.Accuracy = all.mean()
	return r, nil
}

func needles(opt NeedleOptions, depth float64, stream uint64) []data.Needle {
	g := rand.New(rand.NewPCG(opt.Seed, stream))
	cases := make([]data.Needle, opt.Samples)
	for i := range cases {
		cases[i] = data.NewNeedle(g, data.NeedleOptions{Needles: opt.Needles, Queries: opt.Queries, Depth: depth, Bytes: opt.Bytes, Digits: opt.Digits})
	}
	return cases
}

// found is an answer and the share of asked numbers in it.
type found struct {
	text string
	hits float64
}

// answerFreely lets the model write what it likes, up to the length of the right answer.
func answerFreely(ctx context.Context, lm LM, w *wording, cases []data.Needle) ([]found, error) {
	reqs := make([]Generation, len(cases))
	for i, c := range cases {
		// No token is shorter than a byte, so the right answer always fits, in any vocabulary.
		reqs[i] = Generation{Prompt: c.Prompt, Until: []string{"\n"}, MaxTokens: len(w.completion(c))}
	}
	texts, err := lm.GenerateUntil(ctx, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]found, len(cases))
	for i, c := range cases {
		out[i] = found{texts[i], hits(c, texts[i])}
	}
	return out, nil
}

// answerAmong holds the model to the numbers that the text hides: for each city asked for, behind the right answers to those
// before it, the model picks one of the N. Guessing scores 1/N.
func answerAmong(ctx context.Context, lm LM, w *wording, cases []data.Needle) ([]found, error) {
	var reqs []Choice
	for _, c := range cases {
		prompt := c.Prompt
		options := []string{}
		for _, n := range append(c.Answers[:len(c.Answers):len(c.Answers)], c.OtherNumbers...) {
			options = append(options, " "+n+".")
		}
		for q := range c.Answers {
			reqs = append(reqs, Choice{Prompt: prompt, Options: options})
			if q+1 < len(c.Answers) {
				prompt += " " + c.Answers[q] + ". " + fmt.Sprintf(w.begin, c.Cities[q+1])
			}
		}
	}
	picked, err := choose(ctx, lm, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]found, len(cases))
	at := 0
	for i, c := range cases {
		for q := range c.Answers {
			if picked[at] >= 0 {
				out[i].text += reqs[at].Options[picked[at]]
			}
			if picked[at] == q {
				out[i].hits += 1 / float64(len(c.Answers))
			}
			at++
		}
	}
	return out, nil
}

// hits is the share of asked numbers that stand in the output as whole numbers.
func hits(c data.Needle, out string) float64 {
	words := strings.FieldsFunc(out, func(r rune) bool { return r < '0' || r > '9' })
	found := 0
	for _, want := range c.Answers {
		for _, w := range words {
			if w == want {
				found++
				break
			}
		}
	}
	return float64(found) / float64(len(c.Answers))
}
