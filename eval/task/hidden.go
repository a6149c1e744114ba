package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"antiphase/eval"
)

// hidden is a task that asks for some of the items in a long generated text: numbers, names or words. Its scores are
// those of needles. bound: the share of named items that are right, where at least as many count as named as were
// requested, so that naming all of them earns the same as naming any; free: right ones anywhere in the output;
// constrained: the model picks one after the other among all.
type hidden struct {
	cells  func(p *eval.Plan) []string // labels of what is varied besides the length; nil: nothing
	hay    bool                        // items are hidden in a haystack
	values func(p *eval.Plan) float64  // number of values a guess is made among
	// build writes a prompt of about this many bytes. The same numbers of g give the same items for any length.
	build func(p *eval.Plan, g *rand.Rand, hay *haystack, cell, bytes int) hiddenCase
}

// hiddenCase is one prompt.
type hiddenCase struct {
	length, cell  int
	prompt        string
	right, others []string
}

// HiddenDetail is the data of the figures of these tasks: each score by length and by what else is varied.
type HiddenDetail struct {
	Lengths []int                    `json:"lengths"`
	Cells   []string                 `json:"cells,omitempty"`
	Scores  map[string][][]eval.Mean `json:"scores"` // score → [cell][length]
}

// hiddenScores are the measures, the headline first.
var hiddenScores = []eval.Measure{
	{Name: "bound", Better: eval.Higher, Label: "right among those named, %"},
	{Name: "constrained", Better: eval.Higher, Label: "choice among all hidden, %"},
	{Name: "free", Better: eval.Higher, Label: "right ones anywhere in the output, %"},
}

// hiddenSettings are those of every such task, after its own.
func hiddenSettings(own ...eval.Setting) []eval.Setting {
	return append(own,
		eval.Setting{Key: "lengths", Default: []int{0}, Rule: eval.AtLeast(0),
			Doc: "lengths of prompt and answer, in tokens; 0: the context"},
		eval.Setting{Key: "samples", Default: 40, Rule: eval.AtLeast(1), Doc: "samples per length and cell"},
	)
}

// haySettings are those of tasks with a haystack.
func haySettings(own ...eval.Setting) []eval.Setting {
	return append(hiddenSettings(own...), eval.Setting{Key: "haystack", Default: "",
		Doc: "text to hide things in: a file or folder; empty: held-out text of --data, or generated prose without it"})
}

func (h *hidden) prepare(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	cases, j, err := h.cases(ctx, p)
	if err != nil {
		return nil, err
	}
	j.Chunk = 16
	j.Floors = h.floors(p, cases)
	for _, c := range cases {
		j.Gold = append(j.Gold, eval.Continuation{Context: c.prompt, Text: c.completion()})
	}
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		return askHidden(ctx, lm, cases, which)
	}
	d := HiddenDetail{Lengths: needleLengths(p)}
	if h.cells != nil {
		d.Cells = h.cells(p)
	}
	j.Finish = func(r *eval.Result) error { return finishHidden(r, cases, d) }
	return j, nil
}

// completion is the right continuation of a prompt.
func (c *hiddenCase) completion() string { return " " + strings.Join(c.right, ", ") + "." }

// cases draws the prompts of all lengths and cells.
func (h *hidden) cases(ctx context.Context, p *eval.Plan) (out []hiddenCase, j *eval.Job, err error) {
	lengths, cells := needleLengths(p), []string{""}
	if h.cells != nil {
		cells = h.cells(p)
	}
	hay := &haystack{source: "generated", perToken: float64(plainBytes(p, 1000)) * 3 / 4000}
	if h.hay {
		if hay, err = newHaystack(ctx, p, lengths); err != nil {
			return nil, nil, err
		}
	}
	slots, err := p.Grid(len(lengths)*len(cells), p.Int("samples"), slices.Max(lengths))
	if err != nil {
		return nil, nil, err
	}
	j = &eval.Job{Config: map[string]any{"source": hay.source}}
	seed := p.Rand("prompts").Uint64()
	for _, s := range slots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		length, cell := s.Cell/len(cells), s.Cell%len(cells)
		c, err := h.fit(ctx, p, hay, cell, lengths[length],
			rand.NewPCG(seed, uint64(lengths[length])<<24+uint64(cell)<<16+uint64(s.K)))
		if err != nil {
			return nil, nil, err
		}
		c.length, c.cell = length, cell
		out = append(out, c)
		id := fmt.Sprintf("length=%d %d", lengths[length], s.K)
		if cells[cell] != "" {
			id = fmt.Sprintf("length=%d %s %d", lengths[length], cells[cell], s.K)
		}
		j.IDs = append(j.IDs, id)
	}
	return out, j, nil
}

// fit writes a prompt that leaves room for its answer within a length, shortening it until it fits.
func (h *hidden) fit(ctx context.Context, p *eval.Plan, hay *haystack, cell, length int,
	source *rand.PCG) (hiddenCase, error) {
	bytes := int(float64(length) * hay.perToken)
	state, err := source.MarshalBinary()
	if err != nil {
		return hiddenCase{}, err
	}
	for range 24 {
		again := &rand.PCG{}
		if err := again.UnmarshalBinary(state); err != nil {
			return hiddenCase{}, err
		}
		c := h.build(p, rand.New(again), hay, cell, bytes)
		n := p.Count(c.prompt)
		over := n + len(c.completion()) + 1 - length // free decoding requests as many tokens as the answer has bytes
		if over <= 0 && len(c.prompt) <= bytes+bytes/8+64 {
			return c, nil
		}
		bytes -= max(over*len(c.prompt)/n, 1) + 8 // made-up words have more tokens than prose
		if bytes < 1 {
			break
		}
	}
	return hiddenCase{}, eval.BadSetting("lengths: %d tokens have no room for what is to be hidden and text around it",
		length)
}

