package infer

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/model"
)

// echoed runs one request and parts the prompt's events from the answer's.
func echoed(t *testing.T, e *Engine, r Request) (prompt, rest answer) {
	t.Helper()
	r.Sampling.Echo = true
	err := e.Generate(context.Background(), []Request{r}, func(_ int, ev Event) bool {
		if ev.Prompt {
			if rest.IDs != nil {
				t.Errorf("echo of %d behind the answer's tokens", ev.ID)
			}
			prompt.add(t, ev)
		} else {
			rest.add(t, ev)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return prompt, rest
}

// An echo shows every token of its prompt, also of a prompt that the cache holds already, and others find it or not as
// before.
func TestEchoOfACachedPrompt(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		ids := []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9}
		req := Request{IDs: ids, Scope: "a", Sampling: Sampling{MaxTokens: 3, Logprobs: 1, IgnoreEOS: true}}
		e := engine(t, m, nil, Options{PageSize: 2})
		want, answer := echoed(t, e, Request{IDs: ids, Sampling: req.Sampling})
		for i := range 3 {
			got, rest := echoed(t, e, req)
			if !slices.Equal(got.IDs, ids) || !slices.Equal(got.Logprobs, want.Logprobs) ||
				!slices.Equal(rest.IDs, answer.IDs) {
				t.Errorf("echo %d: %v %v, want %v %v", i, got.IDs, rest.IDs, ids, answer.IDs)
			}
			before := e.Stats().Hits
			if rest := generate(t, e, req)[0]; !slices.Equal(rest.IDs, answer.IDs) {
				t.Errorf("without echo: %v, want %v", rest.IDs, answer.IDs)
			}
			if hits := e.Stats().Hits - before; hits != 12*min(i, 1) {
				t.Errorf("request %d finds %d tokens", i, hits)
			}
		}
	})
}

// Echoed log-probabilities are the losses that the model's own scoring gives, and the answer is that without an echo.
func TestEchoEqualsScore(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		ids := []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}
		n := len(ids)
		targets := append(slices.Clone(ids[1:]), -1)
		loss := make([]float32, n)
		if err := m.Score(&model.Batch{B: 1, T: n, IDs: ids, Targets: targets}); err != nil {
			t.Fatal(err)
		}
		m.Losses(loss)
		req := Request{IDs: ids, Sampling: Sampling{Temperature: 1, MaxTokens: 5, Logprobs: 2}}
		want := generate(t, engine(t, m, nil, Options{}), req)[0]
		for _, o := range []Options{{}, {PrefillChunk: 3}, {PrefillChunk: 1}} {
			e := engine(t, m, nil, o)
			if o.PrefillChunk == 0 {
				e.pass.echoRows = 4 // as a large vocabulary would have it
			}
			got, rest := echoed(t, e, req)
			if !slices.Equal(got.IDs, ids) || !slices.Equal(rest.IDs, want.IDs) ||
				!slices.Equal(rest.Logprobs, want.Logprobs) {
				t.Fatalf("%+v: echo %v of %v, answer %v, without echo %v", o, got.IDs, ids, rest.IDs, want.IDs)
			}
			if got.Logprobs[0] != 0 || len(got.Tops[0]) != 0 {
				t.Errorf("the first token has logprob %g and top %v", got.Logprobs[0], got.Tops[0])
			}
			for i := 1; i < n; i++ {
				if !(math.Abs(got.Logprobs[i]+float64(loss[i-1])) <= 1e-5) || len(got.Tops[i]) != 2 ||
					got.Tops[i][0].Logprob < got.Logprobs[i] {
					t.Errorf("%+v: token %d has logprob %g and top %v, its loss is %g", o, i, got.Logprobs[i],
						got.Tops[i], loss[i-1])
				}
			}
		}
	})
}

func TestEchoOfFullContextAndText(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff2"), nil, Options{Slots: 1})
	got, rest := echoed(t, e, Request{IDs: make([]int32, 64), Sampling: Sampling{}})
	if len(got.IDs) != 64 || len(rest.IDs) != 0 || rest.Reason != ReasonLength {
		t.Errorf("%d tokens echoed, %d generated, ended as %q", len(got.IDs), len(rest.IDs), rest.Reason)
	}
	tok := bytesTokenizer(t)
	e = engine(t, chain(t, newCPU(t), "ab😀cd"), tok, Options{})
	got, rest = echoed(t, e, Request{IDs: tok.Encode("ab")[:2], Sampling: Sampling{Stop: []string{"b", "d"}}})
	if got.Text != "ab" || rest.Text != "😀c" || rest.Reason != ReasonStop {
		t.Errorf("echo %q, answer %q because of %q", got.Text, rest.Text, rest.Reason)
	}
	// A prompt that ends inside a character: the answer completes it.
	got, rest = echoed(t, e, Request{IDs: tok.Encode("ab😀")[:4], Sampling: Sampling{Stop: []string{"d"}}})
	if got.Text != "ab" || rest.Text != "😀c" {
		t.Errorf("echo %q, answer %q", got.Text, rest.Text)
	}
	if s := e.Stats(); s.FreePages != s.Pages {
		t.Errorf("left behind %+v", s)
	}
}

// A prompt that loses its pages half way is computed again, but no token is told twice.
func TestEchoSurvivesPreemption(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	reqs := []Request{
		{IDs: []int32{1, 2, 3, 4}, Sampling: Sampling{MaxTokens: 26}},
		{IDs: make([]int32, 24), Sampling: Sampling{MaxTokens: 2, Echo: true, Logprobs: 1}},
	}
	for i := range reqs[1].IDs {
		reqs[1].IDs[i] = int32(i)
	}
	want := generate(t, engine(t, m, nil, Options{}), reqs...)
	e := engine(t, m, nil, Options{PageSize: 4, CacheTokens: 32, PrefillChunk: 1})
	if d := cmp.Diff(want, generate(t, e, reqs...)); d != "" {
		t.Errorf("with room (-) and without (+):\n%s", d)
	}
	if e.Stats().Preempted == 0 {
		t.Errorf("nobody was preempted, the case tests nothing: %+v", e.Stats())
	}
}

// An echo of a session has every token of its prompt with its log-probability, whatever the session has computed
// before.
func TestEchoOfASession(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{PageSize: 4})
	s := e.NewSession()
	defer s.Close()
	s.Append(3, 1, 4, 1, 5, 9, 2, 6)
	say(t, s, Sampling{MaxTokens: 3})
	s.Append(7, 8)
	prompt := slices.Clone(s.Tokens())
	want, rest := echoed(t, engine(t, m, nil, Options{}),
		Request{IDs: prompt, Sampling: Sampling{MaxTokens: 4, Logprobs: 1}})
	var got, after answer
	err := s.Generate(context.Background(), Sampling{MaxTokens: 4, Logprobs: 1, Echo: true}, func(ev Event) bool {
		if ev.Prompt {
			got.add(t, ev)
		} else {
			after.add(t, ev)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.IDs, prompt) || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(after.IDs, rest.IDs) {
		t.Errorf("echo %v and answer %v, want %v and %v", got.IDs, after.IDs, want.IDs, rest.IDs)
	}
	for i := range got.Logprobs {
		if !(math.Abs(got.Logprobs[i]-want.Logprobs[i]) <= 1e-5) {
			t.Errorf("token %d has %g, want %g", i, got.Logprobs[i], want.Logprobs[i])
		}
	}
}
