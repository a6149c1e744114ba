package experiment

import (
	"cmp"
	"math"
	"slices"
	"strings"

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
// lower held-out loss, then to the lower rate; scores on their floor are a tie. Every rate is judged on the same seeds;
// a rate with a diverged run loses to every other.
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
			o.score = r.score()
		}
	}
	return out
}

// score is the row's value for choosing a rate; lower is better. A score whose 95 % interval reaches a floor says
// nothing about the rate: it counts as the floor.
func (r *Row) score() float64 {
	if r.Better != eval.Higher {
		return r.Value
	}
	if floor, on := r.floored(); on && strings.HasSuffix(r.Tuned, orLoss) {
		return -floor
	}
	return -r.Value
}

// floored returns the highest floor of a score, and whether its 95 % interval over items reaches it.
func (r *Row) floored() (floor float64, on bool) {
	for _, x := range r.Floors {
		floor = max(floor, x)
	}
	return floor, floor > 0 && r.Better == eval.Higher && r.Value-1.96*r.StdErr <= floor
}

// orLoss in a row's tuned_by says that scores on their floor were a tie when the rates were chosen, so that held-out
// loss decided among them. Rows without it are older, and their rates were chosen by the score alone.
const orLoss = " or loss"

// tunedBy is the measure that selects the learning rates of the row's experiment.
func (r *Row) tunedBy() string { return strings.TrimSuffix(cmp.Or(r.Tuned, heldOut), orLoss) }
