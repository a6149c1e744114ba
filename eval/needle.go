package eval

import (
	"context"
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
		cases := needles(opt, depth, uint64(i))
		reqs := make([]Generation, len(cases))
		for k, c := range cases {
			// No token is shorter than a byte, so the right answer always fits, in any vocabulary.
			reqs[k] = Generation{Prompt: c.Prompt, Until: []string{"\n"}, MaxTokens: len(c.Completion())}
		}
		out, err := lm.GenerateUntil(ctx, reqs)
		if err != nil {
			return r, err
		}
		var at tally
		for k, c := range cases {
			x := hits(c, out[k])
			at.add(x)
			all.add(x)
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
