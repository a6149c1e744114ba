package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
)

// Speed (the paper's Table 7): of the model's shape with random weights, on random tokens, which cost the same.
func init() {
	register(80, eval.Task{
		Name: "throughput", Version: 1, Shots: -1, Inside: true, Timed: true,
		Doc: "tokens per second of a forward pass, and of a forward and backward pass",
		Measures: []eval.Measure{
			{Name: "forward", Better: eval.Higher, Label: "forward, tokens/s"},
			{Name: "forward_backward", Better: eval.Higher, Label: "forward and backward, tokens/s"},
		},
		Settings: []eval.Setting{
			{Key: "lengths", Default: []int{0}, Rule: eval.AtLeast(0), Doc: "tokens of a sequence; 0: the context"},
			{Key: "tokens", Default: 2048, Rule: eval.AtLeast(1), Doc: "in a batch, at least one sequence"},
			{Key: "reps", Default: 5, Rule: eval.AtLeast(1), Doc: "measured, after one that warms up"},
		},
		Valid:   validLengths,
		Prepare: prepareThroughput,
	})
}

// ThroughputDetail is the table of the task throughput.
type ThroughputDetail struct {
	Rows []ThroughputRow `json:"rows"`
}

// ThroughputRow is one length, in tokens per second.
type ThroughputRow struct {
	Length          int       `json:"length"`
	Batch           int       `json:"batch"`
	Forward         eval.Mean `json:"forward"`
	ForwardBackward eval.Mean `json:"forward_backward"`
}

func prepareThroughput(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	reps := p.Int("reps")
	var rows []ThroughputRow
	j := &eval.Job{Chunk: reps}
	for _, n := range needleLengths(p) {
		rows = append(rows, ThroughputRow{Length: n, Batch: max(1, p.Int("tokens")/n)})
		for k := range reps {
			j.IDs = append(j.IDs, fmt.Sprintf("length=%d %d", n, k))
		}
	}
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		s.Close() // its cache is memory that training needs
		var out []eval.Answer
		for len(which) > 0 {
			row, n := rows[which[0]/reps], 0
			for n < len(which) && which[n]/reps == which[0]/reps {
				n++
			}
			got, err := speed(ctx, s, row, n)
			if err != nil {
				return nil, err
			}
			out, which = append(out, got...), which[n:]
		}
		return out, nil
	}
	j.Finish = func(r *eval.Result) error {
		var d ThroughputDetail
		for i, row := range rows {
			part := r.Answers[i*reps : (i+1)*reps]
			row.Forward, row.ForwardBackward = eval.MeanOf(part, "forward"), eval.MeanOf(part, "forward_backward")
			d.Rows = append(d.Rows, row)
		}
		return r.SetDetail(d)
	}
	return j, nil
}

// speed times a twin of the model that can be trained.
func speed(ctx context.Context, s *eval.Subject, row ThroughputRow, reps int) ([]eval.Answer, error) {
	d := s.Model.Device()
	twin, err := model.New(d, s.Model.Config, layer.Memory{Train: true})
	if err != nil {
		return nil, err
	}
	defer twin.Free()
	twin.Init(1)
	n := row.Batch * row.Length
	b := &model.Batch{B: row.Batch, T: row.Length, IDs: make([]int32, n), Targets: make([]int32, n)}
	g := rand.New(rand.NewPCG(1, 1))
	for i := range b.IDs {
		b.IDs[i], b.Targets[i] = int32(g.IntN(twin.Config.Vocab)), int32(g.IntN(twin.Config.Vocab))
	}
	rate := func(f func() error) (float64, error) {
		begin := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		err := d.Sync()
		return float64(n) / time.Since(begin).Seconds(), err
	}
	var out []eval.Answer
	for i := range reps + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		forward, err := rate(func() error { return twin.Score(b) })
		if err != nil {
			return nil, err
		}
		both, err := rate(func() error { return twin.Backprop(b, 1/float64(n)) })
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, eval.Answer{Values: map[string]float64{"forward": forward, "forward_backward": both}})
		}
	}
	return out, nil
}
