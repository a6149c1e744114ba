package eval

import (
	"math"
	"slices"
	"testing"
)

// By hand: of the 8 sign patterns of 1, 1, 1 two reach |3|. Of 7 unlike answers, 6 for B: McNemar's exact p = 2·(C(7,0)+C(7,1))/2^7.
func TestSignFlip(t *testing.T) {
	for _, c := range []struct {
		diffs []float64
		want  float64
	}{
		{[]float64{1, 1, 1}, 0.25},
		{[]float64{0, 0, 0}, 1},
		{[]float64{1, -1}, 1},
		{[]float64{1, 1, 1, -1, 1, 1, 1, 0, 0, 0}, 0.125},
		{[]float64{3, 1, 1}, 0.25}, // only +++ and −−− reach 5
		{[]float64{2, 1}, 0.5},
	} {
		if got := signFlip(c.diffs, 1); !near(got, c.want, 1e-12) {
			t.Errorf("%v: p = %g, want %g", c.diffs, got, c.want)
		}
	}
}

// With many samples the random patterns come near McNemar's exact p: 40 unlike answers, 28 for B.
func TestSignFlipDraws(t *testing.T) {
	diffs := append(slices.Repeat([]float64{1}, 28), slices.Repeat([]float64{-1}, 12)...)
	exact := 0.0
	for k := range 13 { // 2·P(at most 12 of 40)
		exact += 2 * math.Exp(lchoose(40, k)-40*math.Ln2)
	}
	got := signFlip(diffs, 3)
	if !near(got, exact, 4*math.Sqrt(exact/10000)) {
		t.Errorf("p = %g, exactly %g", got, exact)
	}
	if got != signFlip(diffs, 3) {
		t.Error("the same seed gives another p")
	}
	if got := signFlip(slices.Repeat([]float64{0.1}, 100), 1); got > 0.001 {
		t.Errorf("a hundred wins: p = %g", got)
	}
}

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func TestPair(t *testing.T) {
	a := []Answer{
		{ID: "1", Values: map[string]float64{"x": 1}, Weights: map[string]float64{"x": 2}},
		{ID: "2", Values: map[string]float64{"x": 2}, Weights: map[string]float64{"x": 2}},
		{ID: "3", Values: map[string]float64{"x": 9}},
		{ID: "4", Values: map[string]float64{"y": 9}},
	}
	b := []Answer{{ID: "2", Values: map[string]float64{"x": 5}}, {ID: "1", Values: map[string]float64{"x": 2}}, {ID: "4", Values: map[string]float64{"x": 1}}}
	// 1: +1 over 2 units, 2: +3 over 2 units; 3 and 4 have no partner. Mean 2, residuals −2 and +2 of the sums: error √(8/2)/2 = 1.
	got, ok := pair(a, b, "x", 1)
	if !ok || got.N != 2 || got.Diff != 2 || !near(got.StdErr, 1, 1e-12) || got.P != 0.5 {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := pair(a, b, "y", 1); ok {
		t.Error("a value that only one model has was compared")
	}
}

// Two texts asked about twice each are two samples as far as errors go.
func TestClusters(t *testing.T) {
	var a, twice []Answer
	for i, x := range []float64{0, 1, 1} {
		id := string(rune('a' + i))
		a = append(a, Answer{ID: id, Values: map[string]float64{"x": x}})
		for _, k := range []string{"1", "2"} {
			twice = append(twice, Answer{ID: id + k, Cluster: id, Values: map[string]float64{"x": x}})
		}
	}
	m, n := meanOf(a, "x"), meanOf(twice, "x")
	if !near(m.Value, n.Value, 1e-12) || !near(m.StdErr, n.StdErr, 1e-12) || m.N != 3 || n.N != 6 {
		t.Errorf("%+v, twice %+v", m, n)
	}
	zero := func(list []Answer) []Answer {
		out := slices.Clone(list)
		for i := range out {
			out[i].Values = map[string]float64{"x": 0}
		}
		return out
	}
	p, _ := pair(a, zero(a), "x", 1)
	q, _ := pair(twice, zero(twice), "x", 1)
	if p.P != q.P || p.P != 0.5 || !near(p.StdErr, q.StdErr, 1e-12) {
		t.Errorf("%+v, twice %+v", p, q)
	}
}