// floors are the scores without knowing which items are right: naming any R of the N.
func (h *hidden) floors(p *eval.Plan, cases []hiddenCase) eval.Floors {
	var bound, pick, guess float64
	for _, c := range cases {
		r, n := float64(len(c.right)), float64(len(c.right)+len(c.others))
		bound += r / n / float64(len(cases))
		guess += r / h.values(p) / float64(len(cases))
		for k := range c.right { // remaining right ones, of all remaining
			pick += (r - float64(k)) / (n - float64(k)) / r / float64(len(cases))
		}
	}
	f := eval.Floors{}
	f.Set("bound", "chance", guess)
	f.Set("bound", "copy", bound)
	f.Set("free", "chance", guess)
	f.Set("free", "copy", bound)
	f.Set("constrained", "chance", pick)
	f.Set("constrained", "copy", pick)
	return f
}

func askHidden(ctx context.Context, lm eval.LM, cases []hiddenCase, which []int) ([]eval.Answer, error) {
	gen := make([]eval.Generation, len(which))
	var choices []eval.Choice
	for i, w := range which {
		c := &cases[w]
		gen[i] = eval.Generation{Prompt: c.prompt, Until: []string{"\n"}, MaxTokens: len(c.completion())}
		choices = append(choices, c.choices()...)
	}
	texts, err := lm.GenerateUntil(ctx, gen)
	if err != nil {
		return nil, err
	}
	picks, err := eval.Choose(ctx, lm, choices)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Answer, len(which))
	for i, w := range which {
		c := &cases[w]
		n := len(c.right)
		hits := 0.0
		for k := range n {
			if picks[k] >= 0 && slices.Contains(c.right, strings.TrimSpace(choices[k].Options[picks[k]])) {
				hits++
			}
		}
		picks, choices = picks[n:], choices[n:]
		free, bound := c.score(texts[i])
		out[i] = eval.Answer{Values: map[string]float64{"bound": bound, "free": free, "constrained": hits / float64(n)},
			Doc: map[string]any{"prompt": c.prompt, "wanted": c.right, "answer": texts[i]}}
	}
	return out, nil
}

// choices ask for one right item after the other, each after the previous ones, which are no longer options.
func (c *hiddenCase) choices() (out []eval.Choice) {
	prompt := c.prompt
	for k, right := range c.right {
		var options []string
		for _, x := range slices.Sorted(slices.Values(slices.Concat(c.right[k:], c.others))) {
			options = append(options, " "+x)
		}
		out = append(out, eval.Choice{Prompt: prompt, Options: options})
		prompt += " " + right + ","
	}
	return out
}

// score reads an output: every hidden item in it counts as named, and so does every number that is not hidden.
func (c *hiddenCase) score(text string) (free, bound float64) {
	said := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !isDigit(r) }) {
		if slices.Contains(c.right, w) || slices.Contains(c.others, w) || isDigit(rune(w[0])) {
			said[w] = true
		}
	}
	hits := 0.0
	for _, r := range c.right {
		if said[r] {
			hits++
		}
	}
	n := float64(len(c.right))
	return hits / n, hits / max(n, float64(len(said)))
}

func finishHidden(r *eval.Result, cases []hiddenCase, d HiddenDetail) error {
	cells := max(len(d.Cells), 1)
	d.Scores = map[string][][]eval.Mean{} // of this model alone
	for _, score := range hiddenScores {
		for cell := range cells {
			var row []eval.Mean
			for length := range d.Lengths {
				row = append(row, eval.MeanOf(r.Where(func(i int) bool {
					return cases[i].cell == cell &&
						cases[i].length == length
				}), score.Name))
			}
			d.Scores[score.Name] = append(d.Scores[score.Name], row)
		}
	}
	each := func(n int, name, label func(i int) string, of func(c *hiddenCase) int) {
		for i := range n {
			if n > 1 {
				r.Add(name(i), label(i), eval.Higher,
					eval.MeanOf(r.Where(func(k int) bool { return of(&cases[k]) == i }), "bound"))
			}
		}
	}
	each(len(d.Cells), func(i int) string { return "bound " + d.Cells[i] },
		func(i int) string { return "right among those named, " + d.Cells[i] + ", %" },
		func(c *hiddenCase) int { return c.cell })
	each(len(d.Lengths), func(i int) string { return fmt.Sprintf("bound@%d", d.Lengths[i]) },
		func(i int) string { return fmt.Sprintf("right among those named, %d tokens, %%", d.Lengths[i]) },
		func(c *hiddenCase) int { return c.length })
	return r.SetDetail(d)
}

// scatter inserts sentences between those of a haystack, in order or at random.
func scatter(g *rand.Rand, hay string, list []string, inOrder bool) string {
	all := sentences(hay)
	places := make([]int, len(list))
	for i := range places {
		places[i] = g.IntN(len(all) + 1)
	}
	if inOrder {
		slices.Sort(places)
	}
	var b strings.Builder
	for k := range len(all) + 1 {
		for i, at := range places {
			if at == k {
				b.WriteString(list[i] + " ")
			}
		}
		if k < len(all) {
			b.WriteString(all[k] + " ")
		}
	}
	return strings.TrimSpace(b.String())
}

// buried is a prompt with sentences in a haystack between a first line and a question.
func buried(g *rand.Rand, hay *haystack, bytes int, first string, list []string, inOrder bool, question string) string {
	rest := bytes - len(first) - len(question) - 2
	for _, s := range list {
		rest -= len(s) + 1
	}
	return first + "\n" + scatter(g, hay.text(g, max(0, rest)), list, inOrder) + "\n" + question
}
