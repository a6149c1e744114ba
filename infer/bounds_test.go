package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/model"
	"antiphase/tokenizer"
)

// What an engine has when nothing is said: 8 slots, pages of 16 positions, a context for every slot. A cache is rounded
// up to whole pages.
func TestDefaults(t *testing.T) {
	m := tiny(t, newCPU(t), "diff") // a context of 64
	for _, c := range []struct {
		o                         Options
		slots, pages, size, chunk int
	}{
		{Options{}, 8, 8 * 64 / 16, 16, m.PromptRows()}, {Options{Slots: 3}, 3, 3 * 64 / 16, 16, m.PromptRows()},
		{Options{PageSize: 5, Slots: 1}, 1, 13, 5, m.PromptRows()},
		{Options{CacheTokens: 16}, 8, 1, 16, m.PromptRows()}, {Options{CacheTokens: 17, PrefillChunk: 3}, 8, 2, 16, 3},
		{Options{Slots: 1, PageSize: 1 << 20}, 1, 1, 1 << 20, m.PromptRows()},
	} {
		if c.o.PageSize == 1<<20 { // only whether it is accepted: such a page is large
			if o, err := c.o.complete(m); err != nil || o.PageSize != 1<<20 {
				t.Errorf("%+v: %v", c.o, err)
			}
			continue
		}
		e := engine(t, m, nil, c.o)
		if s := e.Stats(); e.Slots() != c.slots || s.Pages != c.pages || s.FreePages != c.pages ||
			e.store.pool.size != c.size || e.pass.chunk != c.chunk {
			t.Errorf("%+v: %d slots, %+v, pages of %d, chunks of %d; want %d, %d, %d, %d", c.o, e.Slots(), s,
				e.store.pool.size, e.pass.chunk, c.slots, c.pages, c.size, c.chunk)
		}
	}
	for field, o := range map[string]Options{"slots": {Slots: 1<<20 + 1}, "page_size": {PageSize: 1<<20 + 1},
		"prefill_chunk": {PrefillChunk: -1}, "cache_tokens": {CacheTokens: 1<<31 - 16}} {
		_, err := New(m, nil, o)
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != field || !strings.HasPrefix(err.Error(), "infer: "+field+": is ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := New(m, nil, Options{CacheTokens: -1}); err == nil ||
		!strings.HasSuffix(err.Error(), "cache_tokens: is -1, must be between 1 and 2147483631") {
		t.Errorf("%v", err)
	}
	if o, err := (Options{CacheTokens: 1<<31 - 17}).complete(m); err != nil || o.Lock == nil {
		t.Errorf("the largest cache: %v", err)
	}
	if _, err := New(m, bytesTokenizer(t), Options{}); err == nil ||
		!strings.Contains(err.Error(), "the tokenizer has 257 ids and the model a vocabulary of 50") {
		t.Errorf("a tokenizer of another model: %v", err)
	}
	tok := bytesTokenizer(t)
	m = chain(t, newCPU(t), "ab")
	if got := engine(t, m, tok, Options{}).EOS(); !slices.Equal(got, []int32{256}) {
		t.Errorf("a text ends with %v", got)
	}
	if got := engine(t, m, tok, Options{EOS: []int32{7, 8}}).EOS(); !slices.Equal(got, []int32{7, 8}) {
		t.Errorf("a text ends with %v", got)
	}
	nameless, err := tokenizer.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := engine(t, m, nameless, Options{}).EOS(); len(got) > 0 {
		t.Errorf("a text ends with %v, and the tokenizer has no token for that", got)
	}
}

// The words for what does not fit, with its numbers.
func TestContextErrors(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{CacheTokens: 16, PageSize: 8})
	for _, c := range []struct {
		n, most int
		want    string
	}{
		{65, 0, "prompt has 65 tokens, the model's context has room for 64"},
		{17, 0, "prompt has 17 tokens, the KV cache has room for 16"},
		{10, 7, "prompt of 10 tokens and max_tokens of 7 do not fit: the KV cache has room for 16"},
		// The context bounds it first.
		{10, 9999, "prompt of 10 tokens and max_tokens of 54 do not fit: the KV cache has room for 16"},
	} {
		err := e.Generate(context.Background(),
			[]Request{{IDs: make([]int32, c.n), Sampling: Sampling{MaxTokens: c.most}}}, nil)
		if err == nil || err.Error() != "infer: request 0: "+c.want {
			t.Errorf("%d tokens and %d more: %v", c.n, c.most, err)
		}
	}
	big := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{})
	if got := generate(t, big, Request{IDs: make([]int32, 60),
		Sampling: Sampling{MaxTokens: 9999, IgnoreEOS: true}})[0]; len(got.IDs) != 4 || got.Reason != ReasonLength {
		t.Errorf("%d tokens because of %q, want the 4 that the context has left", len(got.IDs), got.Reason)
	}
	for _, bad := range [][]int32{{1, 50}, {1, -3}} {
		err := big.Generate(context.Background(), []Request{{IDs: []int32{1}}, {IDs: bad}},
			func(int, Event) bool { t.Error("an event"); return true })
		if want := fmt.Sprintf("infer: request 1: prompt: token 1 is id %d, must be below the vocabulary's 50",
			bad[1]); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Steps and rows by the definition: prompts are read oldest first, at most PrefillChunk tokens of them in a step, and
// every sequence that lacks a single position has a row in each step.
func TestStepsOfPrompts(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	prompt := func(n, most int) Request {
		return Request{IDs: make([]int32, n), Sampling: Sampling{MaxTokens: most, IgnoreEOS: true}}
	}
	for _, c := range []struct {
		name  string
		o     Options
		reqs  []Request
		steps int
		rows  int
	}{
		{"one chunk", Options{PrefillChunk: 10}, []Request{prompt(10, 1)}, 1, 10},
		{"two chunks", Options{PrefillChunk: 9}, []Request{prompt(10, 1)}, 2, 10},
		{"five chunks", Options{PrefillChunk: 2}, []Request{prompt(10, 1)}, 5, 10},
		{"and an answer", Options{PrefillChunk: 4}, []Request{prompt(10, 6)}, 3 + 5, 10 + 5},
		// 8 of the first; its other 2 and 6 of the second; the last 4
		{"two prompts share a chunk", Options{PrefillChunk: 8}, []Request{prompt(10, 1), prompt(10, 1)}, 3, 20},
		// 4 and the single one; 4 more beside its second token; 2 more
		{"a single token costs nothing", Options{PrefillChunk: 4}, []Request{prompt(10, 1), prompt(1, 2)}, 3, 12},
		{"one slot, one after the other", Options{PrefillChunk: 8, Slots: 1},
			[]Request{prompt(8, 2), prompt(8, 2)}, 4, 18},
	} {
		e := engine(t, m, nil, c.o)
		generate(t, e, c.reqs...)
		if s := e.Stats(); s.Steps != c.steps || s.Rows != c.rows || s.Preempted+s.Evicted+s.Hits != 0 {
			t.Errorf("%s: %+v, want %d steps of %d rows", c.name, s, c.steps, c.rows)
		}
	}
	e := engine(t, m, nil, Options{Commit: true, PrefillChunk: 8})
	if s := e.Stats(); s != (Stats{Pages: s.Pages, FreePages: s.Pages}) {
		t.Errorf("an engine that has allocated its memory begins with %+v", s)
	}
	if err := e.Use(context.Background(), func(got *model.Model) error {
		if got != m {
			t.Error("Use passes another model")
		}
		return errors.New("its own")
	}); err == nil || err.Error() != "its own" {
		t.Errorf("the error of Use's work: %v", err)
	}
}

// completeAt is complete after n tokens and forbids nothing.
type completeAt int

func (c *completeAt) Mask([]float32)    {}
func (c *completeAt) Accept(int32) bool { *c--; return *c <= 0 }

// Which reason counts if several hold for one token: a stop id, then the end of text, then the constraint, then the
// length.
func TestReasonsInOrder(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	ids := []int32{1, 2, 3}
	first := generate(t, engine(t, m, nil, Options{}), Request{IDs: ids, Sampling: Sampling{MaxTokens: 1}})[0].IDs[0]
	e := engine(t, m, nil, Options{EOS: []int32{first}})
	one := func() *completeAt { c := completeAt(1); return &c }
	for want, s := range map[string]Sampling{
		ReasonStop:     {MaxTokens: 1, StopIDs: []int32{first}, Constraint: one()},
		ReasonEOS:      {MaxTokens: 1, Constraint: one()},
		ReasonComplete: {MaxTokens: 1, IgnoreEOS: true, Constraint: one()},
		ReasonLength:   {MaxTokens: 1, IgnoreEOS: true},
	} {
		got := generate(t, e, Request{IDs: ids, Sampling: s})[0]
		if got.Reason != want || !slices.Equal(got.IDs, []int32{first}) {
			t.Errorf("%+v: %v because of %q, want %q", s, got.IDs, got.Reason, want)
		}
	}
	// Without an echo a score has nothing to say, and no token is made.
	if got := generate(t, e, Request{IDs: ids, Sampling: Sampling{ScoreOnly: true}})[0]; len(got.IDs) != 0 ||
		got.Reason != ReasonLength {
		t.Errorf("%+v", got)
	}
	// More log-probabilities than there are tokens are all of them, once each.
	top := generate(t, e, Request{IDs: ids,
		Sampling: Sampling{MaxTokens: 1, Logprobs: 1000, IgnoreEOS: true}})[0].Tops[0]
	seen := map[int32]bool{}
	for _, x := range top {
		seen[x.ID] = true
	}
	if len(top) != 50 || len(seen) != 50 ||
		!slices.IsSortedFunc(top, func(a, b TokenLogprob) int { return cmpFloat(b.Logprob, a.Logprob) }) {
		t.Errorf("%d tokens of 50", len(top))
	}
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Rest is called between the events of one step and the next step, and a request that fails is named by its index.
func TestRestAndFailures(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 4})
	var log []string
	reqs := []Request{{IDs: []int32{1}, Sampling: Sampling{MaxTokens: 2, IgnoreEOS: true}},
		{IDs: []int32{2}, Sampling: Sampling{MaxTokens: 1, IgnoreEOS: true}}}
	err := e.Stream(context.Background(), reqs,
		func(i int, _ Event) bool { log = append(log, fmt.Sprint(i)); return true },
		func() { log = append(log, "rest") })
	if d := cmp.Diff([]string{"0", "1", "rest", "0", "rest"}, log); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	reasons := make([]string, 3)
	err = e.Generate(context.Background(),
		[]Request{reqs[0], {IDs: []int32{1}, Sampling: Sampling{Constraint: &panics{}}}, reqs[1]},
		func(i int, ev Event) bool { reasons[i] = ev.Reason; return true })
	if err == nil || !strings.HasPrefix(err.Error(), "request 1: infer: step ") ||
		!strings.Contains(err.Error(), "after 1 tokens: panic: broken") || strings.Count(err.Error(), "request") != 1 {
		t.Errorf("the error is %v", err)
	}
	if d := cmp.Diff([]string{ReasonLength, ReasonError, ReasonLength}, reasons); d != "" {
		t.Error(d)
	}
}
