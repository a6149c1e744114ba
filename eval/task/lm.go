package task

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"

	"antiphase/eval"
)

// Language modelling on held-out text: loss, perplexity, bits per byte, loss by position (the paper's Figure 4) and the
// loss on recallable tokens (its Table 6).
func init() {
	register(10, eval.Task{
		Name: "lm", Version: 3, Shots: -1,
		Doc: "held-out text: loss, perplexity, bits per byte; loss by position; AR-Hit and Others",
		Measures: []eval.Measure{
			{Name: "loss", Better: eval.Lower, Label: "held-out loss, nats/token"},
			{Name: "bits_per_byte", Better: eval.Lower, Label: "bits per byte"},
			{Name: "ar_hit", Better: eval.Lower, Label: "loss on recallable tokens (AR-Hit)"},
			{Name: "others", Better: eval.Lower, Label: "loss on other tokens"},
		},
		Settings: []eval.Setting{
			{Key: "text", Default: "", Doc: "held-out text, as \"antiphase train\" names sources, or set:FOLDER, the " +
				"held-out part of a token set; empty: lm/valid of --data, or generated"},
			{Key: "length", Default: 0, Rule: eval.AtLeast(0),
				Doc: "tokens of a piece of text, at least, where documents are long enough; 0: the context"},
			{Key: "pieces", Default: 200, Rule: eval.AtLeast(1),
				Doc: "pieces of text, taken from all documents in turn"},
			{Key: "frequent", Default: 1e-3, Rule: eval.AtLeast(0),
				Doc: "a bigram with a larger share of the text than this does not count as recall"},
		},
		Prepare: prepareLM,
	})
}

func prepareLM(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	length := sequenceLength(p)
	n := p.Limited(p.Int("pieces"))
	texts, source, err := heldOut(ctx, p, p.Text("text"), length, n)
	if err != nil {
		return nil, err
	}
	j := eval.NewJob(texts, 32)
	j.Config["source"] = source
	frequent := map[eval.LM]bigrams{} // by the tokens of each model
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		part := make([]string, len(which))
		for i, w := range which {
			part[i] = texts[w]
		}
		if s, ok := lm.(*eval.Subject); ok && frequent[lm] == nil {
			frequent[lm] = frequentIn(s, texts, p.Float("frequent"))
		}
		return askLM(ctx, lm, part, frequent[lm])
	}
	j.Finish = func(r *eval.Result) error { return finishLM(r, min(length, p.Context)) }
	return j, nil
}

// askLM scores pieces of text, token by token if the model reports them.
func askLM(ctx context.Context, lm eval.LM, texts []string, frequent bigrams) ([]eval.Answer, error) {
	t, ok := lm.(eval.Tokenwise)
	if !ok {
		scores, err := lm.LoglikelihoodRolling(ctx, texts)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(scores))
		for i, s := range scores {
			if s.Tokens == 0 {
				return nil, errors.New("a piece of text has no tokens")
			}
			out[i] = lmAnswer(texts[i], -s.LogProb, s.Tokens)
		}
		return out, nil
	}
	losses, err := t.Losses(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Answer, len(losses))
	for i, list := range losses {
		if len(list) == 0 {
			return nil, errors.New("a piece of text has no tokens")
		}
		sum := 0.0
		for _, x := range list {
			sum += x.Loss
		}
		out[i] = lmAnswer(texts[i], sum, len(list))
		if frequent != nil {
			recall(&out[i], list, frequent)
		}
		if err := out[i].SetDetail(stretches(list)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lmAnswer is a text's total loss per token, byte and word.
func lmAnswer(text string, nll float64, tokens int) eval.Answer {
	a := eval.Answer{Doc: map[string]any{"text": text}}
	a.Put("loss", nll, float64(tokens))
	a.Put("bits_per_byte", nll/math.Ln2, float64(len(text)))
	a.Put("nll_per_word", nll, float64(Words(text)))
	return a
}

// Words is the harness's word count: white space at the beginning or the end adds one.
func Words(text string) int { return len(space.FindAllStringIndex(text, -1)) + 1 }

// space is Python's white space, which includes non-ASCII space.
var space = regexp.MustCompile(`[\s\v\p{Z}\x{1c}-\x{1f}\x{85}]+`)

// positions is an answer's loss by position: the sum over each range between log-spaced positions. Only ranges that the
// text fills are present.
type positions struct {
	Ends []int     `json:"ends"`
	Sums []float64 `json:"sums"`
}

// stretches sums the first window of a text.
func stretches(list []eval.TokenLoss) positions {
	var p positions
	sum, k := 0.0, 0
	for i, x := range list {
		if x.Position != i+1 { // a second window
			break
		}
		sum += x.Loss
		if x.Position == logSpaced(k) {
			p.Ends, p.Sums = append(p.Ends, x.Position), append(p.Sums, sum)
			for sum = 0; logSpaced(k) <= x.Position; k++ {
			}
		}
	}
	return p
}

// logSpaced is the k-th of two positions per octave: 1, 1, 2, 3, 4, 6, 8, 12 …
func logSpaced(k int) int {
	if k%2 == 1 {
		return 3 << (k / 2) / 2
	}
	return 1 << (k / 2)
}

// LMDetail is the data of the figure of the task lm: the mean loss of all tokens up to each position, over the pieces
// that reach the last position, so that every point covers the same texts.
type LMDetail struct {
	Pieces     int          `json:"pieces"`      // texts in the curve
	Left       int          `json:"left_out"`    // texts that are too short for it
	ByPosition []AtPosition `json:"by_position"` // empty where texts are of too unequal length
}

// AtPosition is the mean loss of all tokens up to a position (from 1), as the paper plots it.
type AtPosition struct {
	Position int       `json:"position"`
	Loss     eval.Mean `json:"loss"`
}

func finishLM(r *eval.Result, length int) error {
	loss, _ := r.Metric("loss")
	r.Add("perplexity", "perplexity", eval.Lower, loss.Exp())
	r.Add("word_perplexity", "perplexity per word", eval.Lower, eval.MeanOf(r.Answers, "nll_per_word").Exp())
	bits, _ := r.Metric("bits_per_byte")
	r.Add("byte_perplexity", "perplexity per byte", eval.Lower, bits.Scaled(math.Ln2).Exp())
	if len(r.Answers[0].Detail) == 0 { // the model reports only sums
		return nil
	}
	list, err := eval.Details[positions](r.Answers)
	if err != nil {
		return err
	}
	return r.SetDetail(byPosition(list, length))
}

// byPosition is the curve up to the largest position, at most length, that at least half of the texts reach.
func byPosition(list []positions, length int) LMDetail {
	reach := make([]int, 0, len(list))
	for _, p := range list {
		last := 0
		for _, end := range p.Ends {
			if end <= length {
				last = end
			}
		}
		reach = append(reach, last)
	}
	slices.Sort(reach)
	end := reach[len(reach)/2]
	d := LMDetail{}
	var sums [][]float64 // of each text that reaches the end
	var ends []int
	for _, p := range list {
		k := slices.Index(p.Ends, end)
		if k < 0 {
			d.Left++
			continue
		}
		sums, ends = append(sums, p.Sums[:k+1]), p.Ends[:k+1]
	}
	d.Pieces = len(sums)
	for k, at := range ends {
		var m eval.Ratio
		for i := range sums {
			total := 0.0
			for _, x := range sums[i][:k+1] {
				total += x
			}
			m.Add(total, float64(at))
		}
		d.ByPosition = append(d.ByPosition, AtPosition{at, m.Mean()})
	}
	return d
}
