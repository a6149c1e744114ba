package task

import (
	"context"
	"errors"
	"strconv"

	"antiphase/eval"
	"antiphase/layer"
)

// eachHead applies one intervention to every head separately and measures the change in loss: which heads a model
// needs.
type eachHead struct {
	name  string // empty: nothing is asked
	v     layer.Intervention
	texts []string
}

// headLoss is one text's change of the mean loss, by layer and head.
type headLoss struct {
	Change [][]float64 `json:"change"`
}

func newEachHead(text string, texts []string) (*eachHead, error) {
	if text == "" {
		return &eachHead{}, nil
	}
	v, err := layer.ParseIntervention(text)
	if err == nil && len(v.Layers)+len(v.Heads) > 0 {
		err = errors.New("it is done to every head; leave the place out")
	}
	if err != nil {
		return nil, err
	}
	return &eachHead{name: text, v: v, texts: texts}, nil
}

func digits(i int) string { return strconv.Itoa(i) }

func (e *eachHead) ids() (out []string) {
	for i := range e.texts {
		out = append(out, "each "+digits(i))
	}
	return out
}

func (e *eachHead) ask(ctx context.Context, s *eval.Subject, which []int) (out []eval.Answer, err error) {
	defer func() { err = errors.Join(err, s.Intervene()) }()
	for _, w := range which {
		var a eval.Answer
		if canIntervene(e.v)(s) {
			x, err := e.losses(ctx, s, e.texts[w])
			if err != nil {
				return nil, err
			}
			if err := a.SetDetail(x); err != nil {
				return nil, err
			}
		} else if err := a.SetDetail(headLoss{}); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// losses runs one text with the intervention on each head.
func (e *eachHead) losses(ctx context.Context, s *eval.Subject, text string) (x headLoss, err error) {
	if err := s.Intervene(); err != nil {
		return x, err
	}
	plain, err := meanLoss(ctx, s, text)
	if err != nil {
		return x, err
	}
	for l := range s.Model.Config.Layers {
		row := make([]float64, s.Model.Config.Heads)
		for h := range row {
			v := e.v
			v.Layers, v.Heads = []int{l}, []int{h}
			if err := s.Intervene(v); err != nil {
				return x, err
			}
			changed, err := meanLoss(ctx, s, text)
			if err != nil {
				return x, err
			}
			row[h] = changed - plain
		}
		x.Change = append(x.Change, row)
	}
	return x, nil
}

// meanLoss is a text's loss per token.
func meanLoss(ctx context.Context, s *eval.Subject, text string) (float64, error) {
	scores, err := s.LoglikelihoodRolling(ctx, []string{text})
	if err != nil {
		return 0, err
	}
	if scores[0].Tokens == 0 {
		return 0, errors.New("a piece of text has no tokens")
	}
	return -scores[0].LogProb / float64(scores[0].Tokens), nil
}

// change is the mean over texts.
func (e *eachHead) change(answers []eval.Answer) ([][]float64, error) {
	list, err := eval.Details[headLoss](answers)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := list[0].Change
	for _, x := range list[1:] {
		for l := range x.Change {
			for h := range x.Change[l] {
				out[l][h] += x.Change[l][h]
			}
		}
	}
	for l := range out {
		for h := range out[l] {
			out[l][h] /= float64(len(list))
		}
	}
	return out, nil
}
