package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/infer"
)

// A model's gate holds its slots, a quarter more and one; the queue has the bounds of the configuration.
func TestGateOfAModel(t *testing.T) {
	r := newBare(t, setup{})
	for _, c := range []struct{ slots, room int }{{1, 2}, {2, 3}, {4, 6}, {8, 11}, {100, 126}} {
		for _, l := range []Limits{{}, {Queue: 3, QueueTokens: 70, Wait: 9 * time.Second}} {
			srv, err := New(Config{Limits: l})
			if err != nil {
				t.Fatal(err)
			}
			m := &Model{ID: "m", Slots: c.slots, Context: 50, Engine: r.model.Engine}
			if err := srv.Ready(m); err != nil {
				t.Fatal(err)
			}
			queue, tokens := 256, 4*50*c.slots
			if l.Queue > 0 {
				queue, tokens = 3, 70
			}
			if g := m.gate; g.room != c.room || g.free != c.room || g.maxWait != queue || g.maxTokens != tokens ||
				g.maxDelay != l.Wait {
				t.Errorf("%d slots, %+v: %+v", c.slots, l, g)
			}
		}
	}
}

// What each kind of request takes of a gate: one place per sequence and every sequence's prompt, or one place and all
// of its inputs where they are computed one after the other.
func TestPlacesOfARequest(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}", Options: infer.Options{Slots: 8}})
	g := r.model.gate
	leave, err := g.enter(t.Context(), "", g.room, 1)
	if err != nil {
		t.Fatal(err)
	}
	say := []fieldsOf{{"role": "user", "content": "abcd"}}
	for _, c := range []struct {
		path         string
		body         fieldsOf
		seqs, tokens int
	}{
		{"/v1/completions", fieldsOf{"prompt": "abc", "max_tokens": 1}, 1, 3},
		{"/v1/completions", fieldsOf{"prompt": []string{"abc", "ab"}, "n": 2, "max_tokens": 1}, 4, 10},
		{"/v1/completions", fieldsOf{"prompt": "a", "n": 16, "max_tokens": 1}, 11, 16}, // no more than there are
		{"/v1/chat/completions", fieldsOf{"messages": say, "n": 3, "max_tokens": 1}, 3, 12},
		{"/v1/embeddings", fieldsOf{"input": []string{"abc", "ab"}}, 1, 5},
		{"/v1/attention", fieldsOf{"prompt": "abcd"}, 1, 4},
	} {
		b, err := json.Marshal(c.body)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			q := httptest.NewRequest("POST", c.path, bytes.NewReader(b)).WithContext(ctx)
			r.Handler().ServeHTTP(httptest.NewRecorder(), q)
		}()
		for n := 0; n == 0; n, _ = g.load() {
			select {
			case <-done:
				t.Fatalf("%s %v does not wait", c.path, c.body)
			case <-time.After(50 * time.Microsecond):
			}
		}
		g.mu.Lock()
		w := g.queues["anyone"][0]
		g.mu.Unlock()
		if _, tokens := g.load(); w.seqs != c.seqs || w.tokens != c.tokens || tokens != c.tokens {
			t.Errorf("%s %v takes %d places and %d tokens, want %d and %d", c.path, c.body, w.seqs, w.tokens,
				c.seqs, c.tokens)
		}
		cancel()
		<-done
	}
	leave()
	r.quiet()
	if got := r.value("requests_cancelled_total"); got != 6 {
		t.Errorf("%g requests count as cancelled, want 6", got)
	}
}

