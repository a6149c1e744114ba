package infer

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// exact is the distribution that the filters define, computed the plain way: full sort, full softmax.
func exact(logits []float32, s Sampling) []float64 {
	type tok struct {
		id int
		p  float64
	}
	list := make([]tok, len(logits))
	sum := 0.0
	for i, l := range logits {
		list[i] = tok{i, math.Exp(float64(l) / s.Temperature)}
	}
	slices.SortStableFunc(list, func(a, b tok) int {
		switch {
		case a.p > b.p:
			return -1
		case a.p < b.p:
			return 1
		}
		return 0
	})
	if s.TopK > 0 {
		list = list[:min(s.TopK, len(list))]
	}
	for _, x := range list {
		sum += x.p
	}
	if s.TopP > 0 && s.TopP < 1 {
		reached := 0.0
		for i, x := range list {
			if reached += x.p / sum; reached >= s.TopP {
				list = list[:i+1]
				break
			}
		}
	}
	p := make([]float64, len(logits))
	sum = 0
	for _, x := range list {
		if x.p >= s.MinP*list[0].p {
			p[x.id] = x.p
			sum += x.p
		}
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// draws samples n times from the same logits.
func draws(t *testing.T, logits []float32, s Sampling, n int) []int {
	t.Helper()
	m := newSampler(len(logits))
	var h history
	h.start(&s, len(logits), nil)
	counts := make([]int, len(logits))
	row := make([]float32, len(logits))
	for range n {
		copy(row, logits)
		id, _, _, err := m.next(row, &s, &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
	}
	return counts
}

// Frequencies follow the exact distribution: χ² stays within six deviations of its mean, and what is filtered out never
// comes.
func TestSamplerFrequencies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 40)
	for i := range logits {
		logits[i] = float32(2 * r.NormFloat64())
	}
	wide := make([]float32, 1000) // flat enough that top-p must look beyond its first prefix
	for i := range wide {
		wide[i] = float32(r.NormFloat64())
	}
	for _, c := range []struct {
		name   string
		logits []float32
		s      Sampling
	}{
		{"plain", logits, Sampling{Temperature: 1}},
		{"cold", logits, Sampling{Temperature: 0.5}},
		{"hot", logits, Sampling{Temperature: 3}},
		{"top-k", logits, Sampling{Temperature: 1, TopK: 5}},
		{"top-k of all", logits, Sampling{Temperature: 1, TopK: 1000}},
		{"top-p", logits, Sampling{Temperature: 1, TopP: 0.8}},
		{"min-p", logits, Sampling{Temperature: 1, MinP: 0.1}},
		{"all filters", logits, Sampling{Temperature: 1.3, TopK: 12, TopP: 0.9, MinP: 0.05}},
		{"top-k, then min-p", logits, Sampling{Temperature: 1, TopK: 30, MinP: 0.3}},
		{"top-p, then min-p", logits, Sampling{Temperature: 1, TopP: 0.99, MinP: 0.3}},
		{"wide top-p", wide, Sampling{Temperature: 1, TopP: 0.5}},
		{"wide top-k", wide, Sampling{Temperature: 1, TopK: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			draw := 1 << 24 / len(c.logits) / 512 // a row of any width in the same time
			n := float64(draw)
			c.s.Seed = 11
			chi, cells := 0.0, 0
			p := exact(c.logits, c.s)
			for i, k := range draws(t, c.logits, c.s, draw) {
				if p[i] == 0 {
					if k > 0 {
						t.Errorf("token %d came %d times and is filtered out", i, k)
					}
					continue
				}
				cells++
				chi += (float64(k) - n*p[i]) * (float64(k) - n*p[i]) / (n * p[i])
			}
			df := float64(cells - 1)
			if chi > df+6*math.Sqrt(2*df) {
				t.Errorf("χ² = %.1f with %g degrees of freedom", chi, df)
			}
		})
	}
}

// The nucleus holds the tokens of the plain definition, in rows from flat to steep.
func TestNucleus(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, spread := range []float64{0.001, 0.1, 1, 3, 10} {
		logits := make([]float32, 500)
		for i := range logits {
			logits[i] = float32(spread * r.NormFloat64())
		}
		for _, share := range []float64{0.01, 0.3, 0.5, 0.9, 0.99, 0.9999} {
			s := Sampling{Temperature: 1, TopP: share}
			m, got := newSampler(len(logits)), make([]bool, len(logits))
			for _, c := range m.nucleus(logits, &s, float64(slices.Max(logits)), len(logits)) {
				got[c.id] = true
			}
			for i, p := range exact(logits, s) {
				if got[i] != (p > 0) {
					t.Errorf("spread %g, top-p %g: token %d is in it: %v, by definition %v", spread, share, i,
						got[i], p > 0)
					break
				}
			}
		}
	}
}

func TestSamplerEdges(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		name   string
		logits []float32
		s      Sampling
		want   []int32 // the ids that may come, all of which must
	}{
		{"greedy", []float32{1, 3, 2}, Sampling{}, []int32{1}},
		{"greedy tie takes the lowest id", []float32{1, 3, 3, 3}, Sampling{}, []int32{1}},
		{"greedy among negatives", []float32{-5, -3, -4}, Sampling{}, []int32{1}},
		{"k = 1", []float32{1, 3, 2}, Sampling{Temperature: 5, TopK: 1}, []int32{1}},
		{"k = 1 in a tie", []float32{3, 3, 3}, Sampling{Temperature: 1, TopK: 1}, []int32{0}},
		{"k = 2 in a tie", []float32{0, 3, 3, 3}, Sampling{Temperature: 1, TopK: 2}, []int32{1, 2}},
		{"p near 0", []float32{1, 3, 2}, Sampling{Temperature: 5, TopP: 1e-300}, []int32{1}},
		{"p near 0 in a tie", []float32{3, 3, 3}, Sampling{Temperature: 1, TopP: 1e-9}, []int32{0}},
		{"p just reached", []float32{0, 0, 0, 0}, Sampling{Temperature: 1, TopP: 0.5}, []int32{0, 1}},
		{"p just passed", []float32{0, 0, 0, 0}, Sampling{Temperature: 1, TopP: 0.51}, []int32{0, 1, 2}},
		{"p = 1", []float32{0, 0, 0, 0}, Sampling{Temperature: 1, TopP: 1}, []int32{0, 1, 2, 3}},
		{"p of the k kept", []float32{1, 1, 1, 1}, Sampling{Temperature: 1, TopK: 2, TopP: 0.6}, []int32{0, 1}},
		{"min-p = 1 keeps ties", []float32{2, 3, 3}, Sampling{Temperature: 9, MinP: 1}, []int32{1, 2}},
		{"min-p behind top-k", []float32{2, 3, 3}, Sampling{Temperature: 9, MinP: 1, TopK: 2}, []int32{1, 2}},
		{"masked tokens never come", []float32{inf, 0, inf, 0}, Sampling{Temperature: 1e300}, []int32{1, 3}},
		{"masked tokens within k", []float32{inf, 0, inf}, Sampling{Temperature: 1, TopK: 2}, []int32{1}},
		{"tiny temperature", []float32{1, 1.0001, 1}, Sampling{Temperature: 1e-300}, []int32{1}},
		{"one token", []float32{-7}, Sampling{Temperature: 1, TopK: 3, TopP: 0.5, MinP: 0.5}, []int32{0}},
	} {
		counts := draws(t, c.logits, c.s, 300)
		for id, n := range counts {
			if may := slices.Contains(c.want, int32(id)); may != (n > 0) {
				t.Errorf("%s: token %d came %d times, want exactly %v", c.name, id, n, c.want)
			}
		}
	}
}

