package metrics

import "slices"

// Steadiness measures how smoothly a run trained, as DIFF V2's page compares architectures.
type Steadiness struct {
	Steps      int     `json:"steps"`
	LossSpikes int     `json:"loss_spikes"` // times that the loss rose far above its running median, see Row.Warn
	GradSpikes int     `json:"grad_spikes"` // times that the gradient norm did
	Middle     float64 `json:"middle"`      // median gradient norm of the middle tenth
	Late       float64 `json:"late"`        // of the last tenth
	LateNoise  float64 `json:"late_noise"`  // of the last tenth: 10th to 90th percentile, divided by the median
	Largest    float64 `json:"largest"`     // gradient norm after the first tenth
}

// Steady computes it from a run's rows. A spike over several steps counts once.
func Steady(rows []Row) Steadiness {
	s := Steadiness{Steps: len(rows)}
	if len(rows) == 0 {
		return s
	}
	var last Warning
	norms := make([]float64, len(rows))
	for i, r := range rows {
		norms[i] = r.GradNorm
		fresh := r.Warn &^ last
		if fresh&LossSpike != 0 {
			s.LossSpikes++
		}
		if fresh&GradientSpike != 0 {
			s.GradSpikes++
		}
		last = r.Warn
	}
	n := len(norms)
	s.Largest = slices.Max(norms[n/10:])
	_, s.Middle, _ = deciles(norms[9*n/20 : max(11*n/20, 9*n/20+1)])
	low, mid, high := deciles(norms[n*9/10:])
	if s.Late = mid; mid > 0 {
		s.LateNoise = (high - low) / mid
	}
	return s
}

// deciles returns the 10th, 50th and 90th percentile.
func deciles(x []float64) (low, mid, high float64) {
	x = slices.Sorted(slices.Values(x))
	n := len(x) - 1
	return x[n/10], x[n/2], x[(9*n+9)/10]
}
