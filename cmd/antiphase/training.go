package main

import (
	"fmt"
	"math"
	"slices"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/metrics"
)

// trainingOf describes a run: its curve (at most a few hundred points), its tokens and its median speed.
func trainingOf(a *app, name, path string) (report.Training, error) {
	t := report.Training{Model: name}
	rows, err := metrics.Read(path, func(s string) { a.note("warning: %s", s) })
	if err != nil || len(rows) == 0 {
		return t, err
	}
	var speeds []float64
	stride := max(len(rows)/300, 1)
	most := 0.0
	for i, r := range rows {
		speeds, most = append(speeds, r.TokS), max(most, r.GradNorm)
		t.AddGroups(r.Step, r.Groups)
		held := !math.IsNaN(r.Valid)
		if i%stride != 0 && !held && i < len(rows)-1 {
			continue
		}
		p := report.CurvePoint{Step: r.Step, Loss: r.LossEMA, Grad: most}
		most = 0
		if held {
			p.Valid = &r.Valid
		}
		t.Curve = append(t.Curve, p)
	}
	steady := metrics.Steady(rows)
	t.Steady = &steady
	slices.Sort(speeds)
	t.Tokens, t.TokensPerSecond = rows[len(rows)-1].Tokens, speeds[len(speeds)/2]
	return t, nil
}

// heldOutLosses are the held-out losses of a run by tokens seen.
func heldOutLosses(a *app, path string) ([]eval.ScalingPoint, error) {
	rows, err := metrics.Read(path, func(s string) { a.note("warning: %s", s) })
	if err != nil {
		return nil, err
	}
	var out []eval.ScalingPoint
	for _, r := range rows {
		if r.Valid > 0 && r.Tokens > 0 {
			out = append(out, eval.ScalingPoint{X: float64(r.Tokens), Loss: r.Valid})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no held-out loss; train with --set data.held_out above 0", path)
	}
	return out, nil
}

// noExperiment rejects the folder of an experiment, whose token set training would replace by its own.
func noExperiment(dir string) error {
	if experiment.Is(dir) {
		return usage(fmt.Errorf("--dir: %s is the folder of an experiment (compare, speedrun); name another", dir))
	}
	return nil
}
