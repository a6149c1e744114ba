package infer

import (
	"errors"
	"fmt"
	"slices"
)

// state is a sequence's state in the engine.
type state uint8

const (
	idle    state = iota // nothing to do: ended, or a session between turns
	waiting              // queued for a slot and pages
	running              // in the batch
)

// seq is one sequence of tokens and its part in the cache. While a step computes, a running sequence belongs to the
// step; otherwise it is protected by the engine's lock.
type seq struct {
	tokens []int32 // prompt and generated
	end    int     // length at which it is full
	cached int     // positions whose keys and values are in pages
	pages  []int32
	slot   int32

	sampling Sampling
	hist     history

	state state
	leave bool // its owner wants no more tokens
	keep  bool // a session: pages outlive the turn

	prompt int    // tokens before this turn's first generated one
	scope  string // whose prefixes it may reuse; see Request.Scope
	shared int    // pages entered into the prefix table
	before uint64 // number of the last of these entries
	hit    int    // tokens found there at first
	ran    bool   // it has been in the batch
	scored int    // prompt positions whose logits have been used for Echo

	// The step's plan: starting at row want of the logits, echo rows score the prompt and, if last, one more is to be
	// sampled from.
	want, echo int
	last       bool

	fresh    []token        // tokens of this step
	freshTop []TokenLogprob // their Tops, concatenated
	out      []token        // published and not yet taken by its owner
	outTop   []TokenLogprob
}

// token is a step's result for one sequence.
type token struct {
	id      int32 // −1 if the sequence ended without one
	prompt  bool  // it is an echo
	logprob float64
	tops    int    // number of its entries in outTop
	reason  string // why it was the last; empty otherwise
	err     error  // with ReasonError
}

// ContextError is a prompt that does not fit.
type ContextError struct {
	Prompt    int    // its tokens
	MaxTokens int    // tokens requested, if they are what does not fit; else 0
	Limit     int    // tokens that fit
	Of        string // what limits them: "context" or "cache"
}

// Error states both numbers.
func (e *ContextError) Error() string {
	what := "the model's context"
	if e.Of == "cache" {
		what = "the KV cache"
	}
	if e.MaxTokens > 0 {
		return fmt.Sprintf("prompt of %d tokens and max_tokens of %d do not fit: %s has room for %d", e.Prompt,
			e.MaxTokens, what, e.Limit)
	}
	return fmt.Sprintf("prompt has %d tokens, %s has room for %d", e.Prompt, what, e.Limit)
}

// begin prepares s to generate after its tokens. It does not touch the pages: those of an idle session belong to the
// engine, which may take them at any step.
func (e *Engine) begin(s *seq, p *Sampling) error {
	vocab := e.model.Config.Vocab
	if err := errors.Join(p.Check(), p.checkAdjust(vocab)); err != nil {
		return err
	}
	if len(p.Stop) > 0 && e.tok == nil {
		return &FieldError{"stop", "needs a tokenizer, and the engine has none"}
	}
	n, context, room := len(s.tokens), e.model.Config.Context, e.store.pool.tokens()
	if n == 0 {
		return &FieldError{"prompt", "has no tokens, must have at least one (such as the beginning-of-text token)"}
	}
	for i, id := range s.tokens {
		if id < 0 || int(id) >= vocab {
			return &FieldError{"prompt", fmt.Sprintf("token %d is id %d, must be below the vocabulary's %d",
				i, id, vocab)}
		}
	}
	if n > context {
		return &ContextError{Prompt: n, Limit: context, Of: "context"}
	}
	s.end = min(context, room)
	if p.MaxTokens > 0 {
		s.end = n + min(p.MaxTokens, context-n)
	}
	if p.ScoreOnly {
		s.end = n
	}
	if n > room {
		return &ContextError{Prompt: n, Limit: room, Of: "cache"}
	}
	if s.end > room {
		return &ContextError{Prompt: n, MaxTokens: s.end - n, Limit: room, Of: "cache"}
	}
	s.sampling = *p
	s.sampling.Logprobs = min(p.Logprobs, vocab)
	s.leave, s.out, s.outTop = false, s.out[:0], s.outTop[:0]
	s.prompt, s.scored = n, 0
	if p.Echo {
		// Nothing comes before the first, so it has no probability.
		s.out = append(s.out, token{id: s.tokens[0], prompt: true})
	}
	s.hist.start(p, vocab, s.tokens)
	s.hist.ends = p.StopIDs
	if !p.IgnoreEOS {
		s.hist.ends = slices.Concat(p.StopIDs, e.eos)
	}
	return nil
}

// greedy reports whether s needs only its most likely token from a step.
func (s *seq) greedy() bool {
	p := &s.sampling
	return p.Temperature == 0 && p.Logprobs == 0 && !p.Echo && !p.adjusts()
}
