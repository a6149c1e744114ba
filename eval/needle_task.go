package eval

import (
	"context"
	"fmt"
	"math/rand/v2"

	"antiphase/data"
)

// needleTasks is retrieval of magic codes from a long text, over lengths and depths (the paper's Table 2 and Figure 5).
func needleTasks() []Task {
	return []Task{{
		Name: "needle", Version: 3, Shots: -1,
		Doc:      "magic codes hidden in a long text, over lengths and depths",
		Measures: []Measure{{"acc", higher}},
		Settings: append(needleSettings(4, 2, 10), Setting{"decoding", "free", "free: whatever the model writes; constrained: one of the numbers hidden"}),
		Prepare:  prepareNeedle,
	}}
}

// needleSettings are those of every task that asks needle prompts.
func needleSettings(needles, queries, samples int) []Setting {
	return []Setting{
		{"needles", needles, "numbers hidden (N)"},
		{"queries", queries, "of which asked for (R)"},
		{"depths", Depths, "where the first asked one lies, 0 to 1"},
		{"lengths", []int{0}, "of prompts and answers, in tokens; 0: the context"},
		{"samples", samples, "per length and depth; the paper takes 50"},
		{"digits", 2, "of every number"},
		{"wording", "own", "own: as in synthetic training text; public: the nearest published sentences (LWM, YOCO)"},
		{"haystack", "", "text to hide them in: a file or folder; empty: held-out text of --data, or generated prose without it"},
	}
}

// needleCase is one prompt of the grid.
type needleCase struct {
	length int
	depth  float64
	data.Needle
}

func (c *needleCase) id(k int) string {
	return fmt.Sprintf("length=%d depth=%g %d", c.length, c.depth, k)
}

// NeedleGrid is what the heat map of the task needle is drawn from.
type NeedleGrid struct {
	Needles  int       `json:"needles"`
	Queries  int       `json:"queries"`
	Decoding string    `json:"decoding"`
	Lengths  []int     `json:"lengths"`
	Depths   []float64 `json:"depths"`
	Cells    [][]Mean  `json:"cells"` // [depth][length]
	ByLength []Mean    `json:"by_length"`
}

func prepareNeedle(p *Plan) (*Job, error) {
	decoding := p.Text("decoding")
	if decoding != "free" && decoding != "constrained" {
		return nil, fmt.Errorf("decoding is %q, must be free or constrained", decoding)
	}
	cases, ids, err := p.needleGrid()
	if err != nil {
		return nil, err
	}
	j := &Job{IDs: ids, Chunk: 16}
	answer := answerFreely
	if decoding == "constrained" {
		answer, j.Chance = answerAmong, 1/float64(p.Int("needles"))
	}
	for _, c := range cases {
		j.Gold = append(j.Gold, Continuation{c.Prompt, p.wording().completion(c.Needle)})
	}
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		part := make([]data.Needle, len(which))
		for i, w := range which {
			part[i] = cases[w].Needle
		}
		got, err := answer(ctx, lm, p.wording(), part)
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(which))
		for i, w := range which {
			c := &cases[w]
			out[i] = Answer{
				Values: map[string]float64{"acc": got[i].hits, "length": float64(c.length), "depth": c.depth},
				Doc:    map[string]any{"prompt": c.Prompt, "wanted": c.Answers, "answer": got[i].text},
			}
		}
		return out, nil
	}
	grid := NeedleGrid{Needles: p.Int("needles"), Queries: p.Int("queries"), Decoding: decoding, Lengths: p.needleLengths(), Depths: p.Floats("depths")}
	j.Finish = func(r *Result) error { return finishNeedle(r, grid) }
	return j, nil
}

func finishNeedle(r *Result, g NeedleGrid) error {
	at := func(length int, depth float64) Mean {
		return meanOf(where(r.Answers, func(a *Answer) bool {
			return a.Values["length"] == float64(length) && (depth < 0 || a.Values["depth"] == depth)
		}), "acc")
	}
	for _, d := range g.Depths {
		var row []Mean
		for _, n := range g.Lengths {
			row = append(row, at(n, d))
		}
		g.Cells = append(g.Cells, row)
	}
	for _, n := range g.Lengths {
		m := at(n, -1)
		g.ByLength = append(g.ByLength, m)
		if len(g.Lengths) > 1 {
			r.Add(fmt.Sprintf("acc@%d", n), higher, m)
		}
	}
	return r.SetDetail(g)
}

