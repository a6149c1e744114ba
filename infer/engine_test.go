package infer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
)

// The cached path must say what one pass over the whole sequence says, token by token.
func TestGreedyIsArgmaxOfWholePass(t *testing.T) {
	for _, a := range layer.Archs() {
		t.Run(a.Name, func(t *testing.T) {
			m := tiny(t, ref.New(), a.Name)
			ids := []int32{3, 1, 4, 1, 5, 9, 2, 6}
			got := generate(t, engine(t, m, nil, Options{PrefillChunk: 3, PageSize: 4}),
				Request{IDs: ids, Sampling: Sampling{MaxTokens: 12, Logprobs: 1}})[0]
			for i, id := range got.IDs {
				row := wholePass(t, m, ids)
				best, err := argmax(row)
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for _, l := range row {
					sum += math.Exp(float64(l))
				}
				if want := float64(row[best]) - math.Log(sum); best != id || !(math.Abs(got.Logprobs[i]-want) <= 1e-5) {
					t.Fatalf("token %d is %d with logprob %g, the whole pass says %d with %g", i, id,
						got.Logprobs[i], best, want)
				}
				ids = append(ids, id)
			}
			if got.Reason != ReasonLength || len(got.IDs) != 12 {
				t.Errorf("ended with %d tokens because of %q", len(got.IDs), got.Reason)
			}
		})
	}
}

// wholePass is the logits after the last of ids.
func wholePass(t *testing.T, m *model.Model, ids []int32) []float32 {
	t.Helper()
	v := m.Config.Vocab
	all := make([]float32, len(ids)*v)
	if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, all); err != nil {
		t.Fatal(err)
	}
	return all[len(all)-v:]
}

// Tokens and log-probabilities are the same bits alone and in a batch, for any chunk, page and cache size.
func TestResultsDoNotDependOnCompany(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		reqs := mixed()
		want := make([]answer, len(reqs))
		alone := engine(t, m, nil, Options{Slots: 1, PrefillChunk: 64})
		for i, r := range reqs {
			want[i] = generate(t, alone, r)[0]
		}
		for _, o := range []Options{
			{Slots: 8},
			{Slots: 8, PrefillChunk: 1, PageSize: 1},
			{Slots: 3, PrefillChunk: 7, PageSize: 5},
			{Slots: 8, PrefillChunk: 16, PageSize: 4, CacheTokens: 64}, // too small for all: sequences are preempted
		} {
			e := engine(t, m, nil, o)
			got := generate(t, e, reqs...)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%+v: alone (-) and in a batch (+) differ:\n%s", o, d)
			}
			s := e.Stats()
			if s.FreePages != s.Pages || s.Running+s.Waiting > 0 {
				t.Errorf("%+v: left behind %+v", o, s)
			}
			if o.CacheTokens > 0 && s.Preempted == 0 {
				t.Errorf("%+v: nothing was preempted, the case tests nothing: %+v", o, s)
			}
		}
	})
}

// Prompts that do not fit together wait for each other instead of taking each other's pages.
func TestFullCacheQueues(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{PageSize: 4, CacheTokens: 24})
	r := Request{IDs: make([]int32, 15), Sampling: Sampling{MaxTokens: 1}}
	generate(t, e, r, r, r)
	if s := e.Stats(); s.Preempted > 0 || s.Rows != 45 || s.FreePages != s.Pages {
		t.Errorf("three prompts of 15 tokens: %+v", s)
	}
}

// Calls from many goroutines share batches and do not disturb one another.
func TestConcurrentCalls(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	reqs := mixed()
	want := generate(t, engine(t, m, nil, Options{}), reqs...)
	e := engine(t, m, nil, Options{Slots: 4, PrefillChunk: 9, PageSize: 4, CacheTokens: 128})
	var wg sync.WaitGroup
	for round := range 5 {
		for i, r := range reqs {
			wg.Go(func() {
				if got := generate(t, e, r)[0]; !cmp.Equal(want[i], got) {
					t.Errorf("round %d, request %d: %v, alone %v", round, i, got.IDs, want[i].IDs)
				}
			})
		}
	}
	wg.Wait()
	s := e.Stats()
	if s.FreePages != s.Pages || s.Running+s.Waiting > 0 {
		t.Errorf("left behind %+v", s)
	}
	tokens := 0
	for _, a := range want {
		tokens += 5 * len(a.IDs)
	}
	if s.Steps >= tokens {
		t.Errorf("%d steps for %d tokens: no batch was shared", s.Steps, tokens)
	}
}

