package infer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Sampling configures how tokens are chosen and when to stop. The zero value is greedy decoding until the end-of-text
// token or the end of the context. The order of the filters is: adjust, temperature, top-k, top-p, min-p.
type Sampling struct {
	Temperature       float64 // divides the logits; 0 takes the most likely token
	TopK              int     // keep the k most likely tokens; 0 keeps all
	TopP              float64 // keep the fewest tokens whose probabilities reach p; 0 keeps all
	MinP              float64 // keep tokens of at least this fraction of the best one's probability; 0 keeps all
	RepetitionPenalty float64 // divides positive and multiplies negative logits of ids seen before; 0 and 1: no effect
	Seed              uint64  // of this request's own random stream
	PresencePenalty   float64 // subtracted once from the logits of generated tokens
	FrequencyPenalty  float64 // subtracted from them once per occurrence
	Bias              []TokenBias
	Constraint        Constraint // restricts the text; nil for none
	MinTokens         int        // no end-of-text token or stop id before this many tokens
	MaxTokens         int        // maximum number of tokens to generate; 0 fills the context
	Stop              []string   // texts that end the output; they are not part of it
	StopIDs           []int32    // ids that end the output
	IgnoreEOS         bool       // continue after the end-of-text token
	Logprobs          int        // report each token's log-probability and the n most likely ones; 0 reports none
	Echo              bool       // before the answer, emit the prompt's tokens with their log-probabilities
	ScoreOnly         bool       // with Echo: no answer
}

// FieldError is a setting out of range. Field is spelled as in requests and flags.
type FieldError struct{ Field, Problem string }

// Error names the field, its value and the allowed values.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Check returns a [*FieldError] that names the field out of range and the allowed values.
func (s *Sampling) Check() error {
	for _, f := range []struct {
		name  string
		v, hi float64
	}{
		{"temperature", s.Temperature, math.MaxFloat64}, {"top_p", s.TopP, 1}, {"min_p", s.MinP, 1},
		{"repetition_penalty", s.RepetitionPenalty, math.MaxFloat64},
	} {
		if f.v >= 0 && f.v <= f.hi { // false for NaN
			continue
		}
		if f.hi == 1 {
			return &FieldError{f.name, fmt.Sprintf("is %g, must be between 0 and 1 (0 turns it off)", f.v)}
		}
		return &FieldError{f.name, fmt.Sprintf("is %g, must be finite and not negative", f.v)}
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"top_k", s.TopK}, {"max_tokens", s.MaxTokens}, {"logprobs", s.Logprobs}} {
		if f.v < 0 {
			return &FieldError{f.name, fmt.Sprintf("is %d, must not be negative", f.v)}
		}
	}
	for i, t := range s.Stop {
		if t == "" || !utf8.ValidString(t) {
			return &FieldError{"stop", fmt.Sprintf("entry %d is %q, must be non-empty UTF-8 text", i, t)}
		}
	}
	for i, id := range s.StopIDs {
		if id < 0 {
			return &FieldError{"stop_token_ids", fmt.Sprintf("entry %d is %d, must not be negative", i, id)}
		}
	}
	return nil
}
