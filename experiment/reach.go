package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// tokensTo90 is not a row: it is computed from the curve of the probe that asks for two of four needles. Tokens until a
// single needle is retrieved are another measure.
const (
	tokensTo90 = "tokens to 90 %"
	probeOf90  = "probe.needle.bound N=4 R=2"
)

const enoughRetrieved = 0.9

// reached is the number of training tokens at which a curve first reaches 90 %; +Inf if it never does.
func reached(curve [][2]float64) float64 {
	for _, p := range curve {
		if p[1] >= enoughRetrieved {
			return p[0]
		}
	}
	return math.Inf(1)
}

// probe is the measure of the bound score of the needle probe that comes first.
func (f *final) probe() string {
	for _, r := range f.rows {
		if strings.HasPrefix(r.Measure, "probe.needle.bound") {
			return r.Measure
		}
	}
	return ""
}

// reaches are the tokens to 90 % of every run of a side.
func (f *final) reaches(size, arch string) []float64 {
	if !slices.ContainsFunc(f.rows, func(r Row) bool { return r.Measure == probeOf90 }) {
		return nil
	}
	var out []float64
	rows, failed := f.values(size, arch, probeOf90), f.values(size, arch, Failed)
	for _, seed := range f.seeds(size, arch) {
		if r := rows[seed]; r != nil {
			out = append(out, reached(r.Curve))
		} else if failed[seed] != nil {
			out = append(out, math.Inf(1)) // a diverged run never does
		}
	}
	return out
}

// reach compares the tokens to 90 %. Runs that never reach it are larger than any number, so only ranks count: the note
// has the medians and the exact p of the rank-sum test, and the verdict is the test's at 5 %.
func (f *final) reach(c *claim, size string) (finding, bool) {
	a, b := f.reaches(size, c.than), f.reaches(size, c.arch)
	if len(a) == 0 || len(b) == 0 {
		return finding{}, false
	}
	p, less := rankSum(a, b)
	x := finding{diff: 1, low: 0.5, high: 2, seeds: min(len(a), len(b))} // ratios that lead to the test's decision
	if p < 0.05 && less {
		x.low, x.high = 0, 0.5
	} else if p < 0.05 {
		x.low, x.high = 2, 3
	}
	x.doubts = append(x.doubts, f.unfair(c, size)...)
	x.note = fmt.Sprintf("median %s against %s, reached by %d of %d against %d of %d, p = %.3f (rank sum)",
		reachedText(median(b)), reachedText(median(a)), finite(b), len(b), finite(a), len(a), p)
	return x, true
}

func reachedText(x float64) string {
	if math.IsInf(x, 0) {
		return "never"
	}
	return big(x)
}

func finite(list []float64) (n int) {
	for _, x := range list {
		if !math.IsInf(x, 0) {
			n++
		}
	}
	return n
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	if n := len(s); n%2 == 0 && !math.IsInf(s[n/2], 0) {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// rankSum is the exact two-sided test that b's values are not shifted against a's, and whether b's are smaller. Ties
// share their rank. All assignments of ranks are enumerated, so it is for a few values on each side.
func rankSum(a, b []float64) (p float64, less bool) {
	all := slices.Concat(a, b)
	ranks := make([]float64, len(all))
	for i, x := range all {
		below, same := 0, 0
		for _, y := range all {
			switch {
			case y < x:
				below++
			case y == x:
				same++
			}
		}
		ranks[i] = float64(below) + float64(same+1)/2
	}
	middle := float64(len(b)) * float64(len(all)+1) / 2
	seen := 0.0
	for _, r := range ranks[len(a):] {
		seen += r
	}
	hits, total := 0, 0
	deal(ranks, len(b), 0, func(sum float64) {
		total++
		if math.Abs(sum-middle) >= math.Abs(seen-middle)-1e-9 {
			hits++
		}
	})
	return float64(hits) / float64(total), seen < middle
}

// deal visits the sum of every choice of n ranks.
func deal(ranks []float64, n int, sum float64, visit func(float64)) {
	if n == 0 {
		visit(sum)
		return
	}
	for i := 0; i+n <= len(ranks); i++ {
		deal(ranks[i+1:], n-1, sum+ranks[i], visit)
	}
}