// A request that ends early, by emit or by its context, changes nothing for its neighbours and returns its pages.
func TestCancelLeavesNeighboursAlone(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		reqs := mixed()
		e := engine(t, m, nil, Options{PrefillChunk: 5, PageSize: 4})
		want := generate(t, e, reqs...)
		got := make([]answer, len(reqs))
		err := e.Generate(context.Background(), reqs, func(i int, ev Event) bool {
			got[i].add(t, ev)
			return !(i == 2 && len(got[i].IDs) == 3 || i == 5 && len(got[i].IDs) == 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range reqs {
			w := want[i].IDs
			if i == 2 {
				w = w[:3]
			}
			if i == 5 {
				w = w[:1]
			}
			if !slices.Equal(w, got[i].IDs) {
				t.Errorf("request %d: %v, want %v", i, got[i].IDs, w)
			}
		}
		if s := e.Stats(); s.FreePages != s.Pages || s.Running+s.Waiting > 0 {
			t.Errorf("left behind %+v", s)
		}
	})
}

func TestContextCancelEndsTheCall(t *testing.T) {
	m := tiny(t, newCPU(t), "diff2")
	e := engine(t, m, nil, Options{PrefillChunk: 5, PageSize: 4, Slots: 4})
	reqs := mixed()
	want := generate(t, e, reqs...)
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the client left")
	// The other call waits with its first event until this one is over: whoever waits computes nothing, so this one
	// cannot be finished by the other before it is cancelled.
	done, begun, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
	other := make([]answer, len(reqs))
	var first sync.Once
	go func() {
		done <- e.Generate(context.Background(), reqs, func(i int, ev Event) bool {
			first.Do(func() { close(begun); <-over })
			other[i].add(t, ev)
			return true
		})
	}()
	<-begun
	reasons := make([]string, len(reqs))
	n := 0
	err := e.Generate(ctx, reqs, func(i int, ev Event) bool {
		if n++; n == 10 {
			cancel(gone)
		}
		reasons[i] = ev.Reason
		return true
	})
	if !errors.Is(err, gone) {
		t.Errorf("error is %v, want %v", err, gone)
	}
	if !slices.Contains(reasons, ReasonCancelled) || slices.Contains(reasons, "") {
		t.Errorf("reasons are %q: every request must end, some as cancelled", reasons)
	}
	close(over)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, other); d != "" {
		t.Errorf("the other call changed:\n%s", d)
	}
	if s := e.Stats(); s.FreePages != s.Pages || s.Running+s.Waiting > 0 {
		t.Errorf("left behind %+v", s)
	}
}

func TestPromptAtTheContextsEdge(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2})
	prompt := func(n int) Request { return Request{IDs: make([]int32, n), Sampling: Sampling{}} }
	got := generate(t, e, prompt(63), prompt(64))
	if len(got[0].IDs) != 1 || len(got[1].IDs) != 0 || got[0].Reason != ReasonLength || got[1].Reason != ReasonLength {
		t.Errorf("behind 63 and 64 of 64 tokens came %d and %d, for %q and %q", len(got[0].IDs), len(got[1].IDs),
			got[0].Reason, got[1].Reason)
	}
	err := e.Generate(context.Background(), []Request{prompt(3), prompt(65)},
		func(int, Event) bool { t.Error("an event of a call that cannot run"); return true })
	var ce *ContextError
	if !errors.As(err, &ce) || ce.Prompt != 65 || ce.Limit != 64 || ce.Of != "context" {
		t.Fatalf("65 tokens into 64: %v", err)
	}
	if msg := err.Error(); !strings.Contains(msg, "65") || !strings.Contains(msg, "64") ||
		!strings.Contains(msg, "request 1") {
		t.Errorf("error %q lacks the numbers or the request", msg)
	}
}

