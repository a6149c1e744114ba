package eval

import (
	"math"
	"testing"

	"antiphase/device/ref"
)

// Samples that lack a measure are not part of it: neither of its mean nor of its interval.
func TestIntervalWithoutSomeSamples(t *testing.T) {
	var all, some []Answer
	for i := range 12 {
		a := Answer{ID: string(rune('a' + i)), Values: map[string]float64{"other": 1}}
		if i%3 != 0 {
			a.Values["x"] = float64(i) / 4
			some = append(some, a)
		}
		all = append(all, a)
	}
	m := MeanOf(all, "x")
	low, high := meanInterval(all, "x", m)
	wantLow, wantHigh := meanInterval(some, "x", MeanOf(some, "x"))
	if m.N != len(some) || low != wantLow || high != wantHigh || !(low < m.Value && m.Value < high) {
		t.Errorf("%+v: %g to %g, of the samples that have it %g to %g", m, low, high, wantLow, wantHigh)
	}
}

// Samples without a difference change nothing, however many there are.
func TestSignFlipWithZeros(t *testing.T) {
	diffs := append(make([]float64, 40), 1, 1, 1)
	if got := signFlip(diffs, 1); got != 0.25 {
		t.Errorf("p = %g, want 2 of 8 patterns", got)
	}
}

// Correlations know classes that only the answers have, and do not care which side is right.
func TestMatthewsOfOtherClasses(t *testing.T) {
	gold, said := []int{0, 1, 0, 1, 1}, []int{0, 3, 0, 1, 3}
	got := Matthews(gold, said)
	// c = 3 of 5; Σ p·g = 4+3, Σ p² = 4+1+4, Σ g² = 4+9.
	if want := (3*5 - 7) / math.Sqrt((25-9)*(25-13)); !near(got, want, 1e-12) ||
		!near(Matthews(said, gold), want, 1e-12) {
		t.Errorf("%g and %g, want %g", got, Matthews(said, gold), want)
	}
}

// Of two cells of one model the later names its run and tokens, if it knows them.
func TestAssembleKeepsTheLastRun(t *testing.T) {
	cell := func(question, run string, tokens int64) *Cell {
		return &Cell{Head: Head{Model: Model{Name: "m", Hash: "h", Run: run, Tokens: tokens}},
			Result: &Result{Question: question, Task: "t"}}
	}
	e := Assemble([]*Cell{cell("a", "first", 1), cell("b", "second", 2), cell("c", "", 0)})
	if len(e.Models) != 1 || e.Models[0].Run != "second" || e.Models[0].Tokens != 2 || len(e.Models[0].Results) != 3 {
		t.Errorf("%+v", e.Models)
	}
	e.holm() // results without metrics have no comparisons
}

// Prompts are measured by the first of our own models, and fit the smallest context.
func TestMeasureOfSeveral(t *testing.T) {
	a, b := subject(t, ref.New(), "diff", 32), subject(t, ref.New(), "transformer", 32)
	with := func(context int, lm LM) Target { return Target{Model: Model{Context: context}, LM: lm} }
	stub := with(50, &knower{})
	for _, x := range []struct {
		targets []Target
		context int
		first   *Subject
	}{
		{[]Target{stub, with(40, a), with(60, b)}, 40, a}, {[]Target{with(60, b), stub, with(70, a)}, 50, b},
		{[]Target{stub}, 50, nil},
	} {
		var o Options
		o.Measure(x.targets)
		p := newPlanOf(t, &o)
		if p.Context != x.context || (x.first == nil) != (p.Tokens == nil) || x.first != nil &&
			p.Tokens != x.first.Tokenizer {
			t.Errorf("context %d, tokenizer %p", p.Context, p.Tokens)
		}
		if want := map[bool]int{true: 2, false: 6}[x.first == nil]; p.Count("12345") != want {
			t.Errorf("%d tokens in five bytes (and the first token), want %d", p.Count("12345"), want)
		}
	}
	if o := (&Options{context: 9}); o.Within(5).context != 5 || o.Within(10).context != 9 || o.context != 9 {
		t.Error("a bound on the context")
	}
}

func newPlanOf(t *testing.T, o *Options) *Plan {
	t.Helper()
	p, err := o.plan(&Task{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