func TestNoDistribution(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	m := newSampler(3)
	for want, row := range map[string][]float32{"token 1 is NaN": {0, nan, 2}, "token 2 is +Inf": {0, 1, inf},
		"all 3 logits are -Inf": {-inf, -inf, -inf}} {
		for _, s := range []Sampling{{}, {Temperature: 1, Logprobs: 2}} {
			_, _, _, err := m.next(slices.Clone(row), &s, &history{}, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: error %v, want %q in it", row, err, want)
			}
		}
	}
}

// Positive logits are divided, negative ones multiplied, once per distinct id.
func TestRepetitionPenalty(t *testing.T) {
	s := Sampling{RepetitionPenalty: 2}
	var h history
	h.start(&s, 70, []int32{0, 1, 1, 69})
	h.see(69)
	h.see(3)
	row := make([]float32, 70)
	copy(row, []float32{4, -4, 5, 0})
	row[69] = 6
	penalize(row, h.ids, s.RepetitionPenalty)
	if got := []float32{row[0], row[1], row[2], row[3], row[69]}; !slices.Equal(got, []float32{2, -8, 5, 0, 3}) {
		t.Errorf("got %v", got)
	}
	for _, p := range []float64{1e-308, 1e308} {
		row := []float32{4, -4}
		penalize(row, []int32{0, 1}, p)
		if _, err := argmax(row); err != nil {
			t.Errorf("penalty %g: %v", p, err)
		}
	}
}

