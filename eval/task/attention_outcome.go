package task

import (
	"fmt"

	"antiphase/eval"
)

// outcome is the mean that a prompt's gaze belongs to.
func (r *AttentionResult) outcome(right bool) *Outcome {
	to := &r.Wrong
	if right {
		to = &r.Right
	}
	if *to == nil {
		*to = &Outcome{}
	}
	return *to
}

// take adds one gaze to the running mean.
func (o *Outcome) take(g *HeadGaze) {
	o.N++
	w := 1 / float64(o.N)
	old := o.Gaze
	o.Gaze = HeadGaze{}
	o.Gaze.add(&old, 1-w)
	o.Gaze.add(g, w)
}

// addTo adds the outcome's shares to the metrics, for the last length.
func (o *Outcome) addTo(r *eval.Result, name, when string, length int, lengths []int) {
	if o == nil || length != len(lengths)-1 {
		return
	}
	for _, x := range []struct {
		key, what string
		value     float64
	}{
		{"answer_" + name, "attention to the answer", o.Gaze.Magnitude.Answer},
		{"noise_" + name, "attention noise", o.Gaze.Magnitude.Noise()},
		{"value_answer_" + name, "answer, weighted by values", o.Gaze.Value.Answer},
	} {
		r.Add(x.key, fmt.Sprintf("%s %s, %%", x.what, when), eval.Neither, eval.Mean{Value: x.value, N: o.N})
	}
}
