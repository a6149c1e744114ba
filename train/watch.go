package train

import (
	"slices"

	"antiphase/metrics"
)

// watch detects anomalies of a step relative to earlier steps. A condition that lasts is reported once, when it begins;
// every step that has one is counted.
type watch struct {
	norms, losses window
	last          metrics.Warning // of the previous step
	steps         int             // steps with a warning
}

// Limits: the range of λ, the largest ratio of a gradient norm to its median, and how far a loss may be above its
// median, in median deviations (eight are five standard deviations of a normal distribution) and as a fraction.
const (
	lambdaLow, lambdaHigh = 0, 1.5
	normTimes             = 10
	lossDeviations        = 8
	lossShare             = 0.1
)

// seen takes a row as it was judged, at a resume.
func (w *watch) seen(r *Row) {
	w.norms.add(r.GradNorm)
	w.losses.add(r.Loss)
	if w.last = r.Warn; r.Warn != 0 {
		w.steps++
	}
}

// judge sets the row's warnings and says each that is new.
func (w *watch) judge(r *Row, say func(string, ...any)) {
	r.Warn = 0
	if r.LambdaMin < lambdaLow || r.LambdaMax > lambdaHigh {
		r.Warn |= metrics.LambdaRange
	}
	norm, _, ok := w.norms.median()
	if ok && r.GradNorm > normTimes*norm {
		r.Warn |= metrics.GradientSpike
	}
	loss, deviation, ok := w.losses.median()
	if ok && r.Loss-loss > max(lossDeviations*deviation, lossShare*loss) {
		r.Warn |= metrics.LossSpike
	}
	fresh := r.Warn &^ w.last
	w.seen(r)
	r.Warnings = w.steps
	if fresh&metrics.LambdaRange != 0 {
		say("warning: step %d: λ from %.2f to %.2f, outside [%g, %g]", r.Step, r.LambdaMin, r.LambdaMax,
			float64(lambdaLow), lambdaHigh)
	}
	if fresh&metrics.GradientSpike != 0 {
		say("warning: step %d: gradient norm %.3g, more than %d times its running median of %.3g", r.Step, r.GradNorm,
			normTimes, norm)
	}
	if fresh&metrics.LossSpike != 0 {
		say("warning: step %d: loss %.4f, its running median is %.4f", r.Step, r.Loss, loss)
	}
}

// window is the last values of a series.
type window struct {
	values, sorted [101]float64
	n              int // values ever added
}

func (w *window) add(x float64) {
	w.values[w.n%len(w.values)] = x
	w.n++
}

// median is the median of the values and of their distances from it; ok is false while there are too few.
func (w *window) median() (mid, deviation float64, ok bool) {
	n := min(w.n, len(w.values))
	if n < 20 {
		return 0, 0, false
	}
	s := w.sorted[:n]
	copy(s, w.values[:n])
	slices.Sort(s)
	mid = s[n/2]
	for i, x := range s {
		s[i] = max(x-mid, mid-x)
	}
	slices.Sort(s)
	return mid, s[n/2], true
}
