package infer

import (
	"fmt"
	"math"
)

// TokenBias is added to the logit of one token.
type TokenBias struct {
	ID   int32
	Bias float64
}

// Constraint restricts the text of a sequence, for example to a grammar. It belongs to one request; its methods are
// called from the goroutine that runs the step, one call at a time.
type Constraint interface {
	// Mask sets the logits of all tokens that may not come next to −Inf. It must leave at least one.
	Mask(logits []float32)
	// Accept consumes the chosen token. done reports that the text is complete and cannot continue.
	Accept(id int32) (done bool)
}

// adjusts reports whether logits are changed before a token is picked, so that the device's most likely token is not
// the answer.
func (s *Sampling) adjusts() bool {
	return s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 || s.PresencePenalty != 0 || s.FrequencyPenalty != 0 ||
		len(s.Bias) > 0 || s.MinTokens > 0 || s.Constraint != nil
}

// adjust applies, in this order: repetition penalty, presence and frequency penalties, biases, min_tokens, constraint.
func adjust(logits []float32, s *Sampling, h *history) {
	penalize(logits, h.ids, s.RepetitionPenalty)
	for id, n := range h.counts {
		nudge(logits, id, -s.PresencePenalty-s.FrequencyPenalty*float64(n))
	}
	for _, b := range s.Bias {
		nudge(logits, b.ID, b.Bias)
	}
	if h.made < s.MinTokens {
		for _, id := range h.ends {
			if int(id) < len(logits) {
				logits[id] = float32(math.Inf(-1))
			}
		}
	}
	if s.Constraint != nil {
		s.Constraint.Mask(logits)
	}
}

// nudge adds x to the logit of id; a finite logit stays finite.
func nudge(logits []float32, id int32, x float64) {
	l := float64(logits[id])
	if !math.IsInf(l, 0) {
		logits[id] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, l+x)))
	}
}

// checkAdjust checks the fields that adjust uses.
func (s *Sampling) checkAdjust(vocab int) error {
	for _, f := range []struct {
		name string
		v    float64
	}{{"presence_penalty", s.PresencePenalty}, {"frequency_penalty", s.FrequencyPenalty}} {
		if !(math.Abs(f.v) <= 100) {
			return &FieldError{f.name, fmt.Sprintf("is %g, must be between -100 and 100", f.v)}
		}
	}
	if s.MinTokens < 0 {
		return &FieldError{"min_tokens", fmt.Sprintf("is %d, must not be negative", s.MinTokens)}
	}
	for _, b := range s.Bias {
		if b.ID < 0 || int(b.ID) >= vocab {
			return &FieldError{"logit_bias", fmt.Sprintf("token id %d is outside the vocabulary of %d", b.ID, vocab)}
		}
		if !(math.Abs(b.Bias) <= 1e6) {
			return &FieldError{"logit_bias",
				fmt.Sprintf("the bias of token %d is %g, must be a finite number of ordinary size", b.ID, b.Bias)}
		}
	}
	return nil
}
