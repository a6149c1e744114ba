package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"antiphase/data"
	"antiphase/metrics"
)

// JudgeOptions sizes a speedrun's judgement of one model.
type JudgeOptions struct {
	Valid    *data.Split
	SeqLen   int
	Isolate  bool
	Metrics  string // the run's metrics.jsonl: curve, speed
	Progress func(what string)
}

// Judge measures one side of a speedrun. The same options ask every model the same questions.
func Judge(ctx context.Context, s *Subject, opt JudgeOptions) (*Side, error) {
	defer s.Close()
	side := &Side{Name: s.Name, Arch: s.Model.Config.Arch, Parameters: s.Model.Params.Count()}
	stages := []struct {
		what string
		do   func() error
	}{
		{"training curve", func() (err error) { return readMetrics(opt.Metrics, side) }},
		{"held-out loss", func() (err error) {
			side.Loss, err = Loss(ctx, s, opt.Valid, LossOptions{SeqLen: opt.SeqLen, Batches: 8, Isolate: opt.Isolate})
			return err
		}},
		{"one needle", func() error { return judgeNeedle(ctx, s, side, 1, 1) }},
		{"two of four needles", func() error { return judgeNeedle(ctx, s, side, 4, 2) }},
		{"attention to the answer", func() (err error) {
			side.Attention, err = Attention(ctx, s, judgeNeedles(s, 4, 1, 20))
			return err
		}},
		{"largest activations", func() (err error) {
			side.Outliers, err = Outliers(ctx, s, opt.Valid, opt.SeqLen, 8)
			return err
		}},
		{"maps", func() error { return judgeMaps(ctx, s, side) }},
		{"samples", func() error { return judgeSamples(ctx, s, side) }},
	}
	for _, st := range stages {
		if opt.Progress != nil {
			opt.Progress(st.what)
		}
		if err := st.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", st.what, err)
		}
	}
	return side, nil
}

// judgeNeedles are the test's options: prompts as long as the training documents, which fill about half the context.
func judgeNeedles(s *Subject, needles, queries, samples int) NeedleOptions {
	return NeedleOptions{Needles: needles, Queries: queries, Depths: Depths, Samples: samples, Bytes: s.Model.Config.Context * 2, Seed: 20}
}

func judgeNeedle(ctx context.Context, s *Subject, side *Side, needles, queries int) error {
	r, err := Needle(ctx, s, judgeNeedles(s, needles, queries, 50))
	side.Needles = append(side.Needles, r)
	return err
}

func judgeMaps(ctx context.Context, s *Subject, side *Side) error {
	opt := data.NeedleOptions{Needles: 2, Depth: 0.5, Bytes: 320}
	m, err := Maps(ctx, s, data.NewNeedle(rand.New(rand.NewPCG(21, 0)), opt), MapOptions{})
	side.Maps = append(side.Maps, m)
	if err != nil {
		return err
	}
	// λ of the last pass: for DIFF the layer's own, for DIFF V2 the mean over this prompt.
	side.Lambda = s.Model.Lambdas(nil)
	return nil
}

func judgeSamples(ctx context.Context, s *Subject, side *Side) error {
	g := rand.New(rand.NewPCG(22, 0))
	prompts := []string{"The old ", data.NewNeedle(g, data.NeedleOptions{Needles: 2, Queries: 2, Depth: 0.3, Bytes: 400}).Prompt, data.Prose(g, 120)}
	reqs := make([]Generation, len(prompts))
	for i, p := range prompts {
		reqs[i] = Generation{Prompt: p, MaxTokens: 48}
	}
	out, err := s.GenerateUntil(ctx, reqs)
	for i := range out {
		side.Samples = append(side.Samples, Sample{prompts[i], out[i]})
	}
	return err
}

// readMetrics takes the loss curve (at most a few hundred points) and the median speed from a run's rows.
func readMetrics(path string, side *Side) error {
	rows, err := metrics.Read(path, nil)
	if err != nil {
		return err
	}
	var speeds []float64
	var all []CurvePoint
	for _, r := range rows {
		all = append(all, CurvePoint{Step: r.Step, Loss: r.LossEMA, Valid: r.Valid})
		speeds = append(speeds, r.TokS)
		side.TrainTokens = r.Tokens
	}
	slices.Sort(speeds)
	if len(speeds) > 0 {
		side.TokensPerSecond = speeds[len(speeds)/2]
	}
	stride := max(len(all)/300, 1)
	for i, p := range all {
		if i%stride == 0 || !math.IsNaN(p.Valid) || i == len(all)-1 {
			side.Curve = append(side.Curve, p)
		}
	}
	return nil
}