func TestPromptThatNeverFitsTheCache(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{CacheTokens: 16, PageSize: 8})
	run := func(n, most int) error {
		return e.Generate(context.Background(), []Request{{IDs: make([]int32, n), Sampling: Sampling{MaxTokens: most}}},
			func(int, Event) bool { return true })
	}
	for _, c := range []struct {
		n, most int
		fits    bool
	}{{10, 6, true}, {10, 7, false}, {16, 0, true}, {17, 0, false}, {10, 0, true}} {
		err := run(c.n, c.most)
		var ce *ContextError
		if c.fits && err != nil || !c.fits && (!errors.As(err, &ce) || ce.Of != "cache") {
			t.Errorf("prompt %d, max_tokens %d in a cache of 16: %v", c.n, c.most, err)
		}
	}
}

func TestBadRequests(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "transformer"), nil, Options{})
	for _, c := range []struct {
		req   Request
		field string
	}{
		{Request{IDs: nil, Sampling: Sampling{}}, "prompt"},
		{Request{IDs: []int32{50}, Sampling: Sampling{}}, "prompt"},
		{Request{IDs: []int32{-1}, Sampling: Sampling{}}, "prompt"},
		{Request{IDs: []int32{1}, Sampling: Sampling{Stop: []string{"x"}}}, "stop"},
		{Request{IDs: []int32{1}, Sampling: Sampling{Temperature: math.NaN()}}, "temperature"},
	} {
		err := e.Generate(context.Background(), []Request{c.req}, func(int, Event) bool { return true })
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != c.field {
			t.Errorf("%+v: error %v, want one of field %q", c.req, err, c.field)
		}
	}
	for _, o := range []Options{{Slots: -1}, {PageSize: -1}, {PrefillChunk: -2}, {CacheTokens: -1}, {Slots: 1 << 40},
		{CacheTokens: 1 << 40}} {
		if _, err := New(e.model, nil, o); err == nil {
			t.Errorf("options %+v were accepted", o)
		}
	}
}

func TestStopIDsAndEOS(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	ids := []int32{1, 2, 3}
	free := generate(t, engine(t, m, nil, Options{}), Request{IDs: ids, Sampling: Sampling{MaxTokens: 20}})[0].IDs
	last := free[4]
	cut := free[:slices.Index(free, last)+1]
	e := engine(t, m, nil, Options{EOS: []int32{last}})
	for _, c := range []struct {
		s      Sampling
		ids    []int32
		reason string
	}{
		{Sampling{MaxTokens: 20}, cut, ReasonEOS},
		{Sampling{MaxTokens: 20, IgnoreEOS: true}, free, ReasonLength},
		{Sampling{MaxTokens: 20, IgnoreEOS: true, StopIDs: []int32{49, last}}, cut, ReasonStop},
	} {
		got := generate(t, e, Request{IDs: ids, Sampling: c.s})[0]
		if !slices.Equal(got.IDs, c.ids) || got.Reason != c.reason {
			t.Errorf("%+v: %v because of %q, want %v because of %q", c.s, got.IDs, got.Reason, c.ids, c.reason)
		}
	}
}

// A decode step in its steady state makes no garbage, whatever the sampler does.
func TestStepDoesNotAllocate(t *testing.T) {
	d := newCPU(t)
	for _, a := range layer.Archs() {
		t.Run(a.Name, func(t *testing.T) {
			c := model.Config{Arch: a.Name, Vocab: 300, Context: 4096, Layers: 2, Dim: 32, Heads: 4,
				KVHeads: 2, HeadDim: 8}
			e := engine(t, build(t, d, c), nil, Options{Slots: 8, CacheTokens: 8 * 1024})
			var outs []*output
			for _, r := range mixed() {
				s := &seq{tokens: r.IDs}
				r.Sampling.MaxTokens = 1000
				if err := e.begin(s, &r.Sampling); err != nil {
					t.Fatal(err)
				}
				outs = append(outs, e.newOutput(s))
				e.sched.enqueue(s)
			}
			sink := func(Event) bool { return true }
			round := func() {
				if !e.await(context.Background(), outs) {
					t.Fatal("cancelled")
				}
				for _, o := range outs {
					o.emit(sink)
				}
			}
			for range 64 { // prompts done, buffers at their size
				round()
			}
			if n := testing.AllocsPerRun(200, round); n != 0 {
				t.Errorf("a step with its events allocates %g times", n)
			}
		})
	}
}
