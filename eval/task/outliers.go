package task

import (
	"context"

	"antiphase/eval"
)

// The largest activations over many tokens (the paper's Table 5).
func init() {
	register(50, eval.Task{
		Name: "outliers", Version: 2, Shots: -1, Inside: true,
		Doc: "largest attention logits and hidden states over held-out text",
		Measures: []eval.Measure{
			{Name: "logits_max", Better: eval.Lower, Label: "largest attention logit of a sequence"},
			{Name: "hidden_max", Better: eval.Lower, Label: "largest hidden state of a sequence"},
		},
		Settings: append(textSettings(0),
			eval.Setting{Key: "tokens", Default: 16384, Rule: eval.AtLeast(2),
				Doc: "tokens examined, approximately; the paper takes 400,000"}),
		Valid:   validOutliers,
		Prepare: prepareOutliers,
	})
}

// outlierSums is the statistics of one sequence.
type outlierSums struct {
	Tokens int       `json:"tokens"`
	Logits magnitude `json:"logits"`
	Hidden magnitude `json:"hidden"`
}

// validOutliers rejects fewer tokens than one sequence has.
func validOutliers(p *eval.Plan) error {
	if n, length := p.Int("tokens"), sequenceLength(p); n < length {
		return eval.BadSetting("tokens is %d, must be at least those of one sequence, %d", n, length)
	}
	return validLength(p)
}

func prepareOutliers(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	texts, length, source, err := sequences(ctx, p, p.Limited(p.Int("tokens")/sequenceLength(p)))
	if err != nil {
		return nil, err
	}
	j := eval.NewJob(texts, 4)
	j.Config["source"] = source
	used := 0 // fewer than requested under a limit, or if there is less text
	for _, text := range texts {
		used += min(p.Count(text), length)
	}
	j.Config["used_tokens"] = used
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			b, probe := read(s, texts[w], length), &outlierProbe{dev: s.Model.Device()}
			if err := s.Model.Inspect(b, probe); err != nil {
				return nil, err
			}
			out[i] = eval.Answer{
				Values: map[string]float64{"logits_max": probe.logits.result().Top1,
					"hidden_max": probe.hidden.result().Top1},
				Doc: map[string]any{"text": texts[w]},
			}
			if err := out[i].SetDetail(outlierSums{b.T, probe.logits.kept(), probe.hidden.kept()}); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	j.Finish = finishOutliers
	return j, nil
}

func finishOutliers(r *eval.Result) error {
	list, err := eval.Details[outlierSums](r.Answers)
	if err != nil {
		return err
	}
	var logits, hidden extremes
	var d OutlierResult
	for i := range list {
		logits.merge(list[i].Logits)
		hidden.merge(list[i].Hidden)
		d.Tokens += list[i].Tokens
	}
	d.Logits, d.Hidden = logits.result(), hidden.result()
	for _, x := range []struct {
		name, label string
		Extreme
	}{{"logits", "attention logit", d.Logits}, {"hidden", "hidden state", d.Hidden}} {
		for i, v := range x.List() {
			r.Add(x.name+"_"+ExtremeNames[i], x.label+", "+extremeLabels[i], eval.Lower,
				eval.Mean{Value: v, N: d.Tokens})
		}
	}
	return r.SetDetail(d)
}

// ExtremeNames are the ranks of Extreme.List.
var ExtremeNames = []string{"top1", "top2", "top3", "top10", "top100", "median"}

var extremeLabels = []string{"largest", "2nd", "3rd", "10th", "100th largest", "median"}

// List is the ranks in order.
func (e Extreme) List() []float64 {
	return []float64{e.Top1, e.Top2, e.Top3, e.Top10, e.Top100, e.Median}
}
