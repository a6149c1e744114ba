package eval

import (
	"math"
	"slices"
)

// table holds a metric by model and cluster: sums of w·x, and the weights, which all models share.
type table struct {
	n int
	w []float64
	x [][]float64 // [model][cluster], the models of A first
}

// newTable collects the samples that all models of both sides have.
func newTable(a, b []*Result, name string) (*table, bool) {
	all := slices.Concat(a, b)
	index := make([]map[string]*Answer, len(all))
	for m, r := range all {
		index[m] = make(map[string]*Answer, len(r.Answers))
		for i := range r.Answers {
			index[m][r.Answers[i].ID] = &r.Answers[i]
		}
	}
	sums := make([]clusters, len(all))
	for i := range all[0].Answers {
		first := &all[0].Answers[i]
		w := first.Weight(name)
		has := 0
		for m := range all {
			o := index[m][first.ID]
			if o == nil {
				continue
			}
			if _, ok := o.Values[name]; ok {
				if o.Weight(name) != w {
					return nil, false
				}
				has++
			}
		}
		if has < len(all) {
			continue
		}
		for m := range all {
			sums[m].add(first.cluster(), w*index[m][first.ID].Values[name], w)
		}
	}
	t := &table{n: sums[0].n, w: sums[0].w}
	for m := range sums {
		t.x = append(t.x, sums[m].x)
	}
	return t, len(t.w) >= 2
}

// diffs are the differences by cluster of two single models.
func (t *table) diffs() []float64 {
	out := make([]float64, len(t.w))
	for i := range out {
		out[i] = t.x[1][i] - t.x[0][i]
	}
	return out
}

// compare is the mean difference of two sides, the first with na models, and the degrees of freedom of its error.
//
// With several models per side, models (seeds) and clusters (items) are crossed random effects. Three variances are
// estimated: between the means of a side's models, between the items' differences, and the residual, which the first
// two both include:
//
//	V = s²_A/S_A + s²_B/S_B + s²_d/I − (e²_A/S_A + e²_B/S_B)/I
//
// with Satterthwaite's degrees of freedom. A side of one model has no variance between models: the error then covers
// measurement only.
func (t *table) compare(na int) (Mean, float64) {
	value, parts, rest := t.components(na)
	return combine(value, parts, rest, t.n)
}

// side is the mean of a single side and half of its 95 % interval. Satterthwaite's degrees of freedom cover too little
// here: if the few models happen to agree, they become those of the items. The models' part has its own quantile
// instead,
//
//	h² = t²(S−1)·s²/S + t²(I−1)·(s²_d/I − e²/(S·I))
//
// and if models differ by less than the residual explains, only the items count.
func (t *table) side() (Mean, float64) {
	value, parts, rest := t.components(0)
	m, _ := combine(value, parts, rest, t.n)
	models, items := parts[0], parts[1]
	of := func(c component) float64 { return StudentQuantile(0.975, c.df) }
	if models.v <= rest {
		return m, of(items) * math.Sqrt(items.v)
	}
	a, b := of(models), of(items)
	return m, math.Sqrt(a*a*models.v + b*b*max(items.v-rest, 0))
}

// components returns the difference of the means, the variances of its error, the items' last, and the residual
// variance that all of them include.
func (t *table) components(na int) (delta float64, parts []component, rest float64) {
	items := float64(len(t.w))
	total := 0.0
	for _, w := range t.w {
		total += w
	}
	means := make([]float64, len(t.x))
	for m := range t.x {
		for _, x := range t.x[m] {
			means[m] += x / total
		}
	}
	scale := items / total // residuals per item of mean weight
	diff := make([]float64, len(t.w))
	sides := [2][2]int{{0, na}, {na, len(t.x)}}
	for s, side := range sides {
		sign := float64(2*s - 1)
		S := float64(side[1] - side[0])
		if S == 0 { // a single side: its mean compared with 0
			continue
		}
		mean := average(means[side[0]:side[1]])
		delta += sign * mean
		for i, w := range t.w {
			for m := side[0]; m < side[1]; m++ {
				diff[i] += sign * scale * (t.x[m][i] - mean*w) / S
			}
		}
		if S > 1 {
			parts = append(parts, component{variance(means[side[0]:side[1]]) / S, S - 1})
			rest += t.leftover(side, means, scale) / (S * items)
		}
	}
	return delta, append(parts, component{variance(diff) / items, items - 1}), rest
}

// component is one estimated variance of a mean and its degrees of freedom.
type component struct{ v, df float64 }

// combine adds the components, the items' last, subtracts what they count twice, and computes Satterthwaite's degrees
// of freedom. If models differ by less than the residual explains, there is no variance between them, and only the
// items count.
func combine(value float64, parts []component, rest float64, n int) (Mean, float64) {
	sum, square := 0.0, 0.0
	for _, c := range parts {
		sum += c.v
		square += c.v * c.v / c.df
	}
	items := parts[len(parts)-1]
	if v := sum - rest; v > items.v {
		return Mean{value, math.Sqrt(v), n}, max(v*v/square, 1)
	}
	return Mean{value, math.Sqrt(items.v), n}, items.df
}

// leftover is the variance of a side's residuals after subtracting its models' and items' means.
func (t *table) leftover(side [2]int, means []float64, scale float64) float64 {
	S, I := side[1]-side[0], len(t.w)
	sum := 0.0
	for i, w := range t.w {
		item := 0.0
		for m := side[0]; m < side[1]; m++ {
			item += scale * (t.x[m][i] - means[m]*w) / float64(S)
		}
		for m := side[0]; m < side[1]; m++ {
			d := scale*(t.x[m][i]-means[m]*w) - item
			sum += d * d
		}
	}
	return sum / float64((S-1)*(I-1))
}

func average(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// variance is the unbiased estimate.
func variance(x []float64) float64 {
	m, sum := average(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}
