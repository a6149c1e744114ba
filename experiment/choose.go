package experiment

import (
	"cmp"
	"math"
	"slices"

	"antiphase/eval"
)

// heldOut is the measure that selects learning rates unless the experiment names another.
const heldOut = "train.valid_loss"

// side is one size and architecture of an experiment.
type side struct{ size, arch string }

// trial is one run among those that choose a side's learning rate.
type trial struct {
	lr   float64
	seed uint64
}

// outcome is the result of a trial. Lower is better in both; a run that diverged has +Inf.
type outcome struct{ score, loss float64 }

// Choose finds the best learning rate of each size and architecture: the one with the best mean of the measure named in
// the rows, or the lowest mean held-out loss, over the seeds that every rate of the side has finished. Ties go to the
// lower held-out loss, then to the lower rate. Every rate is judged on the same seeds; a rate with a diverged run loses
// to every other.
func Choose(rows []Row) map[[2]string]float64 {
	out := map[[2]string]float64{}
	for s, list := range trials(rows) {
		rates, common := compared(list)
		mean := func(lr float64) (o outcome) {
			for _, seed := range common {
				o.score += list[trial{lr, seed}].score
				o.loss += list[trial{lr, seed}].loss
			}
			return o
		}
		lrs := slices.SortedFunc(slices.Values(rates), func(a, b float64) int {
			x, y := mean(a), mean(b)
			return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.loss, y.loss), cmp.Compare(a, b))
		})
		out[[2]string{s.size, s.arch}] = lrs[0]
	}
	return out
}

// compared returns the rates of a side and the seeds that all rates have in common.
func compared(list map[trial]*outcome) (rates []float64, seeds []uint64) {
	for t := range list {
		if !slices.Contains(rates, t.lr) {
			rates = append(rates, t.lr)
		}
	}
	for t := range list {
		missing := func(lr float64) bool { return list[trial{lr, t.seed}] == nil }
		if !slices.Contains(seeds, t.seed) && !slices.ContainsFunc(rates, missing) {
			seeds = append(seeds, t.seed)
		}
	}
	slices.Sort(rates)
	slices.Sort(seeds) // the order of a sum affects its last bits
	return rates, seeds
}

// trials are the outcomes of all runs by side.
func trials(rows []Row) map[side]map[trial]*outcome {
	out := map[side]map[trial]*outcome{}
	for i := range rows {
		r := &rows[i]
		tuned := r.tunedBy()
		if r.Measure != tuned && r.Measure != heldOut && r.Measure != Failed {
			continue
		}
		s, t := side{r.Size, r.Arch}, trial{r.LR, r.Seed}
		if out[s] == nil {
			out[s] = map[trial]*outcome{}
		}
		o := out[s][t]
		if o == nil {
			o = &outcome{math.Inf(1), math.Inf(1)}
			out[s][t] = o
		}
		if r.Measure == Failed {
			continue
		}
		if r.Measure == heldOut {
			o.loss = r.Value
		}
		if r.Measure == tuned {
			if o.score = r.Value; r.Better == eval.Higher {
				o.score = -r.Value
			}
		}
	}
	return out
}

// tunedBy is the measure that selects the learning rates of the row's experiment.
func (r *Row) tunedBy() string { return cmp.Or(r.Tuned, heldOut) }
