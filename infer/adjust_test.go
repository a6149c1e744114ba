package infer

import (
	"math"
	"testing"
)

// Presence and frequency penalties are OpenAI's: a token that was generated n > 0 times loses presence + n·frequency. Tokens of the prompt
// do not count.
func TestPenaltiesByCount(t *testing.T) {
	s := Sampling{PresencePenalty: 0.5, FrequencyPenalty: 0.25}
	var h history
	h.start(&s, 4, []int32{3, 3, 3})
	for _, id := range []int32{1, 2, 2, 2} {
		h.took(id)
	}
	logits := []float32{1, 1, 1, 1}
	adjust(logits, &s, &h)
	for id, want := range []float64{1, 1 - 0.5 - 0.25, 1 - 0.5 - 3*0.25, 1} {
		if got := float64(logits[id]); math.Abs(got-want) > 1e-6 {
			t.Errorf("token %d: logit %g, want %g", id, got, want)
		}
	}
}
