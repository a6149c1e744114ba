package infer

import (
	"math"
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
		if math.Abs(got-want(id)) > 1e-6 {
			t.Errorf("%+v: token %d has log-probability %g, want %g", s, id, got, want(id))
		}
		for i, x := range top {
			if x.ID != int32(i) || math.Abs(x.Logprob-want(x.ID)) > 1e-6 {
				t.Errorf("%+v: place %d is token %d with %g, want %g", s, i, x.ID, x.Logprob, want(int32(i)))
			}
		}
	}
}
