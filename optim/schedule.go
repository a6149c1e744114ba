package optim

import "math"

// schedules map progress after the warm-up, 0…1, to the fraction between the final rate (0) and the peak (1).
var schedules = map[string]func(x float64) float64{
	"constant": func(float64) float64 { return 1 },
	"linear":   func(x float64) float64 { return 1 - x },
	"cosine":   func(x float64) float64 { return 0.5 * (1 + math.Cos(math.Pi*x)) },
}

// Rate is the learning rate of step (counted from 0) of total: a linear warm-up to LR over Warmup steps,
// then the schedule down to FinalLR·LR at the last step.
func (c Config) Rate(step, total int) float64 {
	if step < c.Warmup {
		return c.LR * float64(step+1) / float64(c.Warmup)
	}
	x := 1.0
	if total-1 > c.Warmup {
		x = min(float64(step-c.Warmup)/float64(total-1-c.Warmup), 1)
	}
	return c.LR * (c.FinalLR + (1-c.FinalLR)*schedules[c.Schedule](x))
}
