package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/model"
)

// families are prompts that begin alike: random tails on a few random trunks.
func families(r *rand.Rand, n int) []Request {
	trunks := make([][]int32, 3)
	for i := range trunks {
		for range 8 + r.IntN(24) {
			trunks[i] = append(trunks[i], int32(r.IntN(50)))
		}
	}
	list := make([]Request, n)
	for i := range list {
		t := trunks[r.IntN(len(trunks))]
		list[i].IDs = append([]int32(nil), t[:1+r.IntN(len(t))]...)
		for range r.IntN(8) {
			list[i].IDs = append(list[i].IDs, int32(r.IntN(50)))
		}
		list[i].Sampling = Sampling{Seed: uint64(i), MaxTokens: 1 + r.IntN(12), Temperature: float64(r.IntN(2)),
			Logprobs: r.IntN(3), Echo: r.IntN(8) == 0}
	}
	return list
}

// TestPrefixReuseKeepsTheBits: answers after a prefix hit are those of an engine that reuses nothing, with ample pages
// and with so few that sequences are preempted and prefixes evicted.
func TestPrefixReuseKeepsTheBits(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		count := 40
		if testing.Short() {
			count = 20
		}
		reqs := families(rand.New(rand.NewPCG(1, 2)), count)
		plain := engine(t, m, nil, Options{Slots: 4, PageSize: 4})
		var want []answer
		for _, r := range reqs {
			want = append(want, generate(t, plain, r)...)
		}
		for _, cache := range []int{0, 80} {
			e := engine(t, m, nil, Options{Slots: 4, PageSize: 4, CacheTokens: cache, PrefillChunk: 7})
			for i := range reqs {
				reqs[i].Scope = "a"
			}
			for round := range 2 {
				for i := 0; i < len(reqs); i += 10 {
					got := generate(t, e, reqs[i:i+10]...)
					if d := cmp.Diff(want[i:i+10], got); d != "" {
						t.Fatalf("cache of %d tokens, round %d, requests from %d: %s", cache, round, i, d)
					}
				}
			}
			st := e.Stats()
			if st.Hits == 0 || st.FreePages != st.Pages || st.Running+st.Waiting != 0 {
				t.Errorf("cache of %d tokens: %+v: want hits, all pages free, nothing running", cache, st)
			}
			if cache > 0 && st.Preempted == 0 {
				t.Errorf("cache of %d tokens: nothing was preempted, so the test shows less than it should", cache)
			}
		}
	})
}

func cachedTokens(t *testing.T, e *Engine, r Request) (cached int) {
	t.Helper()
	if err := e.Generate(context.Background(), []Request{r},
		func(_ int, ev Event) bool { cached = ev.Cached; return true }); err != nil {
		t.Fatal(err)
	}
	return cached
}

// TestPrefixesAreScoped: one scope finds nothing of another's, in the counters that timing would follow.
func TestPrefixesAreScoped(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4})
	ids := make([]int32, 17)
	for i := range ids {
		ids[i] = int32(i)
	}
	ask := func(scope string, ids []int32) int {
		return cachedTokens(t, e, Request{IDs: ids, Sampling: Sampling{MaxTokens: 1}, Scope: scope})
	}
	for i, c := range []struct {
		scope string
		ids   []int32
		want  int
	}{
		{"a", ids, 0}, {"a", ids, 16}, {"b", ids, 0}, {"b", ids, 16}, {"", ids, 0},
		{"a", ids[:16], 12},                        // the last token is always run
		{"a", append([]int32{9}, ids...), 0},       // the same tokens elsewhere
		{"a", append(ids[:8:8], 49, 48, 47, 1), 8}, // a common beginning
	} {
		if got := ask(c.scope, c.ids); got != c.want {
			t.Errorf("request %d: %d tokens cached, want %d", i, got, c.want)
		}
	}
}

// onlyEven allows even ids, and is complete after three.
type onlyEven struct{ n int }

func (c *onlyEven) Mask(logits []float32) {
	for i := range logits {
		if i%2 == 1 {
			logits[i] = float32(math.Inf(-1))
		}
	}
}
func (c *onlyEven) Accept(int32) bool { c.n++; return c.n == 3 }

type panics struct{ onlyEven }

func (*panics) Mask([]float32) { panic("broken") }

func TestConstraint(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 4})
	for _, temperature := range []float64{0, 2} {
		a := generate(t, e, Request{IDs: []int32{1},
			Sampling: Sampling{Temperature: temperature, Constraint: &onlyEven{}}})[0]
		if len(a.IDs) != 3 || a.Reason != ReasonComplete || a.IDs[0]%2+a.IDs[1]%2+a.IDs[2]%2 != 0 {
			t.Errorf("temperature %g: %+v: want three even ids and %q", temperature, a, ReasonComplete)
		}
	}
}

