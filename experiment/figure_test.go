package experiment

import (
	"math"
	"strings"
	"testing"
)

// A ratio is written with the digits its interval allows; one over seeds that differ widely is called unreliable.
func TestFigureOfARatio(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		diff, low, high float64
		seeds           int
		want            string
	}{
		{0.973, 0.812, 1.166, 3, "×0.97 [×0.81, ×1.17]"},
		{1.22, -inf, inf, 1, "×1.22 (one seed: no interval)"},
		{1.4, 0.00057, 3455.02, 2, "×1.40 [under ×0.001, over ×1000] (unreliable: the seeds differ too much)"},
		{15.26, 2.1, 110.8, 3, "×15.3 [×2.10, ×111]"},
		{0.052, 0.0111, 0.24, 3, "×0.052 [×0.011, ×0.24]"},
		{9.996, 0.0996, 99.96, 2, "×10.0 [×0.10, ×100] (unreliable: the seeds differ too much)"},
		{1000, 10, 1000, 3, "×1000 [×10.0, ×1000]"},
		{5, 1, 100.5, 3, "×5.00 [×1.00, ×100] (unreliable: the seeds differ too much)"},
		{0.001, 0.001, 0.0994, 3, "×0.001 [×0.001, ×0.099]"}, // bounds are within
		{math.NaN(), math.NaN(), math.NaN(), 3, "no ratio, a value is 0"},
		{0, 0, 0, 3, "no ratio, a value is 0"},
		{inf, inf, inf, 3, "no ratio, a value is 0"},
	} {
		x := finding{diff: c.diff, low: c.low, high: c.high, seeds: c.seeds, arch: 2, than: 3}
		if got := (&claim{ratio: true}).figure(x); got != "2 against 3: "+c.want {
			t.Errorf("%g [%g, %g]: %s, want %s", c.diff, c.low, c.high, got, c.want)
		}
	}
}

// A difference has as many decimals as the values before it, a true minus sign, and its unit before the reason why it
// has no interval.
func TestFigureOfADifference(t *testing.T) {
	for _, c := range []struct {
		claim claim
		x     finding
		want  string
	}{
		{claim{unit: "nats"}, finding{arch: 1.5, than: 1.75, diff: -0.25, low: -0.3, high: -0.2, seeds: 3},
			"1.500 against 1.750: −0.250 [−0.300, −0.200] nats"},
		{claim{unit: "nats"}, finding{arch: 1.5, than: 1.75, diff: -0.25, low: math.Inf(-1),
			high: math.Inf(1), seeds: 1}, "1.500 against 1.750: −0.250 nats (one seed: no interval)"},
		{claim{percent: true}, finding{arch: 0.5, than: 0.25, diff: 0.25, low: 0.2, high: 0.3, seeds: 3,
			floors: map[string]float64{"copy": 0.25, "chance": 0.01, "one": 1}},
			"50.0 against 25.0, chance 1.0, copy 25.0: +25.0 [+20.0, +30.0] points"},
		{claim{}, finding{arch: 21, than: 20, diff: 1, low: -1, high: 3, seeds: 3},
			"21.0 against 20.0: +1.0 [−1.0, +3.0]"},
		{claim{}, finding{arch: 0.0012, than: 0.0011, diff: 0.0001, low: 0, high: 0.0002, seeds: 3},
			"0.0012 against 0.0011: +0.0001 [+0, +0.0002]"},
	} {
		if got := c.claim.figure(c.x); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// An interval whose end would be rounded onto a border of the claim has the digits that keep it on its side.
func TestFigureBesideABorder(t *testing.T) {
	above, least := claim{above: true, border: -0.05, percent: true}, claim{least: 0.025}
	for _, c := range []struct {
		claim           claim
		diff, low, high float64
		want            string
	}{
		{claim{}, -0.00179, -0.00331, -0.00042, "−0.0018 [−0.0033, −0.0004]"},
		{claim{}, -0.00179, -0.00331, 0.00000042, "−0.0017900 [−0.0033100, +0.0000004]"},
		{claim{}, -0.002, -0.004, 0, "−0.002 [−0.004, +0.000]"}, // on the border
		{claim{}, -0.002, -0.004, -1e-17, "−0.002 [−0.004, −0.000]"},
		{above, -0.03, -0.04999, 0.02, "−3.000 [−4.999, +2.000]"},
		{above, 0, -0.0001, 0.0001, "+0.0 [−0.0, +0.0]"}, // 0 is no border of this claim
		{least, -0.0167, -0.0246, -0.0088, "−0.0167 [−0.0246, −0.0088]"},
		{claim{above: true, least: 0.06}, 0.05, 0.04, 0.0604, "+0.0500 [+0.0400, +0.0604]"},
		{claim{least: 0.025, border: -1}, -0.0167, -0.0246, -0.0088, "−0.017 [−0.025, −0.009]"},
		{claim{ratio: true, border: 1}, 1.0108, 1.0021, 1.0191, "×1.011 [×1.002, ×1.019]"},
		{claim{ratio: true, above: true, border: 0.95}, 0.96, 0.9501, 0.97, "×0.9600 [×0.9501, ×0.9700]"},
		{claim{ratio: true, within: 2}, 1.5, 1.001, 1.999, "×1.500 [×1.001, ×1.999]"},
		{claim{ratio: true, within: 2}, 0.6, 0.4999, 0.7, "×0.6000 [×0.4999, ×0.7000]"},
	} {
		x := finding{arch: 1, than: 1, diff: c.diff, low: c.low, high: c.high, seeds: 3}
		_, got, _ := strings.Cut(c.claim.figure(x), ": ")
		if got = strings.TrimSuffix(got, " points"); got != c.want {
			t.Errorf("%g [%g, %g]: %s, want %s", c.diff, c.low, c.high, got, c.want)
		}
	}
}
