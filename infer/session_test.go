package infer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"antiphase/device/ref"
	"antiphase/model"
)

// say is one turn.
func say(t testing.TB, s *Session, p Sampling) answer {
	t.Helper()
	var a answer
	if err := s.Generate(context.Background(), p, func(ev Event) bool { a.add(t, ev); return true }); err != nil {
		t.Fatal(err)
	}
	return a
}

// A turn of a session equals one request with the whole conversation, and computes only what is new.
func TestSessionComputesOnlyNewTokens(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		e := engine(t, m, nil, Options{PrefillChunk: 4, PageSize: 4})
		whole := engine(t, m, nil, Options{})
		s := e.NewSession()
		rows := 0
		for turn := range 3 {
			before := len(s.Tokens())
			s.Append(5, int32(turn), 7, 9)
			p := Sampling{Temperature: 1, MaxTokens: 6, Seed: uint64(turn), RepetitionPenalty: 1.2, Logprobs: 1}
			prompt := slices.Clone(s.Tokens())
			got := say(t, s, p)
			want := generate(t, whole, Request{IDs: prompt, Sampling: p})[0]
			if !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Logprobs, want.Logprobs) {
				t.Errorf("turn %d: %v, in one go %v", turn, got.IDs, want.IDs)
			}
			if !slices.Equal(s.Tokens(), append(prompt, got.IDs...)) {
				t.Errorf("turn %d: tokens are %v", turn, s.Tokens())
			}
			// the answer's last token is not computed until the next turn, which owes it
			owed := 0
			if before > 0 {
				owed = 1
			}
			n := e.Stats().Rows - rows
			if n != owed+4+len(got.IDs)-1 {
				t.Errorf("turn %d computed %d tokens for %d new and %d generated", turn, n, owed+4, len(got.IDs))
			}
			rows += n
		}
		s.Close()
		if st := e.Stats(); st.FreePages != st.Pages {
			t.Errorf("left behind %+v", st)
		}
		if err := s.Generate(context.Background(), Sampling{}, func(Event) bool { return true }); err == nil {
			t.Error("a closed session generated")
		}
	})
}

// Prompt reuses the beginning that did not change, and the answer is that of a fresh start.
func TestSessionPromptReusesPrefix(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{PageSize: 4})
	s := e.NewSession()
	defer s.Close()
	first := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	p := Sampling{MaxTokens: 4}
	if n := s.Prompt(first); n != 0 {
		t.Errorf("an empty session reuses %d tokens", n)
	}
	say(t, s, p)
	for _, c := range []struct {
		ids   []int32
		reuse int
	}{
		{append(slices.Clone(first[:6]), 40, 41, 42), 6},
		{first[:3], 3}, // all in the cache: the last is computed again for its logits
		{[]int32{9, 9}, 0},
		{first, 0},
	} {
		if n := s.Prompt(c.ids); n != c.reuse {
			t.Errorf("%v reuses %d tokens, want %d", c.ids, n, c.reuse)
		}
		want := generate(t, engine(t, m, nil, Options{}), Request{IDs: c.ids, Sampling: p})[0].IDs
		if got := say(t, s, p).IDs; !slices.Equal(got, want) {
			t.Errorf("%v: %v, fresh %v", c.ids, got, want)
		}
	}
}

// An idle session's pages go to others that need them; its next turn is unaffected.
func TestSessionSurvivesEviction(t *testing.T) {
	m := tiny(t, newCPU(t), "diff2")
	e := engine(t, m, nil, Options{PageSize: 4, CacheTokens: 32})
	large := engine(t, m, nil, Options{})
	a, b := e.NewSession(), e.NewSession()
	p := Sampling{Temperature: 1, MaxTokens: 6}
	for turn := range 3 {
		for i, s := range []*Session{a, b} {
			s.Append(int32(10*turn+i), 3)
			prompt := slices.Clone(s.Tokens())
			got := say(t, s, p)
			if want := generate(t, large, Request{IDs: prompt, Sampling: p})[0]; !slices.Equal(got.IDs, want.IDs) {
				t.Errorf("turn %d of session %d: %v, want %v", turn, i, got.IDs, want.IDs)
			}
		}
		generate(t, e, Request{IDs: make([]int32, 20), Sampling: Sampling{MaxTokens: 10}})
	}
	if e.Stats().Evicted == 0 {
		t.Errorf("nobody was evicted, the case tests nothing: %+v", e.Stats())
	}
	a.Close()
	b.Close()
	if st := e.Stats(); st.FreePages != st.Pages {
		t.Errorf("left behind %+v", st)
	}
}

