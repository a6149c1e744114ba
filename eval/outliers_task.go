package eval

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"antiphase/model"
)

// outlierTasks is the largest activations over many tokens (the paper's Table 5).
func outlierTasks() []Task {
	return []Task{{
		Name: "outliers", Version: 1, Shots: -1, Inside: true,
		Doc:      "largest attention logits and hidden states over held-out text",
		Measures: []Measure{{"logits_max", lower}, {"hidden_max", lower}},
		Settings: append(textSettings(0), Setting{"tokens", 16384, "looked at, about; the paper takes 400,000"}),
		Prepare:  prepareOutliers,
	}}
}

// textSettings are those of every task that looks into the model while it reads held-out text.
func textSettings(length int) []Setting {
	return []Setting{
		{"text", "", "held-out text: a file or folder; empty: lm/valid of --data, or generated documents without it"},
		{"length", length, "tokens of a sequence; 0: the context"},
	}
}

// sequences are n held-out texts to be read by each model, and the tokens of each that it reads.
func (p *Plan) sequences(n int) (texts []string, length int, err error) {
	if length = p.Int("length"); length == 0 {
		length = p.context
	}
	if length < 2 || length > p.context {
		return nil, 0, fmt.Errorf("length is %d, must be 2 to the context, %d tokens", length, p.context)
	}
	if n < 1 {
		return nil, 0, fmt.Errorf("there would be %d sequences of %d tokens; want one or more", n, length)
	}
	// Longer texts than needed, so that tokens are not short; what is over is not read.
	texts, err = p.heldOut(p.Text("text"), 2*p.bytes(length), n)
	return texts, length, err
}

// read are a text's tokens, at most length of them.
func (s *Subject) read(text string, length int) *model.Batch {
	ids := s.encode(text)
	ids = ids[:min(len(ids), length)]
	return &model.Batch{B: 1, T: len(ids), IDs: ids}
}

func prepareOutliers(p *Plan) (*Job, error) {
	length := p.Int("length")
	if length == 0 {
		length = p.context
	}
	texts, length, err := p.sequences(p.limit(p.Int("tokens") / max(length, 1)))
	if err != nil {
		return nil, err
	}
	j := jobOf(texts, 4)
	j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
		s := lm.(*Subject)
		out := make([]Answer, len(which))
		for i, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			b, probe := s.read(texts[w], length), &outlierProbe{dev: s.Model.Device()}
			if err := s.Model.Inspect(b, probe); err != nil {
				return nil, err
			}
			a := Answer{Values: map[string]float64{"tokens": float64(b.T)}, Doc: map[string]any{"text": texts[w]}}
			probe.logits.keep(&a, "logits")
			probe.hidden.keep(&a, "hidden")
			out[i] = a
		}
		return out, nil
	}
	j.Finish = finishOutliers
	return j, nil
}

// keep writes what was seen as values of an answer: the largest, the hundred largest and the filled bins.
func (e *extremes) keep(a *Answer, what string) {
	a.Values[what+"_max"] = e.result().Top1
	for i, x := range e.top {
		a.Values[fmt.Sprintf("%s.top.%d", what, i)] = x
	}
	for i, n := range e.bins {
		if n > 0 {
			a.Values[fmt.Sprintf("%s.bin.%d", what, i)] = float64(n)
		}
	}
}

// extremes reads what keep wrote.
func (a *Answer) extremes(what string) *extremes {
	e := &extremes{}
	for i := range keepTop {
		if x, ok := a.Values[fmt.Sprintf("%s.top.%d", what, i)]; ok {
			e.top = append(e.top, x)
		}
	}
	for name, n := range a.Values {
		if k, ok := strings.CutPrefix(name, what+".bin."); ok {
			if i, err := strconv.Atoi(k); err == nil && i >= 0 && i < bins {
				e.bins[i] = int(n)
				e.n += int(n)
			}
		}
	}
	return e
}

func finishOutliers(r *Result) error {
	var logits, hidden extremes
	var d OutlierResult
	for i := range r.Answers {
		a := &r.Answers[i]
		logits.merge(a.extremes("logits"))
		hidden.merge(a.extremes("hidden"))
		d.Tokens += int(a.Values["tokens"])
	}
	d.Logits, d.Hidden = logits.result(), hidden.result()
	for _, x := range []struct {
		name string
		Extreme
	}{{"logits", d.Logits}, {"hidden", d.Hidden}} {
		for i, v := range x.list() {
			r.Add(x.name+"_"+extremeNames[i], lower, Mean{Value: v, N: d.Tokens})
		}
	}
	return r.SetDetail(d)
}

var extremeNames = []string{"top1", "top2", "top3", "top10", "top100", "median"}

func (e Extreme) list() []float64 {
	return []float64{e.Top1, e.Top2, e.Top3, e.Top10, e.Top100, e.Median}
}
