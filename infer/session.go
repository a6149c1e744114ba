package infer

import (
	"context"
	"errors"
	"fmt"
)

// Session is a conversation that keeps its keys and values between turns: a turn computes only new tokens. If other
// work needs the memory the session loses its pages and the next turn recomputes them; the results are the same. A
// Session is used by one goroutine at a time.
type Session struct {
	e      *Engine
	seq    *seq
	closed bool
}

// NewSession starts an empty conversation. Close it, otherwise its pages stay in use until others need them.
func (e *Engine) NewSession() *Session { return &Session{e: e, seq: &seq{keep: true}} }

// Tokens are all tokens so far, prompts and answers. The slice is the session's own.
func (s *Session) Tokens() []int32 { return s.seq.tokens }

// Append adds tokens to be computed in the next turn.
func (s *Session) Append(ids ...int32) { s.seq.tokens = append(s.seq.tokens, ids...) }

// Prompt sets the session's tokens to ids and returns how many of them need no computing: the longest unchanged prefix
// that is in the cache. It is for chat templates, which render the whole conversation each turn.
func (s *Session) Prompt(ids []int32) (reused int) {
	old := s.seq.tokens
	n := 0
	for n < len(old) && n < len(ids) && old[n] == ids[n] {
		n++
	}
	s.seq.tokens = append(s.seq.tokens[:n], ids[n:]...)
	return s.cut(n)
}

// cut drops what is cached at positions n and above and returns how much remains before it.
func (s *Session) cut(n int) int {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.store.trim(s.seq, n)
	return s.seq.cached
}

// Generate answers: it computes the appended tokens and continues from them, see [Engine.Generate]. Tokens that emit
// has seen become part of the session, including the ending token.
func (s *Session) Generate(ctx context.Context, p Sampling, emit func(Event) bool) error {
	if s.closed {
		return errors.New("infer: the session is closed")
	}
	q := s.seq
	n := len(q.tokens)
	if err := s.e.begin(q, &p); err != nil {
		return fmt.Errorf("infer: session: %w", err)
	}
	out := s.e.newOutput(q)
	err := s.e.serve(ctx, []*seq{q}, []*output{out}, func(_ int, ev Event) bool { return emit(ev) }, func() {})
	// A stop string is found after its token was sampled, possibly after later steps of other callers.
	q.tokens = q.tokens[:n+out.given]
	s.cut(len(q.tokens))
	return err
}

// Close frees the pages; a closed session cannot generate.
func (s *Session) Close() {
	s.closed = true
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.sched.resting = without(s.e.sched.resting, s.seq)
	s.e.store.drop(s.seq)
}
