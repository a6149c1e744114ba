package infer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// A history records every id once, in the order of first sight, for vocabularies on either side of a word's 64 bits.
func TestHistorySeesEveryIDOnce(t *testing.T) {
	for _, vocab := range []int{1, 63, 64, 65, 128, 200} {
		var want []int32
		for id := range int32(vocab) {
			want = append(want, int32(vocab)-1-id)
		}
		var h history
		h.start(&Sampling{RepetitionPenalty: 1.1, FrequencyPenalty: 1}, vocab, want)
		for _, id := range want { // once more, as generated ones
			h.took(id)
		}
		if !slices.Equal(h.ids, want) || h.made != vocab {
			t.Errorf("of %d ids %v are recorded, %d made", vocab, h.ids, h.made)
		}
		for id, n := range h.counts {
			if n != 1 || len(h.counts) != vocab { // the prompt does not count
				t.Errorf("%d of %d ids counted, %d %d times", len(h.counts), vocab, id, n)
			}
		}
	}
}

// nothing is a constraint that breaks its promise to leave a token.
type nothing struct{}

func (nothing) Mask(logits []float32) {
	for i := range logits {
		logits[i] = float32(math.Inf(-1))
	}
}

func (nothing) Accept(int32) bool { return false }

// Where nothing is allowed the request fails and says why, with and without log-probabilities, greedy or sampled.
func TestNothingIsAllowed(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{})
	for _, s := range []Sampling{{}, {Temperature: 1}, {Logprobs: 2}, {Logprobs: 2, Temperature: 1}} {
		s.Constraint, s.MaxTokens = nothing{}, 3
		var got answer
		err := e.Generate(t.Context(), []Request{{IDs: []int32{1, 2}, Sampling: s}},
			func(_ int, ev Event) bool { got.add(t, ev); return true })
		const want = "after penalties, biases and constraints: all 50 logits are -Inf"
		if err == nil || !strings.HasSuffix(err.Error(), want) || got.Reason != ReasonError || len(got.IDs) != 0 {
			t.Errorf("%+v: %+v, %v", s, got, err)
		}
	}
	drained(t, e)
}

// A sequence is not admitted into pages that a prompt in the batch still needs: it would lose them at once.
func TestPagesOfPromptsAreKept(t *testing.T) {
	for _, c := range []struct {
		pages int
		both  bool // run together
	}{{6 + 7, true}, {6 + 7 - 1, false}} {
		e := engine(t, tiny(t, newCPU(t), "diff"), nil,
			Options{PageSize: 4, CacheTokens: 4 * c.pages, PrefillChunk: 4, Slots: 2})
		var list []*seq
		for i := range 2 { // each needs six pages for its prompt and a seventh for its token
			s := &seq{tokens: make([]int32, 24)}
			if err := e.begin(s, &Sampling{MaxTokens: 1, IgnoreEOS: true}); err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
			e.mu.Lock()
			e.sched.enqueue(s)
			e.step()
			if want := 1 + i; c.both && len(e.sched.batch) != want || !c.both && len(e.sched.batch) != 1 {
				t.Errorf("%d pages: %d sequences run after %d have come", c.pages, len(e.sched.batch), i+1)
			}
			e.mu.Unlock()
		}
		e.settle(list)
		if n := e.Stats().Preempted; n != 0 {
			t.Errorf("%d pages: %d preempted", c.pages, n)
		}
		drained(t, e)
	}
}

// Scoring ends with its context, before it begins, while a common head is computed and between steps.
func TestSharedEndsWithItsContext(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	var walks []Walk
	for i := range 6 {
		walks = append(walks, Walk{IDs: append(ramp(40, 3), int32(i), 1, 2, 3), From: 41, Grow: 5})
	}
	for _, after := range []int{0, 1, 7} {
		ctx, cancel := context.WithCancel(t.Context())
		f := NewShared(m)
		shown := 0
		if after == 0 {
			cancel()
		}
		err := f.Run(ctx, walks, 1, func(_, _ int, _ []float32) (int32, bool) {
			if shown++; shown == after {
				cancel()
			}
			return 1, true
		})
		if !errors.Is(err, context.Canceled) || after == 0 && (shown > 0 || len(f.head) > 0) || shown > after+4 {
			t.Errorf("cancelled after %d rows: %v after %d, a head of %d", after, err, shown, len(f.head))
		}
		f.Free()
		cancel()
	}
}