// TestPanicInAConstraintIsItsOwn: the neighbour in the same batch is untouched, and the engine continues.
func TestPanicInAConstraintIsItsOwn(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 4})
	good := Request{IDs: []int32{3, 4}, Sampling: Sampling{MaxTokens: 6, Temperature: 1}}
	want := generate(t, e, good)[0]
	var got answer
	err := e.Generate(context.Background(),
		[]Request{good, {IDs: []int32{1}, Sampling: Sampling{Constraint: &panics{}}}}, func(i int, ev Event) bool {
			if i == 0 {
				got.add(t, ev)
			}
			return true
		})
	if err == nil {
		t.Error("the panic gave no error")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := e.Stats(); s.Running != 0 || s.FreePages != s.Pages {
		t.Errorf("%+v: something was left", s)
	}
}

func TestPenaltiesAndBiases(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 4, EOS: []int32{49}})
	run := func(s Sampling) []int32 { return generate(t, e, Request{IDs: []int32{1, 2}, Sampling: s})[0].IDs }
	forced := run(Sampling{MaxTokens: 4, Bias: []TokenBias{{ID: 7, Bias: 1000}}})
	if d := cmp.Diff([]int32{7, 7, 7, 7}, forced); d != "" {
		t.Errorf("a large bias: %s", d)
	}
	seen := map[int32]bool{}
	for _, id := range run(Sampling{MaxTokens: 40, PresencePenalty: 100, Bias: []TokenBias{{ID: 49, Bias: -1000}}}) {
		if seen[id] {
			t.Fatalf("token %d twice in spite of the presence penalty", id)
		}
		seen[id] = true
	}
	eos := []TokenBias{{ID: 49, Bias: 1000}}
	if n := len(run(Sampling{MaxTokens: 9, MinTokens: 5, Bias: eos})); n != 6 {
		t.Errorf("min_tokens 5 and nothing but the end wanted: %d tokens, want 6", n)
	}
	if n := len(run(Sampling{MaxTokens: 9, Bias: eos})); n != 1 {
		t.Errorf("nothing but the end wanted: %d tokens, want 1", n)
	}
}

// TestUseTakesTurns: Use and generation exclude each other, whichever goroutine steps.
func TestUseTakesTurns(t *testing.T) {
	d := newCPU(t)
	m := tiny(t, d, "diff")
	e := engine(t, m, nil, Options{Slots: 4})
	want := generate(t, e, mixed()...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				dst := make([]float32, 3*50)
				if err := e.Use(context.Background(), func(m *model.Model) error {
					return m.Logits(&model.Batch{B: 1, T: 3, IDs: []int32{1, 2, 3}}, dst)
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if d := cmp.Diff(want, generate(t, e, mixed()...)); d != "" {
		t.Error(d)
	}
	wg.Wait()
}

// What is found in the cache is counted once per request, in the event and in all: prompts and answers of the same
// scope, whole pages only. A sequence that lost its pages and finds its own again has not found anything of another's.
func TestHitsByHand(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4})
	ask := func(n int, ids ...int32) (answer []int32, cached int) {
		r := Request{IDs: ids, Sampling: Sampling{MaxTokens: n, IgnoreEOS: true}, Scope: "a"}
		if err := e.Generate(context.Background(), []Request{r}, func(_ int, ev Event) bool {
			answer, cached = append(answer, ev.ID), ev.Cached
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return answer, cached
	}
	prompt := []int32{1, 2, 3, 4, 5, 6}
	answer, cached := ask(8, prompt...)
	whole := slices.Concat(prompt, answer) // 14 tokens, of which the last is not computed: 3 pages
	if cached != 0 {
		t.Errorf("the first request finds %d tokens", cached)
	}
	for _, c := range []struct {
		ids  []int32
		want int
	}{{append(whole, 9), 12}, {whole[:12], 8}, {whole[:13], 12}, {append(whole[:9:9], 49, 49, 49, 49), 8}} {
		before := e.Stats().Hits
		if _, cached := ask(1, c.ids...); cached != c.want || e.Stats().Hits-before != c.want {
			t.Errorf("%v: %d found, %d counted, want %d", c.ids, cached, e.Stats().Hits-before, c.want)
		}
	}
	full := []int32{30, 31, 32, 33, 34, 35, 36, 37} // exactly two pages
	ask(1, full...)
	if _, cached := ask(1, append(full, 9)...); cached != 8 {
		t.Errorf("%d tokens of two full pages are found", cached)
	}
	e = engine(t, e.model, nil, Options{Slots: 2, PageSize: 4, CacheTokens: 48})
	reqs := make([]Request, 2)
	for i, scope := range []string{"old", "young"} {
		reqs[i] = Request{IDs: make([]int32, 21), Sampling: Sampling{MaxTokens: 12, IgnoreEOS: true}, Scope: scope}
	}
	if err := e.Generate(context.Background(), reqs, func(i int, ev Event) bool {
		if ev.Cached != 0 {
			t.Errorf("request %d is said to have found %d tokens", i, ev.Cached)
		}
		return ev.Cached == 0
	}); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s.Hits != 0 || s.Preempted == 0 {
		t.Errorf("%+v: want a preemption and no hits", s)
	}
}