// needleLengths are the lengths asked for, 0 being the context.
func (p *Plan) needleLengths() []int {
	var out []int
	for _, n := range p.Ints("lengths") {
		if n == 0 {
			n = p.context
		}
		out = append(out, n)
	}
	return out
}

// needleGrid draws the prompts of all lengths and depths. Each fits its length together with its answer.
func (p *Plan) needleGrid() (cases []needleCase, ids []string, err error) {
	if err := p.checkNeedle(); err != nil {
		return nil, nil, err
	}
	n := p.limit(p.Int("samples"))
	lengths := p.needleLengths()
	hay, perToken, err := p.haystack(lengths)
	if err != nil {
		return nil, nil, err
	}
	for _, length := range lengths {
		for d, depth := range p.Floats("depths") {
			for k := range n {
				c := needleCase{length: length, depth: depth}
				if c.Needle, err = p.fitNeedle(hay, perToken, length, depth, uint64(length)<<24+uint64(d)<<16+uint64(k)); err != nil {
					return nil, nil, err
				}
				cases, ids = append(cases, c), append(ids, c.id(k))
			}
		}
	}
	return cases, ids, nil
}

// checkNeedle finds settings that cannot be drawn.
func (p *Plan) checkNeedle() error {
	n, r, digits := p.Int("needles"), p.Int("queries"), p.Int("digits")
	switch {
	case n < 1 || n > data.MostNeedles():
		return fmt.Errorf("needles is %d, must be 1 to %d", n, data.MostNeedles())
	case r < 1 || r > n:
		return fmt.Errorf("queries is %d, must be 1 to needles, %d", r, n)
	case digits < 1 || digits > 9:
		return fmt.Errorf("digits is %d, must be 1 to 9", digits)
	case p.wording() == nil:
		return fmt.Errorf("wording is %q, must be own or public", p.Text("wording"))
	case p.Int("samples") < 1:
		return fmt.Errorf("samples is %d, must be positive", p.Int("samples"))
	}
	for _, d := range p.Floats("depths") {
		if !(d >= 0 && d <= 1) {
			return fmt.Errorf("depths has %g, must be 0 to 1", d)
		}
	}
	for _, n := range p.needleLengths() {
		if n < 1 || n > p.context {
			return fmt.Errorf("lengths has %d, the context is %d tokens", n, p.context)
		}
	}
	return nil
}

// fitNeedle draws one prompt, shorter ones until it fits its length with its answer. A prompt that would have next to no
// haystack is refused: needles alone are no test.
func (p *Plan) fitNeedle(hay haystack, perToken float64, length int, depth float64, stream uint64) (data.Needle, error) {
	opt := data.NeedleOptions{Needles: p.Int("needles"), Queries: p.Int("queries"), Depth: depth, Digits: p.Int("digits"), Haystack: hay}
	opt.Bytes = int(float64(length) * perToken)
	for range 20 {
		drawn := data.NewNeedle(rand.New(rand.NewPCG(p.Seed, stream)), opt)
		c := p.wording().reword(drawn)
		// Free decoding asks for as many tokens as the answer has bytes (answerFreely). Were there less room, the model would drop the
		// prompt's beginning, and a needle at depth 0 with it.
		over := p.count(c.Prompt) + len(p.wording().completion(c)) + 1 - length // one token more, which some tokenizers put first
		if over <= 0 && len(drawn.Prompt) <= opt.Bytes {
			return c, nil
		}
		opt.Bytes -= max(int(float64(over)*perToken), 1) + 8
		if opt.Bytes < 1 {
			break
		}
	}
	return data.Needle{}, fmt.Errorf("lengths: %d tokens have no room for %d needles, a question about %d and text around them", length, opt.Needles, opt.Queries)
}

// bytes is about how much plain text makes so many tokens.
func (p *Plan) bytes(tokens int) int {
	text := data.Prose(rand.New(rand.NewPCG(1, 1)), 4096)
	return max(int(float64(tokens)*float64(len(text))/float64(p.count(text))), 1)
}
