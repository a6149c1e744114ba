package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/infer"
)

// TestGateIsFair: of two keys that wait, one with much and one with little, each gets every other turn; within a key
// the order is kept.
func TestGateIsFair(t *testing.T) {
	g := newGate(1, 100, 1000, time.Hour)
	leave, err := g.enter(context.Background(), "first", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	queue := func(key string, i int) {
		before, _ := g.load()
		wg.Go(func() {
			out, err := g.enter(context.Background(), key, 1, 1)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, fmt.Sprint(key, i))
			mu.Unlock()
			out()
		})
		until(t, "the queue's growth", func() bool { now, _ := g.load(); return now != before })
	}
	for i := range 4 {
		queue("much", i)
	}
	queue("little", 0)
	queue("little", 1)
	leave()
	wg.Wait()
	if got, want := fmt.Sprint(order), "[much0 little0 much1 little1 much2 much3]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if g.free != g.room || g.waiting != 0 || g.tokens != 0 || len(g.turn)+len(g.queues) != 0 {
		t.Errorf("left: %+v", g)
	}
}

// TestGateNobodyOvertakes: a request that would fit does not pass one that waits, of its own key or another's, so that
// a large one gets its turn.
func TestGateNobodyOvertakes(t *testing.T) {
	for _, key := range []string{"large", "small"} {
		g := newGate(4, 100, 1000, time.Hour)
		leave, err := g.enter(context.Background(), "inside", 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan int, 2)
		var wg sync.WaitGroup
		for i, r := range []struct {
			key  string
			seqs int
		}{{"large", 4}, {key, 1}} {
			wg.Go(func() {
				out, err := g.enter(context.Background(), r.key, r.seqs, 1)
				if err != nil {
					t.Error(err)
					return
				}
				entered <- r.seqs
				out()
			})
			until(t, fmt.Sprintf("request %d of key %s to wait", i, r.key),
				func() bool { n, _ := g.load(); return n == i+1 })
		}
		leave()
		wg.Wait()
		if first := <-entered; first != 4 {
			t.Errorf("a request of key %s for %d sequence went before one for 4", key, first)
		}
	}
}

