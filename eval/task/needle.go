package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"antiphase/data"
	"antiphase/eval"
)

// Retrieval of magic codes from a long text, over lengths and depths (the paper's Table 2 and Figure 5).
//
// There are always three scores. bound: each requested number must be given for its own key. free: the number occurs
// anywhere in the output, which is how published code scores. constrained: the model picks among the hidden numbers,
// given the right answers so far. Two floors need no binding: chance is what guessing numbers earns, copy what naming
// any R of the N hidden numbers earns.
func init() {
	register(30, eval.Task{
		Name: "needle", Version: 4, Shots: -1,
		Doc: "magic codes hidden in a long text, over lengths and depths",
		Measures: []eval.Measure{
			{Name: "bound", Better: eval.Higher, Label: "number beside its key, %"},
			{Name: "constrained", Better: eval.Higher, Label: "choice among hidden numbers, %"},
			{Name: "free", Better: eval.Higher, Label: "number anywhere in the output, %"},
		},
		Settings: needleSettings(4, 2, 10),
		Valid:    validNeedle,
		Prepare:  prepareNeedle,
	})
}

// Depths are the paper's five.
var Depths = []float64{0, 0.25, 0.5, 0.75, 1}

// needleSettings are those of every task with needle prompts.
func needleSettings(needles, queries, samples int) []eval.Setting {
	return []eval.Setting{
		{Key: "needles", Default: needles, Rule: eval.Between(1, float64(data.MostNeedles())),
			Doc: "numbers hidden (N)"},
		{Key: "queries", Default: queries, Rule: eval.Between(1, float64(data.MostNeedles())),
			Doc: "numbers the prompt asks for (R)"},
		{Key: "depths", Default: Depths, Rule: eval.Between(0, 1),
			Doc: "position of the first number asked for, 0 (start) to 1 (end)"},
		{Key: "lengths", Default: []int{0}, Rule: eval.AtLeast(0),
			Doc: "lengths of prompt and answer, in tokens; 0: the context"},
		{Key: "samples", Default: samples, Rule: eval.AtLeast(1),
			Doc: "samples per length and depth; the paper takes 50"},
		{Key: "digits", Default: 2, Rule: eval.Between(1, 9), Doc: "digits of each number"},
		{Key: "wording", Default: "own", Rule: eval.OneOf("own", "public"),
			Doc: "own: as in synthetic training text; public: the nearest published sentences (LWM, YOCO)"},
		{Key: "haystack", Default: "",
			Doc: "text to hide them in: a file or folder; empty: held-out text of --data, or generated " +
				"prose without it"},
	}
}

// needleCase is one prompt of the grid.
type needleCase struct {
	length, depth int // index of the length and of the depth
	data.Needle
}

// NeedleGrid is the data of the heat maps of the task needle, for each of its scores.
type NeedleGrid struct {
	Needles  int                           `json:"needles"`
	Queries  int                           `json:"queries"`
	Lengths  []int                         `json:"lengths"`
	Depths   []float64                     `json:"depths"`
	Cells    map[string][][]eval.Mean      `json:"cells"` // score → [depth][length]
	ByLength map[string][]eval.Mean        `json:"by_length"`
	Floors   map[string]map[string]float64 `json:"floors"`
}

func prepareNeedle(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	cases, j, err := needleGrid(ctx, p)
	if err != nil {
		return nil, err
	}
	j.Chunk = 16
	j.Floors = needleFloors(p.Int("needles"), p.Int("queries"), p.Int("digits"))
	for _, c := range cases {
		j.Gold = append(j.Gold, eval.Continuation{Context: c.Prompt, Text: wordingOf(p).completion(c.Needle)})
	}
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		part := make([]data.Needle, len(which))
		for i, w := range which {
			part[i] = cases[w].Needle
		}
		texts, err := answerFreely(ctx, lm, wordingOf(p), part)
		if err != nil {
			return nil, err
		}
		picks, err := answerAmong(ctx, lm, wordingOf(p), part)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i := range which {
			c := part[i]
			out[i] = eval.Answer{
				Values: map[string]float64{"bound": boundHits(c, texts[i]), "free": freeHits(c, texts[i]),
					"constrained": picks[i].hits},
				Doc: map[string]any{"prompt": c.Prompt, "wanted": c.Answers, "answer": texts[i],
					"chosen": picks[i].text},
			}
		}
		return out, nil
	}
	grid := NeedleGrid{Needles: p.Int("needles"), Queries: p.Int("queries"), Lengths: needleLengths(p),
		Depths: p.Floats("depths"), Floors: j.Floors}
	j.Finish = func(r *eval.Result) error { return finishNeedle(r, cases, grid) }
	return j, nil
}

// needleFloors are the scores without binding numbers to keys. A d-digit number has 9·10^(d−1) values.
func needleFloors(needles, queries, digits int) eval.Floors {
	values := 9.0
	for range digits - 1 {
		values *= 10
	}
	n, r := float64(needles), float64(queries)
	f := eval.Floors{}
	f.Set("bound", "chance", 1/values)
	f.Set("bound", "copy", 1/n) // one of the N at random for each key
	f.Set("free", "chance", r/values)
	f.Set("free", "copy", r/n) // each of the R requested is among R of N
	f.Set("constrained", "chance", 1/n)
	f.Set("constrained", "copy", 1/n)
	return f
}

