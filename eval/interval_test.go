package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// From tables: quantiles of Student's t.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ df, want float64 }{{1, 12.7062}, {2, 4.30265}, {4, 2.77645}, {10, 2.22814},
		{30, 2.04227}, {1e9, 1.95996}} {
		if got := StudentQuantile(0.975, c.df); !near(got, c.want, 1e-4) {
			t.Errorf("%g degrees of freedom: %g, want %g", c.df, got, c.want)
		}
	}
}

// From Newcombe (1998), table I: 81 of 263, and 0 and 1 of few.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718},
		{29, 29, 0.8830, 1}} {
		low, high := Wilson(c.k, c.n)
		if !near(low, c.low, 6e-5) || !near(high, c.high, 6e-5) {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// Coverage of 95 % intervals by simulation. Scores of models are anything from 0 to 1, so for binomial scores the true
// value is drawn from the middle nine tenths; seeds and items are crossed effects of several strengths.
// docs/evaluation.md has the numbers.
func TestCoverage(t *testing.T) {
	const trials = 3000
	g := rand.New(rand.NewPCG(5, 6))
	report := func(what string, held int) {
		share := 100 * float64(held) / float64(trials)
		t.Logf("%s: %.1f %%", what, share)
		if share < 93 || share > 97 {
			t.Errorf("%s: the interval holds the truth in %.1f %% of %d trials", what, share, trials)
		}
	}
	for _, n := range []int{20, 100, 1000} {
		held := 0
		for range trials {
			p, k := 0.05+0.9*g.Float64(), 0
			for range n {
				if g.Float64() < p {
					k++
				}
			}
			if low, high := Wilson(k, n); low <= p && p <= high {
				held++
			}
		}
		report(fmt.Sprintf("Wilson, n = %d", n), held)
	}
	// Standard deviations of: a training seed's effect, an item's difference between the groups, and the rest.
	for _, dev := range [][3]float64{{0.01, 0.2, 0.3}, {0.02, 0.2, 0.3}, {0.05, 0.1, 0.3}, {0.1, 0.1, 0.3},
		{0.06, 0.3, 0.1}} {
		held, alone := 0, 0
		for range trials {
			both := crossed(g, 3, 200, dev)
			m, df := both.compare(3)
			if math.Abs(m.Value) <= StudentQuantile(0.975, df)*m.StdErr {
				held++
			}
			one := &table{n: both.n, w: both.w, x: both.x[:3]}
			if m, half := one.side(); math.Abs(m.Value) <= half {
				alone++
			}
		}
		report(fmt.Sprintf("difference of two groups, 3 seeds × 200 items, deviations %v", dev), held)
		report(fmt.Sprintf("mean of one group, 3 seeds × 200 items, deviations %v", dev), alone)
		t.Logf("  percentiles of a bootstrap over seeds and items, for comparison: %.1f %%",
			bootstrapCoverage(g, 300, dev))
	}
}

// crossed draws two groups of equal true mean, all models answering the same items. Groups share an item's difficulty,
// which drops out.
func crossed(g *rand.Rand, seeds, items int, dev [3]float64) *table {
	t := &table{n: items, w: make([]float64, items)}
	for i := range t.w {
		t.w[i] = 1
	}
	for range 2 {
		special := make([]float64, items)
		for i := range special {
			special[i] = dev[1] / math.Sqrt2 * g.NormFloat64()
		}
		for range seeds {
			effect, row := dev[0]*g.NormFloat64(), make([]float64, items)
			for i := range row {
				row[i] = effect + special[i] + dev[2]*g.NormFloat64()
			}
			t.x = append(t.x, row)
		}
	}
	return t
}

// bootstrapCoverage is how often the usual hierarchical bootstrap's percentiles hold the truth: with three seeds it
// knows too little of their variance, and without an effect of seeds it counts the rest more than once.
func bootstrapCoverage(g *rand.Rand, trials int, dev [3]float64) float64 {
	held := 0
	for range trials {
		t := crossed(g, 3, 200, dev)
		var diffs []float64
		for range 200 {
			sum := 0.0
			var models [6]int
			for m := range models {
				models[m] = m/3*3 + g.IntN(3)
			}
			for range t.w {
				i := g.IntN(len(t.w))
				for m, from := range models {
					sum += float64(2*(m/3)-1) * t.x[from][i]
				}
			}
			diffs = append(diffs, sum/float64(3*len(t.w)))
		}
		slices.Sort(diffs)
		if Quantile(diffs, 0.025) <= 0 && 0 <= Quantile(diffs, 0.975) {
			held++
		}
	}
	return 100 * float64(held) / float64(trials)
}

// By hand: p of 0.01, 0.03, 0.04 in one family become 0.03, 0.06, 0.06; none is above 1.
func TestHolm(t *testing.T) {
	e := &Evaluation{Models: []Judged{{Results: []Result{{Question: "q",
		Metrics: []Metric{{Name: "acc"}, {Name: "other"}}}}}}}
	for _, p := range []float64{0.04, 0.01, 0.03} {
		e.Paired = append(e.Paired, Paired{Question: "q", Metric: "acc", P: p})
	}
	for _, p := range []float64{0.02, 0.7, 0.6} {
		e.Paired = append(e.Paired, Paired{Question: "q", Metric: "other", P: p})
	}
	e.holm()
	for i, want := range []float64{0.06, 0.03, 0.06, 0.06, 1, 1} {
		if !near(e.Paired[i].PHolm, want, 1e-12) {
			t.Errorf("p = %g became %g, want %g", e.Paired[i].P, e.Paired[i].PHolm, want)
		}
	}
}

// The interval of a mean is Wilson's for answers that are right or wrong and independent; otherwise Student's over
// clusters, whichever of the conditions fails.
func TestMeanInterval(t *testing.T) {
	answers := func(n int, change func(i int, a *Answer)) (list []Answer) {
		for i := range n {
			a := Answer{ID: string(rune('a' + i)), Values: map[string]float64{"x": float64(i % 2)}}
			change(i, &a)
			list = append(list, a)
		}
		return list
	}
	wilson := func(list []Answer) [2]float64 { lo, hi := Wilson(len(list)/2, len(list)); return [2]float64{lo, hi} }
	student := func(clusters int) func([]Answer) [2]float64 {
		return func(list []Answer) [2]float64 {
			m := MeanOf(list, "x")
			d := StudentQuantile(0.975, float64(clusters-1)) * m.StdErr
			return [2]float64{m.Value - d, m.Value + d}
		}
	}
	for name, c := range map[string]struct {
		change func(i int, a *Answer)
		want   func([]Answer) [2]float64
	}{
		"independent": {func(int, *Answer) {}, wilson},
		"clusters":    {func(i int, a *Answer) { a.Cluster = string(rune('a' + i/3)) }, student(4)},
		"one pair":    {func(i int, a *Answer) { a.Cluster = string(rune('a' + max(i, 1))) }, student(11)},
		"shares":      {func(i int, a *Answer) { a.Values["x"] *= 0.5 }, student(12)},
		"weights":     {func(i int, a *Answer) { a.Put("x", 3*float64(i%2), 3) }, student(12)},
	} {
		list := answers(12, c.change)
		low, high := meanInterval(list, "x", MeanOf(list, "x"))
		if want := c.want(list); !near(low, want[0], 1e-12) || !near(high, want[1], 1e-12) {
			t.Errorf("%s: %.4f to %.4f, want %.4f to %.4f", name, low, high, want[0], want[1])
		}
	}
}