// TestGateBounds: by requests and by tokens, each at its limit and one above; who leaves the queue makes room.
func TestGateBounds(t *testing.T) {
	g := newGate(1, 3, 100, time.Hour)
	leave, err := g.enter(context.Background(), "a", 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wait := func(tokens, after int) {
		wg.Go(func() {
			if _, err := g.enter(ctx, "a", 1, tokens); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		until(t, "the queue's growth", func() bool { n, _ := g.load(); return n >= after })
	}
	refused := func(tokens int) {
		t.Helper()
		_, err := g.enter(context.Background(), "a", 1, tokens)
		var e *apiError
		if !errors.As(err, &e) || e.Status != http.StatusTooManyRequests || e.Retry < time.Second {
			t.Errorf("%d tokens: %v, want 429 with a time to come back", tokens, err)
		}
	}
	wait(60, 1)
	refused(41)
	wait(40, 2)
	refused(1)
	wait(0, 3)
	refused(0)
	cancel()
	wg.Wait()
	leave()
	if n, tokens := g.load(); n != 0 || tokens != 0 || g.free != g.room {
		t.Errorf("left: %d %d %+v", n, tokens, g)
	}
}

// TestGateBoundsTheWait: who would wait longer than the limit is refused, by what those ahead take and by whose turn
// comes first: a key that fills the queue does not shut another one out.
func TestGateBoundsTheWait(t *testing.T) { synctest.Test(t, gateBoundsTheWait) }

func gateBoundsTheWait(t *testing.T) {
	g := newGate(2, 100, 1000, 10*time.Second)
	var leave []func()
	for range 2 {
		out, err := g.enter(context.Background(), "a", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, out)
	}
	g.service, g.recent, g.lasting = 4, 4, 4 // seconds inside: each who waits costs two
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wait := func(key string) {
		before, _ := g.load()
		wg.Go(func() {
			if _, err := g.enter(ctx, key, 1, 1); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		until(t, "the queue's growth", func() bool { now, _ := g.load(); return now != before })
	}
	for range 6 { // the sixth has five ahead: 10 s, no more than the limit
		wait("a")
	}
	var e *apiError
	if _, err := g.enter(ctx, "a", 1, 1); !errors.As(err, &e) || e.Status != http.StatusTooManyRequests ||
		e.Retry != 6*time.Second {
		t.Errorf("the seventh: %v, want 429 and to come back in 6 s", err)
	}
	wait("b") // one of a's is ahead of it
	if got := g.delay("b"); got != 6*time.Second {
		t.Errorf("the second of b would wait %v, want 6s", got)
	}
	cancel()
	wg.Wait()
	for _, out := range leave {
		out()
	}
	if n, tokens := g.load(); n != 0 || tokens != 0 || g.free != g.room {
		t.Errorf("left: %d %d %+v", n, tokens, g)
	}
	if want := 4 * 0.98 * 0.98; math.Abs(g.service-want) > 1e-3 { // the larger mean, after two that left at once
		t.Errorf("service time %v, want %v", g.service, want)
	}
}

// late is a context past its deadline whose timer has not fired yet.
type late struct{ context.Context }

// Deadline implements context.Context.
func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// TestGateKnowsTheTime: a request past its deadline is not let in, even where its timer is late.
func TestGateKnowsTheTime(t *testing.T) {
	g := newGate(1, 3, 100, 0)
	if _, err := g.enter(late{context.Background()}, "a", 1, 1); !errors.Is(err, errDeadline) || g.free != 1 {
		t.Errorf("%v, %d free", err, g.free)
	}
}

// TestFullGateReadsNoBody: while a model's queue is full a request is refused before its body is read, be it large,
// slow or no JSON, on every route that computes; those that do not compute answer as ever.
func TestFullGateReadsNoBody(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{Queue: 1}}})
	g := r.model.gate
	leave, err := g.enter(context.Background(), "", g.room, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = g.enter(ctx, "", 1, 1) })
	until(t, "somebody to wait", func() bool { n, _ := g.load(); return n > 0 })
	never, _ := io.Pipe()
	for _, path := range []string{"/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/attention"} {
		q := httptest.NewRequest("POST", path, never)
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, q)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if status, _, b := r.do("POST", "/tokenize", fieldsOf{"prompt": "a"}); status != 200 {
		t.Errorf("/tokenize: %d %s", status, b)
	}
	cancel()
	wg.Wait()
	leave()
	if status, _, b := r.do("POST", "/v1/completions", fieldsOf{"prompt": "a", "max_tokens": 1}); status != 200 {
		t.Errorf("afterwards: %d %s", status, b)
	}
	if _, _, b := r.do("GET", "/metrics", nil); !contains(b,
		"antiphase_requests_rejected_total{reason=\"queue_full\"} 4\n") {
		t.Error("the refusals were not counted once each")
	}
}

// TestOverload: 60 calls at once against two slots and a queue of four. Those that are accepted are answered, the
// others are told when to come back, and nothing is left.
func TestOverload(t *testing.T) {
	r := newRig(t, setup{big: true, Options: infer.Options{Slots: 2}, Config: Config{Limits: Limits{Queue: 4}}})
	var mu sync.Mutex
	counts := map[int]int{}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			status, h, b := r.do("POST", "/v1/completions", fieldsOf{"prompt": "hello", "max_tokens": 20, "seed": i})
			mu.Lock()
			defer mu.Unlock()
			counts[status]++
			if status == http.StatusTooManyRequests && h.Get("Retry-After") == "" || status != 429 && status != 200 {
				t.Errorf("%d %v %s", status, h, b)
			}
		})
	}
	wg.Wait()
	if counts[200] < 7 || counts[429] == 0 {
		t.Errorf("%v: want at least the 3 + 4 that fit answered, and some refused", counts)
	}
	r.quiet()
	_, _, b := r.do("GET", "/metrics", nil)
	if want := fmt.Sprintf("antiphase_requests_rejected_total{reason=\"queue_full\"} %d\n",
		counts[429]); !contains(b, want) {
		t.Errorf("metrics lack %q", want)
	}
}

// A gate without a queue is open while nobody waits, and rejects what it has no room for.
func TestGateWithoutQueue(t *testing.T) {
	g := newGate(1, 0, 100, 0)
	if err := g.closed("a"); err != nil {
		t.Fatalf("closed though nobody waits: %v", err)
	}
	leave, err := g.enter(t.Context(), "a", 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.enter(t.Context(), "b", 1, 10); err == nil {
		t.Error("a second request waits in a queue of none")
	}
	leave()
	if leave, err = g.enter(t.Context(), "b", 1, 10); err != nil {
		t.Fatal(err)
	}
	leave()
}