// Sessions of many goroutines fight for a small cache and all get the answers they would have alone.
func TestConcurrentSessions(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	talk := func(e *Engine, i int) []int32 {
		s := e.NewSession()
		defer s.Close()
		for turn := range 4 {
			s.Append(int32(i), int32(turn), 3)
			if turn == 2 {
				s.Prompt(append(slices.Clone(s.Tokens()[:5]), int32(i)))
			}
			say(t, s, Sampling{Temperature: 1, Seed: uint64(i), MaxTokens: 8})
		}
		return slices.Clone(s.Tokens())
	}
	const n = 6
	var want [n][]int32
	large := engine(t, m, nil, Options{})
	for i := range n {
		want[i] = talk(large, i)
	}
	e := engine(t, m, nil, Options{Slots: 3, PageSize: 4, CacheTokens: 64, PrefillChunk: 5})
	var wg sync.WaitGroup
	for i := range 3 * n {
		wg.Go(func() {
			if got := talk(e, i%n); !slices.Equal(got, want[i%n]) {
				t.Errorf("session %d: %v, alone %v", i%n, got, want[i%n])
			}
		})
	}
	wg.Wait()
	st := e.Stats()
	if st.FreePages != st.Pages || st.Running+st.Waiting > 0 || len(e.sched.resting) > 0 {
		t.Errorf("left behind %+v", st)
	}
	if st.Evicted == 0 {
		t.Errorf("nobody was evicted, the case tests nothing: %+v", st)
	}
}

// An answer that is stopped half way, by emit or by a stop string, leaves the session where the reader stopped.
func TestSessionGoesOnAfterStop(t *testing.T) {
	tok := bytesTokenizer(t)
	e := engine(t, chain(t, newCPU(t), "abcdefgh"), tok, Options{PageSize: 2})
	s := e.NewSession()
	defer s.Close()
	s.Append(tok.Encode("a")...)
	if got := say(t, s, Sampling{Stop: []string{"cd"}}); got.Text != "b" || tok.Decode(s.Tokens(), true) != "abcd" {
		t.Errorf("text %q, session %q", got.Text, tok.Decode(s.Tokens(), true))
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Generate(ctx, Sampling{}, func(ev Event) bool {
		if ev.Text == "f" {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || tok.Decode(s.Tokens(), true) != "abcdef" {
		t.Errorf("error %v, session %q", err, tok.Decode(s.Tokens(), true))
	}
	if got := say(t, s, Sampling{}); got.Text != "gh" || got.Reason != ReasonEOS {
		t.Errorf("text %q because of %q", got.Text, got.Reason)
	}
}

// While the reader is slow others' steps continue; what it never saw is not part of the session, in tokens or in cache.
func TestSessionForgetsWhatWasNotRead(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{PageSize: 4})
	s := e.NewSession()
	defer s.Close()
	s.Append(1, 2, 3)
	n := 0
	err := s.Generate(context.Background(), Sampling{Temperature: 1}, func(Event) bool {
		generate(t, e, Request{IDs: []int32{5}, Sampling: Sampling{MaxTokens: 3}}) // three more steps for everybody
		n++
		return n < 4
	})
	if err != nil || len(s.Tokens()) != 3+4 {
		t.Fatalf("error %v, tokens %v", err, s.Tokens())
	}
	s.Append(8, 8, 8, 8, 8, 8)
	p := Sampling{MaxTokens: 8}
	want := generate(t, engine(t, m, nil, Options{}), Request{IDs: s.Tokens(), Sampling: p})[0].IDs
	if got := say(t, s, p).IDs; !slices.Equal(got, want) {
		t.Errorf("%v, fresh %v", got, want)
	}
}

// What a failed step left in the cache is not used again.
func TestSessionStartsOverAfterFault(t *testing.T) {
	d := &faulty{Device: ref.New()}
	e := engine(t, tiny(t, d, "diff"), nil, Options{})
	s := e.NewSession()
	defer s.Close()
	s.Append(1, 2, 3)
	say(t, s, Sampling{MaxTokens: 2})
	d.fault = errors.New("lost")
	if err := s.Generate(context.Background(), Sampling{}, func(Event) bool { return true }); !errors.Is(err, d.fault) {
		t.Errorf("error is %v", err)
	}
	if n := s.Prompt(slices.Clone(s.Tokens())); n != 0 {
		t.Errorf("%d positions are reused", n)
	}
	d.fault = nil
	say(t, s, Sampling{MaxTokens: 2})
}