func finishNeedle(r *eval.Result, cases []needleCase, g NeedleGrid) error {
	g.Cells, g.ByLength = map[string][][]eval.Mean{}, map[string][]eval.Mean{}
	for _, score := range []string{"bound", "constrained", "free"} {
		at := func(length, depth int) eval.Mean {
			return eval.MeanOf(r.Where(func(i int) bool {
				return cases[i].length == length &&
					(depth < 0 || cases[i].depth == depth)
			}), score)
		}
		for d := range g.Depths {
			var row []eval.Mean
			for n := range g.Lengths {
				row = append(row, at(n, d))
			}
			g.Cells[score] = append(g.Cells[score], row)
		}
		for n, length := range g.Lengths {
			m := at(n, -1)
			g.ByLength[score] = append(g.ByLength[score], m)
			if len(g.Lengths) > 1 && score == "bound" {
				r.Add(fmt.Sprintf("bound@%d", length), fmt.Sprintf("retrieval at %d tokens, %%", length),
					eval.Higher, m)
			}
		}
	}
	return r.SetDetail(g)
}

// needleLengths are the requested lengths; 0 is the context.
func needleLengths(p *eval.Plan) []int {
	var out []int
	for _, n := range p.Ints("lengths") {
		if n == 0 {
			n = p.Context
		}
		out = append(out, n)
	}
	return out
}

// needleGrid draws the prompts of all lengths and depths. Each fits its length including its answer.
func needleGrid(ctx context.Context, p *eval.Plan) ([]needleCase, *eval.Job, error) {
	lengths, depths := needleLengths(p), p.Floats("depths")
	hay, err := newHaystack(ctx, p, lengths)
	if err != nil {
		return nil, nil, err
	}
	slots, err := p.Grid(len(lengths)*len(depths), p.Int("samples"), slices.Max(lengths))
	if err != nil {
		return nil, nil, err
	}
	var cases []needleCase
	j := &eval.Job{Config: map[string]any{"source": hay.source}}
	for _, s := range slots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		c := needleCase{length: s.Cell / len(depths), depth: s.Cell % len(depths)}
		length := lengths[c.length]
		stream := uint64(length)<<24 + uint64(c.depth)<<16 + uint64(s.K)
		if c.Needle, err = fitNeedle(p, hay, length, depths[c.depth], stream); err != nil {
			return nil, nil, err
		}
		cases = append(cases, c)
		j.IDs = append(j.IDs, fmt.Sprintf("length=%d depth=%g %d", length, depths[c.depth], s.K))
	}
	return cases, j, nil
}

// validNeedle rejects more questions than needles, more needles than numbers, and lengths that do not fit.
func validNeedle(p *eval.Plan) error {
	if n, r := p.Int("needles"), p.Int("queries"); r > n {
		return eval.BadSetting("queries is %d, must be at most needles, %d", r, n)
	}
	if err := enoughDigits(p, p.Int("needles")); err != nil {
		return err
	}
	return validLengths(p)
}

// validLengths rejects lengths that no prompt can have, and duplicates; 0 is the context.
func validLengths(p *eval.Plan) error {
	lengths := needleLengths(p)
	for i, n := range lengths {
		if n > p.Context {
			return eval.BadSetting("lengths has %d, the context is %d tokens", n, p.Context)
		}
		if slices.Contains(lengths[:i], n) {
			return eval.BadSetting("lengths has %d twice; 0 is the context", n)
		}
	}
	return nil
}

// fitNeedle draws one prompt, shortening it until it fits its length with its answer. A prompt with almost no haystack
// is rejected: needles alone are not a test.
func fitNeedle(p *eval.Plan, hay *haystack, length int, depth float64, stream uint64) (data.Needle, error) {
	opt := data.NeedleOptions{Needles: p.Int("needles"), Queries: p.Int("queries"), Depth: depth,
		Digits: p.Int("digits"), Haystack: hay.text}
	opt.Bytes = int(float64(length) * hay.perToken)
	for range 20 {
		drawn := data.NewNeedle(rand.New(rand.NewPCG(p.Seed, stream)), opt)
		c := wordingOf(p).reword(drawn)
		// Free decoding requests as many tokens as the answer has bytes (answerFreely). With less room the model would
		// drop the prompt's beginning, including a needle at depth 0. One token more is for what some tokenizers put
		// first.
		over := p.Count(c.Prompt) + len(wordingOf(p).completion(c)) + 1 - length
		if over <= 0 && len(drawn.Prompt) <= opt.Bytes {
			return c, nil
		}
		opt.Bytes -= max(int(float64(over)*hay.perToken), 1) + 8
		if opt.Bytes < 1 {
			break
		}
	}
	return data.Needle{}, eval.BadSetting(
		"lengths: %d tokens have no room for %d needles, a question about %d and text around them",
		length, opt.Needles, opt.Queries)
}
