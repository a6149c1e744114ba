package infer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sequence draws n tokens from the same logits.
func sequence(t *testing.T, logits []float32, s Sampling, n int) (ids []int32) {
	t.Helper()
	m := newSampler(len(logits))
	var h history
	h.start(&s, len(logits), nil)
	for range n {
		id, _, _, err := m.next(slices.Clone(logits), &s, &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestSeed: the seed decides the tokens, and nothing else does.
func TestSeed(t *testing.T) {
	logits := make([]float32, 50)
	for _, s := range []Sampling{{Temperature: 1}, {Temperature: 1, TopK: 40}, {Temperature: 1, TopP: 0.9}} {
		var all [][]int32
		for seed := range uint64(4) {
			s.Seed = seed
			ids := sequence(t, logits, s, 32)
			if !slices.Equal(ids, sequence(t, logits, s, 32)) {
				t.Errorf("%+v: the same seed draws other tokens", s)
			}
			for _, other := range all {
				if slices.Equal(ids, other) {
					t.Errorf("%+v: another seed draws the same tokens", s)
				}
			}
			all = append(all, ids)
		}
	}
}

// drawn is the token of a seed's first number by definition: in the order of ids, or of preference once a filter has
// sorted them, the first whose cumulative weight exceeds that share of the sum.
func drawn(logits []float32, s Sampling) int32 {
	var list []candidate
	most := slices.Max(logits)
	for i, l := range logits {
		list = append(list, candidate{int32(i), l, math.Exp((float64(l) - float64(most)) / s.Temperature)})
	}
	if filters := s.TopP > 0 && s.TopP < 1; s.TopK > 0 || filters {
		slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.logit, a.logit) })
		if s.TopK > 0 {
			list = list[:min(s.TopK, len(list))]
		}
		for n, sum := 1, total(list); filters && n <= len(list); n++ {
			if total(list[:n]) >= s.TopP*sum {
				list = list[:n]
			}
		}
	}
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.weight < s.MinP })
	var rng rand.PCG
	rng.Seed(s.Seed, 0x616e746970686173)
	x := float64(rng.Uint64()>>11) / (1 << 53) * total(list)
	for _, c := range list {
		if x -= c.weight; x < 0 {
			return c.id
		}
	}
	return -1
}

// A seed gives the same tokens in every version: those that the definition draws, whatever the filters.
func TestDrawsByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 5))
	for _, s := range []Sampling{
		{Temperature: 1}, {Temperature: 1, TopP: 1}, {Temperature: 0.4, MinP: 0.2}, {Temperature: 1, MinP: 1},
		{Temperature: 1, TopK: 1}, {Temperature: 2, TopK: 3},
		{Temperature: 1, TopK: 40}, {Temperature: 1, TopK: 99}, {Temperature: 1, TopK: 9, TopP: 1},
		{Temperature: 1, TopP: 0.5}, {Temperature: 1, TopP: 0.95, MinP: 0.1},
		{Temperature: 1, TopK: 5, TopP: 0.8, MinP: 0.05}, {Temperature: 1, TopK: 40, TopP: 0.7},
	} {
		for seed := range uint64(200) {
			logits := make([]float32, 40)
			for i := range logits {
				logits[i] = float32(g.NormFloat64() * 2)
			}
			logits[g.IntN(40)] = float32(math.Inf(-1))
			s.Seed = seed
			if got, want := sequence(t, logits, s, 1)[0], drawn(logits, s); got != want {
				t.Fatalf("%+v: token %d, want %d", s, got, want)
			}
		}
	}
	for _, c := range []struct {
		weights []float64
		x       float64
		want    int32
	}{{[]float64{1, 1}, 0, 0}, {[]float64{1, 1}, 0.99, 0}, {[]float64{1, 1}, 1, 1}, {[]float64{1, 1}, 2, 1},
		{[]float64{1, 0, 0}, 1, 0}, {[]float64{0, 1}, 0, 1}} {
		var list []candidate
		for i, w := range c.weights {
			list = append(list, candidate{id: int32(i), weight: w})
		}
		if got := draw(list, c.x); got != c.want {
			t.Errorf("%g of %v: token %d, want %d", c.x, c.weights, got, c.want)
		}
	}
}

// TestLogprobsBeforePenalty: what is reported is the model's distribution, whatever the sampler makes of it.
func TestLogprobsBeforePenalty(t *testing.T) {
	logits := []float32{2, 1.5, 1, -1}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	want := func(id int32) float64 { return float64(logits[id]) - math.Log(sum) }
	for _, s := range []Sampling{{RepetitionPenalty: 4}, {RepetitionPenalty: 4, Temperature: 0.1, Seed: 5},
		{Temperature: 3, Seed: 5, TopK: 2}} {
		s.Logprobs = 3
		m := newSampler(len(logits))
		var h history
		h.start(&s, len(logits), []int32{0}) // id 0 has been seen
		id, got, top, err := m.next(slices.Clone(logits), &s, &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.RepetitionPenalty > 1 && id == 0 {
			t.Errorf("%+v: the penalty did nothing", s)
		}
		if !(math.Abs(got-want(id)) <= 1e-6) {
			t.Errorf("%+v: token %d has log-probability %g, want %g", s, id, got, want(id))
		}
		for i, x := range top {
			if x.ID != int32(i) || !(math.Abs(x.Logprob-want(x.ID)) <= 1e-6) {
				t.Errorf("%+v: place %d is token %d with %g, want %g", s, i, x.ID, x.Logprob, want(int32(i)))
			}
		}
	}
}

// TestLogprobsOfWhateverIsChosen: random rows with every adjustment: what is reported is the model's own, also of a
// token that was penalised or favoured itself.
func TestLogprobsOfWhateverIsChosen(t *testing.T) {
	g := rand.New(rand.NewPCG(8, 9))
	adjusted := 0
	for range 300 {
		logits := make([]float32, 6)
		sum := 0.0
		for i := range logits {
			logits[i] = float32(g.NormFloat64())
			sum += math.Exp(float64(logits[i]))
		}
		s := Sampling{Logprobs: 6, Seed: g.Uint64(), Temperature: float64(g.IntN(3)), RepetitionPenalty: 0.5 +
			g.Float64(), PresencePenalty: g.NormFloat64(), FrequencyPenalty: g.NormFloat64(),
			Bias: []TokenBias{{ID: int32(g.IntN(6)), Bias: 3}}}
		var h history
		h.start(&s, 6, []int32{1, 2})
		h.took(3)
		m := newSampler(6)
		id, got, top, err := m.next(slices.Clone(logits), &s, &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if id == s.Bias[0].ID || id >= 1 && id <= 3 {
			adjusted++
		}
		if want := float64(logits[id]) - math.Log(sum); !(math.Abs(got-want) <= 1e-6) {
			t.Fatalf("%+v: token %d has %g, want %g", s, id, got, want)
		}
		for _, x := range top {
			if want := float64(logits[x.ID]) - math.Log(sum); !(math.Abs(x.Logprob-want) <= 1e-6) {
				t.Fatalf("token %d is listed with %g, want %g", x.ID, x.Logprob, want)
			}
		}
	}
	if adjusted < 100 {
		t.Errorf("only %d of the tokens were adjusted", adjusted)
	}
}
