package main

import (
	"fmt"

	"antiphase/eval"
	"antiphase/metrics"
)

// heldOutLosses are the held-out losses of a run by tokens seen.
func (a *app) heldOutLosses(path string) ([]eval.ScalingPoint, error) {
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
