package experiment

import (
	"cmp"
	"maps"
	"slices"
)

// Choose finds the best learning rate of each size and architecture: the one with the lowest mean held-out loss over
// the seeds that every rate of the pair has finished. The same seeds judge every rate, and the same number of rates
// is tried of each architecture.
func Choose(rows []Row) map[[2]string]float64 {
	type trial struct {
		lr   float64
		seed uint64
	}
	loss := map[[2]string]map[trial]float64{}
	rates := map[[2]string]map[float64]bool{}
	for _, r := range rows {
		key := [2]string{r.Size, r.Arch}
		if r.Measure != "train.valid_loss" {
			continue
		}
		if loss[key] == nil {
			loss[key], rates[key] = map[trial]float64{}, map[float64]bool{}
		}
		loss[key][trial{r.LR, r.Seed}] = r.Value
		rates[key][r.LR] = true
	}
	out := map[[2]string]float64{}
	for key, list := range loss {
		var common []uint64
		for t := range list {
			if all(rates[key], func(lr float64) bool { _, ok := list[trial{lr, t.seed}]; return ok }) &&
				!slices.Contains(common, t.seed) {
				common = append(common, t.seed)
			}
		}
		slices.Sort(common)
		mean := func(lr float64) (sum float64) {
			for _, s := range common {
				sum += list[trial{lr, s}]
			}
			return sum
		}
		lrs := slices.SortedFunc(maps.Keys(rates[key]), func(a, b float64) int {
			return cmp.Or(cmp.Compare(mean(a), mean(b)), cmp.Compare(a, b))
		})
		out[key] = lrs[0]
	}
	return out
}

func all[K comparable](set map[K]bool, f func(K) bool) bool {
	for k := range set {
		if !f(k) {
			return false
		}
	}
	return true
}