// Without a bound on the wait as many may be ahead as half of the room; more if they are known to be short.
func TestLateByDefault(t *testing.T) {
	for _, c := range []struct {
		room, ahead, left int
		service           float64 // seconds
		want              bool
	}{
		{4, 1, 0, 9, false}, {4, 2, 0, 9, true}, {5, 2, 0, 9, true}, {6, 2, 0, 9, false}, {1, 1, 0, 9, true},
		{1, 0, 0, 9, false},
		{4, 2, 15, 1, true}, {4, 2, 16, 1, false}, {4, 2, 16, 1.01, true}, {4, 4, 99, 0.5, false},
		{4, 4, 99, 0.51, true}, {4, 2, 0, 0, true},
	} {
		g := newGate(c.room, 100, 1000, 0)
		g.left, g.service = c.left, c.service
		if c.ahead > 0 {
			g.queues["a"] = []*waiter{{seqs: c.ahead}}
		}
		if got := g.late("b"); got != c.want {
			t.Errorf("%+v: late %v", c, got)
		}
	}
}

// A drain tells how many calls it aborted, waits no longer than it must, and gives those that do not end their grace.
func TestDrainCounts(t *testing.T) {
	for _, c := range []struct {
		name           string
		calls          int
		ends           time.Duration // of each call, after the drain has begun; 0: when it is aborted
		never          bool
		aborted        int
		took           time.Duration
		aborts, served bool
	}{
		{"none", 0, 0, false, 0, 0, false, false},
		{"in time", 3, 4 * time.Second, false, 0, 4 * time.Second, false, false},
		{"aborted", 3, 0, false, 3, 10 * time.Second, true, false},
		{"deaf", 2, 0, true, 2, 12 * time.Second, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newCalls()
			s.rest.release = func() {}
			s.open()
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for range c.calls {
				if err := s.begin(); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					defer s.end()
					switch {
					case c.never:
						<-stop
					case c.ends > 0:
						time.Sleep(c.ends)
					default:
						<-s.base.Done()
					}
				})
			}
			begin := time.Now()
			n := s.drain(10*time.Second, 2*time.Second)
			if took := time.Since(begin); n != c.aborted || took != c.took ||
				(context.Cause(s.base) != nil) != c.aborts {
				t.Errorf("%s: %d aborted after %v, want %d after %v; %v", c.name, n, took, c.aborted, c.took,
					context.Cause(s.base))
			}
			if c.aborts && context.Cause(s.base) != error(errDraining) || !errors.Is(s.begin(), errDraining) {
				t.Errorf("%s: aborted with %v, a new call: %v", c.name, context.Cause(s.base), s.begin())
			}
			close(stop)
			wg.Wait()
			s.rest.busy() // stops the timer
		})
	}
}

// Sequences in the batch, those that wait in the engine and before the gate, and preemptions, while they happen.
func TestGaugesUnderLoad(t *testing.T) {
	r := newRig(t, setup{Options: infer.Options{Slots: 2, PageSize: 4, CacheTokens: 32}})
	reqs := make([]infer.Request, 5)
	for i := range reqs {
		reqs[i] = infer.Request{IDs: []int32{1, 2, 3}, Sampling: infer.Sampling{MaxTokens: 20, IgnoreEOS: true}}
	}
	looked := false
	err := r.model.Engine.Generate(t.Context(), reqs, func(int, infer.Event) bool {
		if looked {
			return true
		}
		looked = true
		g := r.model.gate
		g.mu.Lock()
		g.waiting = 4
		g.mu.Unlock()
		if run, wait := r.value("num_requests_running"), r.value("num_requests_waiting"); run != 2 || wait != 3+4 {
			t.Errorf("%g run and %g wait, want 2 and 7", run, wait)
		}
		g.mu.Lock()
		g.waiting = 0
		g.mu.Unlock()
		return true
	})
	if err != nil || !looked {
		t.Fatal(err)
	}
	if n := r.model.Engine.Stats().Preempted; n == 0 || r.value("num_preemptions_total") != float64(n) {
		t.Errorf("%d preemptions, %g told", n, r.value("num_preemptions_total"))
	}
}

// A listener that fails ends Serve with its error.
func TestServeFails(t *testing.T) {
	r := newBare(t, setup{})
	l := newPipes()
	l.Close()
	if err := r.Serve(t.Context(), l); err == nil || errors.Is(err, http.ErrServerClosed) {
		t.Errorf("%v", err)
	}
}
