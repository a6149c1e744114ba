package experiment

import (
	"fmt"
	"math"
	"slices"

	"antiphase/eval/report"
)

// slowBy is how many times longer than in other models of its size a FLOP of a side takes before there is a warning.
const slowBy = 10

// Speed is the time of training a side on one token, with the work that this is.
type Speed struct {
	Size, Arch string
	FLOPs      float64
	Seconds    float64 // of a fast step, per token
}

// slow is a side that is much slower than its work says.
type slow struct {
	Speed
	usual float64 // seconds per token at the median speed of the others of its size
}

// slows finds the sides that are slow. Sizes are not compared: a FLOP of a small model takes longer.
func slows(list []Speed) (out []slow) {
	for i, s := range list {
		var others []float64
		for k, o := range list {
			if k != i && o.Size == s.Size && o.Seconds > 0 {
				others = append(others, o.Seconds/o.FLOPs)
			}
		}
		if usual := middle(others) * s.FLOPs; usual > 0 && s.Seconds > slowBy*usual {
			out = append(out, slow{s, usual})
		}
	}
	return out
}

func (s *slow) String() string {
	return fmt.Sprintf(
		"%s %s is slow: %s tok/s; at the speed of others of its size its FLOPs allow %s, %.0f times as many",
		s.Size, s.Arch, report.Short(1/s.Seconds, 4), report.Short(1/s.usual, 4), s.Seconds/s.usual)
}

// Slow are sentences about the sides that are much slower than their FLOPs say, next to others of their size.
func Slow(list []Speed) (out []string) {
	for _, s := range slows(list) {
		out = append(out, s.String())
	}
	return out
}

// enoughSteps is how many steps of a run have its speed: some are slow because of what else the machine does.
const enoughSteps = 10

// speeds are those of the sides of which enough steps were measured.
func speeds(runs []prospect) (out []Speed) {
	for i := range runs {
		r := &runs[i]
		if r.steps < enoughSteps || r.quick == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(s Speed) bool { return s.Size == r.size && s.Arch == r.arch })
		if at < 0 {
			at = len(out)
			out = append(out, Speed{r.size, r.arch, r.flops, math.Inf(1)})
		}
		out[at].Seconds = min(out[at].Seconds, r.quick)
	}
	return out
}

// usually are the runs as if a slow side had the usual speed.
func (s *slow) usually(runs []prospect) []prospect {
	out := slices.Clone(runs)
	for i := range out {
		if r := &out[i]; r.size == s.Size && r.arch == s.Arch {
			r.perToken, r.quick, r.past, r.judge = s.usual, s.usual, 0, 0
		}
	}
	return out
}
