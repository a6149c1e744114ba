package eval

import (
	"context"
	"math"

	"antiphase/data"
	"antiphase/model"
)

// LossOptions sizes the held-out loss.
type LossOptions struct {
	SeqLen  int // tokens per sequence
	Batches int // of the subject's batch size; a split that is used up ends the measurement
	Isolate bool
}

// LossResult is the held-out loss in nats per token, and how it falls with context.
type LossResult struct {
	Loss       Mean         `json:"loss"` // over sequences
	Perplexity float64      `json:"perplexity"`
	Tokens     int          `json:"tokens"`      // scored
	ByPosition []AtPosition `json:"by_position"` // cumulative
}

// AtPosition is the mean loss of all tokens up to a position (1-based), as the paper plots it.
type AtPosition struct {
	Position int     `json:"position"`
	Loss     float64 `json:"loss"`
}

// Loss measures a held-out split in its fixed order.
func Loss(ctx context.Context, s *Subject, sp *data.Split, opt LossOptions) (LossResult, error) {
	r, seq := LossResult{}, tally{}
	at, count := make([]float64, opt.SeqLen), make([]int, opt.SeqLen)
	err := s.splitRows(ctx, sp, opt, func(list []TokenLoss, places []int) {
		sum := 0.0
		for i, x := range list {
			sum += x.Loss
			at[places[i]] += x.Loss
			count[places[i]]++
		}
		if len(list) > 0 {
			seq.add(sum / float64(len(list)))
		}
		r.Tokens += len(list)
	})
	if err != nil {
		return LossResult{}, err
	}
	r.Loss, r.ByPosition = seq.mean(), cumulative(at, count)
	r.Perplexity = math.Exp(r.Loss.Value)
	return r, nil
}

// splitRows scores a held-out split in its fixed order and shows each sequence: the tokens that count, and the places (from 0) of the
// rows that predict them. Positions are counted in the window that the token sees: its document where documents are kept apart.
func (s *Subject) splitRows(ctx context.Context, sp *data.Split, opt LossOptions, show func(list []TokenLoss, places []int)) error {
	B, T := s.batch(), opt.SeqLen
	loader := data.NewLoader(sp, B, T, 0)
	b := model.Batch{B: B, T: T, IDs: make([]int32, B*T), Targets: make([]int32, B*T)}
	starts, losses := make([]int32, B*T), make([]float32, B*T)
	if opt.Isolate {
		b.Starts = starts
	}
	for range opt.Batches {
		if loader.Epoch() >= 1 { // a text read twice would make the error look smaller than it is
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		loader.Next(b.IDs, b.Targets, starts)
		if err := s.Model.Score(&b); err != nil {
			return err
		}
		s.Model.Losses(losses)
		for at := 0; at < B*T; at += T {
			var list []TokenLoss
			var places []int
			for t := range T {
				if id := b.Targets[at+t]; id >= 0 {
					position := t + 1
					if opt.Isolate {
						position -= int(starts[at+t])
					}
					list, places = append(list, TokenLoss{id, position, float64(losses[at+t])}), append(places, t)
				}
			}
			show(list, places)
		}
	}
	return nil
}

// cumulative averages over all positions up to each of a log-spaced set: 1, 2, 3, 4, 6, 8, 12, 16 … and the last.
func cumulative(sum []float64, count []int) []AtPosition {
	var out []AtPosition
	total, n, step := 0.0, 0, 0
	for t := range sum {
		total += sum[t]
		n += count[t]
		if t+1 >= logSpaced(step) || t == len(sum)-1 {
			out = append(out, AtPosition{t + 1, total / float64(max(n, 1))})
			for logSpaced(step) <= t+1 {
				step++
			}
		}
	}
	return out
}

// logSpaced is the k-th of two positions per octave: 2^(k/2), and 1.5·2^((k−1)/2) between them.
func logSpaced(k int) int {
	if k%2 == 1 {
		return 3 << (k / 2) / 2
	}
	return 1 << (k / 2)
}
