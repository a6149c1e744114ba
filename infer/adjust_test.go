package infer

import (
	"errors"
	"math"
	"testing"
)

// Presence and frequency penalties are OpenAI's: a token that was generated n > 0 times loses presence + n·frequency.
// Tokens of the prompt do not count.
func TestPenaltiesByCount(t *testing.T) {
	for _, s := range []Sampling{{PresencePenalty: 0.5, FrequencyPenalty: 0.25}, {PresencePenalty: 0.5},
		{FrequencyPenalty: 0.25}, {PresencePenalty: -1}, {FrequencyPenalty: -0.5}, {}} {
		var h history
		h.start(&s, 4, []int32{3, 3, 3})
		for _, id := range []int32{1, 2, 2, 2} {
			h.took(id)
		}
		logits := []float32{1, 1, 1, 1}
		adjust(logits, &s, &h)
		for id, n := range []float64{0, 1, 3, 0} {
			want := 1 - s.PresencePenalty*min(n, 1) - s.FrequencyPenalty*n
			if got := float64(logits[id]); !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("presence %g, frequency %g, token %d: logit %g, want %g", s.PresencePenalty,
					s.FrequencyPenalty, id, got, want)
			}
		}
	}
}

// Both sides of the bounds on penalties, biases and min_tokens, with the field at fault.
func TestAdjustBounds(t *testing.T) {
	for _, x := range []struct {
		s     Sampling
		field string
	}{
		{Sampling{PresencePenalty: 100, FrequencyPenalty: -100}, ""},
		{Sampling{PresencePenalty: 100.1}, "presence_penalty"},
		{Sampling{PresencePenalty: -100.1}, "presence_penalty"},
		{Sampling{FrequencyPenalty: 100.1}, "frequency_penalty"},
		{Sampling{FrequencyPenalty: math.NaN()}, "frequency_penalty"}, {Sampling{MinTokens: 0}, ""},
		{Sampling{MinTokens: -1}, "min_tokens"},
		{Sampling{Bias: []TokenBias{{ID: 0, Bias: 1e6}, {ID: 9, Bias: -1e6}}}, ""},
		{Sampling{Bias: []TokenBias{{ID: 10}}}, "logit_bias"},
		{Sampling{Bias: []TokenBias{{ID: -1}}}, "logit_bias"},
		{Sampling{Bias: []TokenBias{{Bias: 1.1e6}}}, "logit_bias"},
		{Sampling{Bias: []TokenBias{{Bias: math.Inf(-1)}}}, "logit_bias"},
	} {
		err := x.s.checkAdjust(10)
		var fe *FieldError
		if (err == nil) != (x.field == "") || err != nil && (!errors.As(err, &fe) || fe.Field != x.field) {
			t.Errorf("%+v: %v, want one of field %q", x.s, err, x.field)
		}
	}
}

// The order of adjustments, each against its formula: repetition, presence and frequency, bias, min_tokens, constraint.
func TestAdjustByHand(t *testing.T) {
	s := Sampling{RepetitionPenalty: 2, PresencePenalty: 0.5, FrequencyPenalty: 0.25,
		Bias: []TokenBias{{ID: 1, Bias: 3}, {ID: 4, Bias: -1}}, MinTokens: 3}
	var h history
	h.start(&s, 6, []int32{0, 1}) // in the prompt
	h.ends = []int32{5, 99}
	h.took(1)
	h.took(2)
	logits := []float32{4, -2, 1, 0, float32(math.Inf(-1)), 7}
	adjust(logits, &s, &h)
	want := []float64{4. / 2, -2*2 - 0.5 - 0.25 + 3, 1./2 - 0.5 - 0.25, 0, math.Inf(-1), math.Inf(-1)}
	for i := range want {
		if float64(logits[i]) != want[i] {
			t.Errorf("logit %d is %g, want %g", i, logits[i], want[i])
		}
	}
	h.took(2) // the third token: the end is allowed again, and 2 has come twice
	logits = []float32{0, 0, 1, 0, 0, 7}
	adjust(logits, &s, &h)
	if logits[5] != 7 || logits[2] != 1./2-0.5-2*0.25 {
		t.Errorf("after three tokens: %v", logits)
	}
	huge := []float32{math.MaxFloat32, -math.MaxFloat32, float32(math.NaN()), float32(math.Inf(1))}
	penalize(huge, []int32{0, 1, 2, 3}, 0.5)
	if huge[0] != math.MaxFloat32 || huge[1] != -math.MaxFloat32/2 || huge[2] == huge[2] ||
		!math.IsInf(float64(huge[3]), 1) {
		t.Errorf("extreme logits became %v", huge)
	}
	nudge(huge, 1, -1e39)
	if huge[1] != -math.MaxFloat32 {
		t.Errorf("a finite logit became %g", huge[1])
	}
	if nudge(huge, 0, 1e39); huge[0] != math.MaxFloat32 {
		t.Errorf("a finite logit became %g", huge[0])
	}
	if penalize(huge, []int32{0, 1}, 3); huge[0] != math.MaxFloat32/3 || huge[1] != -math.MaxFloat32 {
		t.Errorf("extreme logits became %v", huge[:2])
	}
}
