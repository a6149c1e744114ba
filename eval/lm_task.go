package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"antiphase/data"
)

// lmTasks is language modelling on held-out text: loss, perplexity, bits per byte, loss by position (the paper's Figure 4) and the
// loss on what could be recalled (its Table 6).
func lmTasks() []Task {
	return []Task{{
		Name: "lm", Version: 2, Shots: -1,
		Doc:      "held-out text: loss, perplexity, bits per byte; loss by position; AR-Hit and Others",
		Measures: []Measure{{"loss", lower}, {"bits_per_byte", lower}, {"ar_hit", lower}, {"others", lower}},
		Settings: []Setting{
			{"text", "", "held-out text, as \"antiphase train\" names sources; empty: lm/valid of --data, or generated"},
			{"length", 0, "tokens of a piece of text, about; 0: the context"},
			{"pieces", 200, "pieces of text, taken from all documents in turn"},
			{"frequent", 1e-3, "a bigram that makes up more of the text than this is no recall"},
		},
		Prepare: prepareLM,
	}}
}

func prepareLM(p *Plan) (*Job, error) {
	length := p.Int("length")
	if length == 0 {
		length = p.context
	}
	n := p.limit(p.Int("pieces"))
	if n < 1 || length < 0 || p.Float("frequent") < 0 {
		return nil, fmt.Errorf("pieces is %d, must be positive; length is %d and frequent is %g, must not be negative", n, length, p.Float("frequent"))
	}
	texts, err := p.heldOut(p.Text("text"), p.bytes(length), n)
	if err != nil {
		return nil, err
	}
	j := jobOf(texts, 32)
	frequent := map[LM]bigrams{} // by the tokens of each model
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		part := make([]string, len(which))
		for i, w := range which {
			part[i] = texts[w]
		}
		if s, ok := lm.(*Subject); ok && frequent[lm] == nil {
			frequent[lm] = s.frequent(texts, p.Float("frequent"))
		}
		return askLM(ctx, lm, part, frequent[lm])
	}
	j.Finish = finishLM
	return j, nil
}

// textHash tells texts apart, so that a log of other texts is not continued.
func textHash(texts ...string) string {
	h := fnv.New64a()
	for _, text := range texts {
		h.Write(append([]byte(text), 0))
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// heldOut gives n pieces of held-out text of about so many bytes. Generated text is of a seed that training does not use.
func (p *Plan) heldOut(spec string, bytes, n int) (out []string, err error) {
	switch {
	case spec == "" && p.Data != "":
		spec, err = p.find("lm/valid")
	case spec == "":
		spec = fmt.Sprintf("synthetic:docs=%d,len=%d,mix=needle:4+kv:4+prose:1,seed=%d", n, min(max(bytes, 128), 1<<24), p.Seed+1<<40)
	}
	if err != nil {
		return nil, err
	}
	src, err := data.Open(spec)
	if err != nil {
		return nil, err
	}
	var docs []string
	const most = 4096 // documents: enough for any number of pieces worth waiting for
	for d, err := range src.Documents(context.Background()) {
		if err != nil {
			return nil, err
		}
		if docs = append(docs, d.Text); len(docs) == most {
			break
		}
	}
	for k, found := 0, true; found; k++ { // the k-th piece of every document in turn
		found = false
		for _, text := range docs {
			if piece := cutText(text, k*bytes, bytes); strings.TrimSpace(piece) != "" {
				out, found = append(out, piece), true
			}
			if len(out) == n {
				return out, nil
			}
		}
	}
	return out, nil
}

// cutText is text[at:at+n] moved to whole characters; a piece that the text cannot fill is taken only at its beginning.
func cutText(text string, at, n int) string {
	if at > 0 && at+n > len(text) {
		return ""
	}
	end := min(at+n, len(text))
	for at < end && !utf8.RuneStart(text[at]) {
		at++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return text[at:end]
}

// askLM scores pieces of text, token by token where the model shows them.
func askLM(ctx context.Context, lm LM, texts []string, frequent bigrams) ([]Answer, error) {
	t, ok := lm.(Tokenwise)
	if !ok {
		scores, err := lm.LoglikelihoodRolling(ctx, texts)
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(scores))
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
	out := make([]Answer, len(losses))
	for i, list := range losses {
		if len(list) == 0 {
			return nil, errors.New("a piece of text has no tokens")
		}
		sum := 0.0
		for _, x := range list {
			sum += x.Loss
		}
		out[i] = lmAnswer(texts[i], sum, len(list))
		out[i].byPosition(list)
		if frequent != nil {
			out[i].recall(list, frequent)
		}
	}
	return out, nil
}

// lmAnswer is a text's total loss per token, byte and word.
func lmAnswer(text string, nll float64, tokens int) Answer {
	a := Answer{Values: map[string]float64{}, Weights: map[string]float64{}, Doc: map[string]any{"text": text}}
	a.put("loss", nll, float64(tokens))
	a.put("bits_per_byte", nll/math.Ln2, float64(len(text)))
	a.put("nll_per_word", nll, float64(len(space.FindAllStringIndex(text, -1))+1)) // the harness's count: an end in white space adds one
	return a
}

// space is white space as the harness's language sees it, which goes beyond ASCII.
var space = regexp.MustCompile(`[\s\v\p{Z}\x{1c}-\x{1f}\x{85}]+`)

// put keeps sum/n as the mean of n units, where there are any.
func (a *Answer) put(name string, sum, n float64) {
	if n > 0 {
		a.Values[name], a.Weights[name] = sum/n, n
	}
}

// byPosition keeps the loss of each stretch between log-spaced positions.
func (a *Answer) byPosition(list []TokenLoss) {
	sum, n := map[int]float64{}, map[int]float64{}
	for _, x := range list {
		at := 0
		for logSpaced(at) < x.Position {
			at++
		}
		sum[logSpaced(at)] += x.Loss
		n[logSpaced(at)]++
	}
	for at, s := range sum {
		a.put(fmt.Sprintf("at.%d", at), s, n[at])
	}
}

// LMDetail is what the figure of the task lm is drawn from.
type LMDetail struct {
	ByPosition []AtPosition `json:"by_position"` // mean loss of all tokens up to each position
}

func finishLM(r *Result) error {
	loss, _ := r.Metric("loss")
	r.Add("perplexity", lower, loss.exp())
	r.Add("word_perplexity", lower, meanOf(r.Answers, "nll_per_word").exp())
	bits, _ := r.Metric("bits_per_byte")
	r.Add("byte_perplexity", lower, bits.scaled(math.Ln2).exp())
	var d LMDetail
	sum, n := 0.0, 0.0
	for k := 0; k < 64; k++ {
		at := logSpaced(k)
		if k > 0 && at == logSpaced(k-1) {
			continue
		}
		name, had := fmt.Sprintf("at.%d", at), n
		for i := range r.Answers {
			if x, ok := r.Answers[i].Values[name]; ok {
				w := r.Answers[i].weight(name)
				sum, n = sum+w*x, n+w
			}
		}
		if n > had {
			d.ByPosition = append(d.ByPosition, AtPosition{at, sum / n})
		}
	}
	return r.SetDetail(d)
}
