package experiment

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// stage is how far a run has come.
type stage int

const (
	waiting stage = iota
	training
	judging
	finished
)

// prospect is a run as the forecast sees it. Times are in seconds; 0 is one that was not measured.
type prospect struct {
	side
	stage           stage
	flops           float64 // of training on a token
	tokens, trained int64   // in all, and so far
	steps           int     // of this call
	start           float64 // until the first step
	perToken        float64 // lately, with everything that interrupts training
	quick           float64 // per token of the fastest step
	past            float64 // per token in an earlier call on this machine
	judge           float64 // after the last step; of a run that is being judged, so far
}

// outlook is the forecast of an experiment.
type outlook struct {
	share float64 // of all work, in time
	left  float64 // seconds to the end; NaN as long as nothing has been measured
}

// forecast computes the outlook of runs that are begun in this order by a number of workers; the first tuning runs end
// before the others begin. A run in progress continues at its own speed. Others have that of their side, or else that
// of sides of about their size, by FLOPs.
func forecast(runs []prospect, tuning, workers int) outlook {
	rates, measured := ratesOf(runs)
	free := make([]float64, 0, workers) // when each worker is free
	left := make([]float64, len(runs))
	all, rest, open := 0.0, 0.0, false
	for i := range runs {
		var whole float64
		whole, left[i] = rates[runs[i].side].of(&runs[i])
		all, rest = all+whole, rest+left[i]
		if s := runs[i].stage; s == training || s == judging {
			free = append(free, left[i])
		}
		open = open || i < tuning && runs[i].stage != finished
	}
	for len(free) < max(workers, 1) {
		free = append(free, 0)
	}
	for i := range runs {
		if i == tuning && open {
			end := slices.Max(free)
			for k := range free {
				free[k] = end
			}
		}
		if runs[i].stage == waiting {
			next := slices.Index(free, slices.Min(free))
			free[next] += left[i]
		}
	}
	out := outlook{left: slices.Max(free)}
	if !measured {
		out.left = math.NaN()
	}
	if all > 0 {
		out.share = (all - rest) / all
	}
	return out
}

// rates are the times of the runs of a side.
type rates struct{ flops, start, perToken, judge float64 }

// of are the times of a whole run and of what is left of it.
func (s *rates) of(r *prospect) (whole, left float64) {
	perToken, start, judge := cmp.Or(r.perToken, s.perToken), cmp.Or(r.start, s.start), s.judge
	rest := float64(r.tokens-r.trained) * perToken
	switch r.stage {
	case finished:
		if r.trained < r.tokens { // it diverged and was not judged
			judge = 0
		}
		return start + float64(r.trained)*perToken + cmp.Or(r.judge, judge), 0
	case judging:
		judge = max(judge, r.judge)
		left = judge - r.judge
	case training:
		left = rest + judge
	case waiting:
		left = start + rest + judge
	}
	return start + float64(r.tokens)*perToken + judge, left
}

// ratesOf are the rates of every side; measured reports whether any was measured. Without that a FLOP counts a second.
func ratesOf(runs []prospect) (out map[side]*rates, measured bool) {
	out = map[side]*rates{}
	known := map[side]*rates{}
	starts := []float64{}
	for side, t := range measuresOf(runs) {
		s := &rates{flops: t.flops, start: middle(t.start), judge: middle(t.judge)}
		s.perToken = cmp.Or(middle(t.perToken), middle(t.quick), middle(t.past))
		if out[side] = s; s.perToken > 0 {
			known[side] = s
		}
		starts = append(starts, t.start...)
	}
	tokens := judgedTokens(known)
	for _, s := range out {
		s.start = cmp.Or(s.start, middle(starts))
		s.perToken = cmp.Or(s.perToken, s.flops*perFLOP(known, s.flops))
		s.judge = cmp.Or(s.judge, tokens*s.perToken)
	}
	return out, len(known) > 0
}

// measures are what was measured of the runs of a side.
type measures struct {
	flops                               float64
	start, perToken, quick, past, judge []float64
}

func measuresOf(runs []prospect) map[side]*measures {
	out := map[side]*measures{}
	for i := range runs {
		r := &runs[i]
		t := out[r.side]
		if t == nil {
			t = &measures{flops: r.flops}
			out[r.side] = t
		}
		whole := r.judge
		if r.stage != finished {
			whole = 0
		}
		for _, x := range []struct {
			list  *[]float64
			value float64
		}{{&t.start, r.start}, {&t.perToken, r.perToken}, {&t.quick, r.quick}, {&t.past, r.past}, {&t.judge, whole}} {
			if x.value > 0 {
				*x.list = append(*x.list, x.value)
			}
		}
	}
	return out
}

// judgedTokens is the number of tokens that a side trains in the time in which it is judged, the median of those known.
func judgedTokens(known map[side]*rates) float64 {
	var list []float64
	for _, s := range known {
		if s.judge > 0 {
			list = append(list, s.judge/s.perToken)
		}
	}
	return middle(list)
}

// perFLOP is the time of a FLOP, for a side that was not measured: the median of the sides of the size that has the one
// nearest to it. 1 if none was measured.
func perFLOP(known map[side]*rates, flops float64) float64 {
	if len(known) == 0 {
		return 1
	}
	far := func(s side) float64 { return math.Abs(math.Log(known[s].flops / flops)) }
	near := slices.MinFunc(slices.Collect(maps.Keys(known)), func(a, b side) int {
		return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a.size, b.size))
	})
	var list []float64
	for side, s := range known {
		if side.size == near.size {
			list = append(list, s.perToken/s.flops)
		}
	}
	return middle(list)
}

// middle is the median, 0 for none.
func middle(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return median(list)
}
