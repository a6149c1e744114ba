package eval

import (
	"math"
	"slices"
	"testing"
)

// By hand: of the 8 sign patterns of 1, 1, 1 two reach |3|. Of 7 unlike answers, 6 for B: McNemar's exact p =
// 2·(C(7,0)+C(7,1))/2^7.
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
		{slices.Repeat([]float64{1}, 13), 2. / 8192},            // all patterns of 13
		{slices.Repeat([]float64{1, -1}, 7), 1},                 // drawn ones of 14, which all reach 0
		{slices.Repeat([]float64{0.1, -0.3, 0.2}, 30), 1},       // and of 90
		{append(slices.Repeat([]float64{1}, 12), 3), 2. / 8192}, // only all pluses or all minuses reach 15
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

// pairOf compares two single models.
func pairOf(a, b []Answer, name string, seed uint64) (Paired, bool) {
	return pair([]*Result{{Answers: a}}, []*Result{{Answers: b}}, name, seed)
}

// However clear a difference is, p is never 0: of 10,001 patterns one was seen.
func TestSignFlipIsNeverZero(t *testing.T) {
	if p := signFlip(slices.Repeat([]float64{1}, 200), 1); p != 1.0/10001 {
		t.Errorf("p = %g, want 1/10001", p)
	}
}

// A loss per token over other tokens is another quantity: it is not compared.
func TestPairRefusesOtherUnits(t *testing.T) {
	var a, b []Answer
	for i := range 20 {
		id := string(rune('a' + i))
		a = append(a, Answer{ID: id, Values: map[string]float64{"loss": 2, "bits": 1},
			Weights: map[string]float64{"loss": 100, "bits": 300}})
		b = append(b, Answer{ID: id, Values: map[string]float64{"loss": 3, "bits": 1.1},
			Weights: map[string]float64{"loss": 70, "bits": 300}})
	}
	if p, ok := pairOf(a, b, "loss", 1); ok {
		t.Errorf("losses of two tokenizers were compared: %+v", p)
	}
	if p, ok := pairOf(a, b, "bits", 1); !ok || !near(p.Diff, 0.1, 1e-12) {
		t.Errorf("bits per byte: %+v, %v", p, ok)
	}
}

func TestPair(t *testing.T) {
	a := []Answer{
		{ID: "1", Values: map[string]float64{"x": 1}, Weights: map[string]float64{"x": 2}},
		{ID: "2", Values: map[string]float64{"x": 2}, Weights: map[string]float64{"x": 2}},
		{ID: "3", Values: map[string]float64{"x": 9}},
		{ID: "4", Values: map[string]float64{"y": 9}},
	}
	two := map[string]float64{"x": 2}
	b := []Answer{{ID: "2", Values: map[string]float64{"x": 5}, Weights: two},
		{ID: "1", Values: map[string]float64{"x": 2}, Weights: two}, {ID: "4", Values: map[string]float64{"x": 1}}}
	// 1: +1 over 2 units, 2: +3 over 2 units; 3 and 4 have no partner. Mean 2, residuals −2 and +2 of the sums: error
	// √(8/2)/2 = 1.
	got, ok := pairOf(a, b, "x", 1)
	if !ok || got.N != 2 || got.Diff != 2 || !near(got.StdErr, 1, 1e-12) || got.P != 0.5 {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := pairOf(a, b, "y", 1); ok {
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
	m, n := MeanOf(a, "x"), MeanOf(twice, "x")
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
	p, _ := pairOf(a, zero(a), "x", 1)
	q, _ := pairOf(twice, zero(twice), "x", 1)
	if p.P != q.P || p.P != 0.5 || !near(p.StdErr, q.StdErr, 1e-12) {
		t.Errorf("%+v, twice %+v", p, q)
	}
}

// The better side follows the measure's direction.
func TestBetterFollowsTheDirection(t *testing.T) {
	for _, c := range []struct {
		diff float64
		d    Better
		want int
	}{{1, Higher, 1}, {-1, Higher, -1}, {1, Lower, -1}, {-1, Lower, 1}, {1, Neither, 0}, {0, Higher, 0}} {
		if got := (&Paired{Diff: c.diff, PHolm: 0.01}).Better(c.d); got != c.want {
			t.Errorf("difference %g of %v: %d, want %d", c.diff, c.d, got, c.want)
		}
	}
	if got := (&Paired{Diff: 1, PHolm: 0.05}).Better(Higher); got != 0 {
		t.Errorf("p = 0.05 is called better: %d", got)
	}
}

// The p of groups is two-sided: where their means are equal it is 1.
func TestGroupsOfEqualMeans(t *testing.T) {
	model := func(shift float64) *Result {
		r := &Result{}
		for i := range 12 {
			r.Answers = append(r.Answers, Answer{ID: string(rune('a' + i)),
				Values: map[string]float64{"x": float64(i%3) + shift}})
		}
		return r
	}
	p, ok := pair([]*Result{model(-1), model(1)}, []*Result{model(-2), model(2)}, "x", 1)
	if !ok || !near(p.Diff, 0, 1e-12) || p.StdErr == 0 || p.P < 0.999 {
		t.Errorf("%+v, %v", p, ok)
	}
}
