package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// subject is a tiny random model that reads bytes.
func subject(t testing.TB, d device.Device, arch string, context int) *Subject {
	t.Helper()
	tok := tokenizer.Bytes()
	c, err := model.Config{Arch: arch, Vocab: tok.Vocab(), Context: context, Layers: 2, Dim: 16, Heads: 4, KVHeads: 2, HeadDim: 4}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(d, c, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	m.Init(11)
	return &Subject{Name: arch, Model: m, Tokenizer: tok, Batch: 3}
}

// onArchs runs f for every architecture, in float64 and on the processor.
func onArchs(t *testing.T, context int, f func(t *testing.T, s *Subject)) {
	for _, a := range layer.Archs() {
		t.Run("ref/"+a.Name, func(t *testing.T) { f(t, subject(t, ref.New(), a.Name, context)) })
		t.Run("cpu/"+a.Name, func(t *testing.T) {
			d := cpu.New(cpu.Options{Threads: 2})
			t.Cleanup(func() { d.Close() })
			f(t, subject(t, d, a.Name, context))
		})
	}
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestTally(t *testing.T) {
	var x tally
	if m := x.mean(); m != (Mean{}) {
		t.Errorf("of nothing: %+v", m)
	}
	for _, v := range []float64{2, 4, 4, 4, 5, 5, 7, 9} {
		x.add(v)
	}
	m := x.mean() // mean 5, Σ(x−5)² = 32, variance 32/7
	if m.Value != 5 || m.N != 8 || !near(m.StdErr, math.Sqrt(32.0/7/8), 1e-12) {
		t.Errorf("%+v, want 5 ± %g of 8", m, math.Sqrt(32.0/7/8))
	}
}

func TestRatio(t *testing.T) {
	var x ratio
	for _, p := range [][2]float64{{1, 2}, {2, 2}, {3, 4}} {
		x.add(p[0], p[1])
	}
	// v = 6/8; residuals −0.5, 0.5, 0: Σ² = 0.5; error √(0.5/(3·2)) / (8/3)
	m := x.mean()
	if m.Value != 0.75 || m.N != 3 || !near(m.StdErr, math.Sqrt(0.5/6)/(8.0/3), 1e-12) {
		t.Errorf("%+v", m)
	}
	var same tally
	var one ratio
	for _, v := range []float64{0.2, 0.5, 0.9, 0.1} {
		same.add(v)
		one.add(v, 1)
	}
	if a, b := same.mean(), one.mean(); !near(a.Value, b.Value, 1e-15) || !near(a.StdErr, b.StdErr, 1e-12) {
		t.Errorf("with totals of 1: ratio %+v, mean %+v", b, a)
	}
}

func TestCumulative(t *testing.T) {
	sum, count := make([]float64, 20), make([]int, 20)
	for i := range sum {
		sum[i], count[i] = 2*float64(i+1), 2 // mean loss at position p is p
	}
	sum[1], count[1] = 0, 0 // not scored
	var at []int
	for _, p := range cumulative(sum, count) {
		at = append(at, p.Position)
		total, n := 0.0, 0
		for i := 1; i <= p.Position; i++ {
			if i != 2 {
				total, n = total+float64(i), n+1
			}
		}
		if want := total / float64(n); !near(p.Loss, want, 1e-12) {
			t.Errorf("up to %d: %g, want %g", p.Position, p.Loss, want)
		}
	}
	if want := []int{1, 2, 3, 4, 6, 8, 12, 16, 20}; !slices.Equal(at, want) {
		t.Errorf("positions %v, want %v", at, want)
	}
}

func TestTokenSpan(t *testing.T) {
	offsets := []int{0, 0, 3, 5, 9, 12} // a first token without text, then tokens of 3, 2, 4 and 3 bytes
	for _, c := range []struct{ span, want [2]int }{
		{[2]int{0, 3}, [2]int{1, 2}},
		{[2]int{0, 4}, [2]int{1, 3}},
		{[2]int{2, 6}, [2]int{1, 4}},
		{[2]int{5, 9}, [2]int{3, 4}},
		{[2]int{11, 12}, [2]int{4, 5}},
		{[2]int{12, 13}, [2]int{5, 5}},
	} {
		if from, to := tokenSpan(offsets, c.span); from != c.want[0] || to != c.want[1] {
			t.Errorf("bytes %v are tokens [%d,%d), want %v", c.span, from, to, c.want)
		}
	}
}

func TestOffsets(t *testing.T) {
	s := &Subject{Tokenizer: tokenizer.Bytes()}
	if got, want := s.offsets(s.encode("aé")), []int{0, 0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHits(t *testing.T) {
	two := data.Needle{Answers: []string{"4821", "33"}}
	for out, want := range map[string]float64{
		"":                 0,
		" 4821.":           0.5,
		" 4821 and 33.":    1,
		"33, 4821":         1,
		"48210 and 133":    0,
		"4 821 and 3 3":    0,
		"x4821y":           0.5,
		"4821 4821 4821":   0.5,
		"the number is 33": 0.5,
	} {
		if got := hits(two, out); got != want {
			t.Errorf("%q: %g, want %g", out, got, want)
		}
	}
}

func TestExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 100, 101, 5000} {
		var e extremes
		list := make([]float64, n)
		for i := range list {
			list[i] = math.Exp(3 * r.NormFloat64())
			e.add(list[i])
		}
		slices.Sort(list)
		kth := func(k int) float64 {
			if k > n {
				return 0
			}
			return list[n-k]
		}
		got := e.result()
		want := Extreme{kth(1), kth(2), kth(3), kth(10), kth(100), 0}
		if n > 0 {
			want.Median = list[n/2]
		}
		if !near(got.Median, want.Median, 0.012*want.Median) {
			t.Errorf("median of %d: %g, want %g", n, got.Median, want.Median)
		}
		if got.Median = want.Median; got != want {
			t.Errorf("of %d: %+v, want %+v", n, got, want)
		}
	}
	if binOf(math.Inf(1)) != bins-1 || binOf(0) != 0 || binOf(1) != oneBin {
		t.Errorf("bins of ∞, 0, 1: %d, %d, %d", binOf(math.Inf(1)), binOf(0), binOf(1))
	}
}