// Log-probabilities are the model's own, whatever the filters do to the choice.
func TestLogprobs(t *testing.T) {
	logits := []float32{1, 4, 2, 4, 3}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	m := newSampler(5)
	s := Sampling{Temperature: 0.1, TopK: 1, RepetitionPenalty: 100, Logprobs: 3}
	var h history
	h.start(&s, 5, []int32{1, 3})
	id, lp, top, err := m.next(slices.Clone(logits), &s, &h, nil)
	if err != nil || id != 4 {
		t.Fatalf("id %d, error %v; the penalty leaves 4", id, err)
	}
	want := func(i int) float64 { return float64(logits[i]) - math.Log(sum) }
	if !(math.Abs(lp-want(4)) <= 1e-12) || len(top) != 3 {
		t.Errorf("logprob %g, want %g; top %v", lp, want(4), top)
	}
	for i, id := range []int32{1, 3, 4} {
		if top[i].ID != id || !(math.Abs(top[i].Logprob-want(int(id))) <= 1e-12) {
			t.Errorf("top %d is %+v, want %d with %g", i, top[i], id, want(int(id)))
		}
	}
}

// best agrees with a full sort for every k, ties included.
func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	logits := make([]float32, 500)
	for i := range logits {
		logits[i] = float32(r.IntN(40))
	}
	full := slices.Clone(best(make([]candidate, 500), logits, 500))
	if !slices.IsSortedFunc(full, compare) {
		t.Fatal("full sort is not sorted")
	}
	for k := range 501 {
		if !slices.Equal(best(make([]candidate, 500), logits, k), full[:k]) {
			t.Fatalf("the best %d are not the first of the sorted row", k)
		}
	}
}

func TestSamplingCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		s     Sampling
		field string
	}{
		{Sampling{}, ""},
		{Sampling{Temperature: 2, TopK: 5, TopP: 1, MinP: 1, RepetitionPenalty: 1.1, MaxTokens: 1 << 62,
			Stop: []string{"é"}, StopIDs: []int32{0}, Logprobs: 1 << 40}, ""},
		{Sampling{Temperature: nan}, "temperature"}, {Sampling{Temperature: -1}, "temperature"},
		{Sampling{Temperature: inf}, "temperature"},
		{Sampling{TopP: nan}, "top_p"}, {Sampling{TopP: 1.01}, "top_p"}, {Sampling{TopP: -0.1}, "top_p"},
		{Sampling{TopP: inf}, "top_p"},
		{Sampling{MinP: nan}, "min_p"}, {Sampling{MinP: 2}, "min_p"}, {Sampling{MinP: -inf}, "min_p"},
		{Sampling{RepetitionPenalty: nan}, "repetition_penalty"},
		{Sampling{RepetitionPenalty: inf}, "repetition_penalty"},
		{Sampling{RepetitionPenalty: -2}, "repetition_penalty"},
		{Sampling{TopK: -1}, "top_k"}, {Sampling{MaxTokens: math.MinInt}, "max_tokens"},
		{Sampling{Logprobs: -1}, "logprobs"},
		{Sampling{Stop: []string{"a", ""}}, "stop"}, {Sampling{Stop: []string{"\xff"}}, "stop"},
		{Sampling{StopIDs: []int32{-1}}, "stop_token_ids"},
	} {
		err := c.s.Check()
		var fe *FieldError
		if c.field == "" && err != nil || c.field != "" &&
			(!errors.As(err, &fe) || fe.Field != c.field || !strings.HasPrefix(err.Error(), c.field+": ")) {
			t.Errorf("%+v: error %v, want one of field %q", c.s, err, c.field)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 50000)
	for i := range logits {
		logits[i] = float32(3 * r.NormFloat64())
	}
	row := make([]float32, len(logits))
	m := newSampler(len(logits))
	for _, c := range []struct {
		name string
		s    Sampling
	}{
		{"greedy", Sampling{}}, {"plain", Sampling{Temperature: 1}}, {"top-k=40", Sampling{Temperature: 1, TopK: 40}},
		{"top-p=0.9", Sampling{Temperature: 1, TopP: 0.9}}, {"min-p=0.05", Sampling{Temperature: 1, MinP: 0.05}},
		{"logprobs=5", Sampling{Logprobs: 5}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var h history
			h.start(&c.s, len(logits), nil)
			top := make([]TokenLogprob, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				copy(row, logits)
				m.next(row, &c.s, &h, top[:0])
			}
		})
	}
}
