package infer

import (
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

// TestLogprobsBeforePenalty: what is reported is the model's distribution, whatever the sampler makes of it.
func TestLogprobsBeforePenalty(t *testing.T) {
	logits := []float32{2, 1.5, 1, -1}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	want := func(id int32) float64 { return float64(logits[id]) - math.Log(sum) }
	for _, s := range []Sampling{{RepetitionPenalty: 4}, {RepetitionPenalty: 4, Temperature: 0.1, Seed: 5}, {Temperature: 3, Seed: 5, TopK: 2}} {
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

// TestLogprobsOfWhateverIsChosen: random rows with every adjustment: what is reported is the model's own, also of a token
// that was penalised or favoured itself.
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
		s := Sampling{Logprobs: 6, Seed: g.Uint64(), Temperature: float64(g.IntN(3)), RepetitionPenalty: 0.5 + g.Float64(), PresencePenalty: g.NormFloat64(),
			FrequencyPenalty: g.NormFloat64(), Bias: []TokenBias{{ID: int32(g.IntN(6)), Bias: 3}}}
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
