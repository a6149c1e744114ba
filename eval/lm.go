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
	B, T := s.batch(), opt.SeqLen
	loader := data.NewLoader(sp, B, T, 0)
	b := model.Batch{B: B, T: T, IDs: make([]int32, B*T), Targets: make([]int32, B*T)}
	starts, losses := make([]int32, B*T), make([]float32, B*T)
	if opt.Isolate {
		b.Starts = starts
	}
	r, seq := LossResult{}, tally{}
	at, count := make([]float64, T), make([]int, T)
	for range opt.Batches {
		if loader.Epoch() >= 1 { // a text read twice would make the error look smaller than it is
			break
		}
		if err := ctx.Err(); err != nil {
			return LossResult{}, err
		}
		loader.Next(b.IDs, b.Targets, starts)
		if err := s.Model.Score(&b); err != nil {
			return LossResult{}, err
		}
		s.Model.Losses(losses)
		for i := range B {
			sum, n := 0.0, 0
			for t := range T {
				if b.Targets[i*T+t] < 0 {
					continue
				}
				x := float64(losses[i*T+t])
				sum, n = sum+x, n+1
				at[t] += x
				count[t]++
			}
			if n > 0 {
				seq.add(sum / float64(n))
			}
			r.Tokens += n
		}
	}
	r.Loss, r.ByPosition = seq.mean(), cumulative(at, count)
	r.Perplexity = math.Exp(r.Loss.Value)
	return r, nil
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
