package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"antiphase/infer"
	"antiphase/model"
)

// goroutinesBack waits until there are no more goroutines than before.
func goroutinesBack(t *testing.T, base int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > base; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), base, b[:runtime.Stack(b, true)])
		}
	}
}

// TestDisconnects: 100 clients leave at random moments, in the queue, in the prompt and in the answer, streamed or not.
// Their neighbours' answers are those they get alone, and nothing is left.
func TestDisconnects(t *testing.T) {
	r := newRig(t, setup{big: true, Options: infer.Options{Slots: 4, PrefillChunk: 64},
		Config: Config{Keys: keys(t, "sk-neighbour", "sk-leaver")}})
	r.key = "sk-neighbour"
	rnd := rand.New(rand.NewPCG(15, 16))
	var steady []fieldsOf
	var want []answer
	for i := range 3 {
		steady = append(steady, fieldsOf{"prompt": randomIDs(rnd, 40+10*i), "max_tokens": 60, "seed": i, "logprobs": 1,
			"ignore_eos": true})
		want = append(want, r.ask(steady[i]))
	}
	r.http.Client().CloseIdleConnections()
	r.quiet()
	base := runtime.NumGoroutine()
	var wg sync.WaitGroup
	var stop atomic.Bool
	var served atomic.Int32 // neighbours that were answered
	rounds := make([]int, len(steady))
	for i := range steady {
		wg.Go(func() {
			for ; !stop.Load(); rounds[i]++ {
				if d := cmp.Diff(want[i], r.ask(steady[i])); d != "" {
					t.Errorf("a neighbour's answer changed: %s", d)
				}
				if rounds[i] == 0 {
					served.Add(1)
				}
			}
		})
	}
	left, all := 0, int32(len(steady))
	for ; left < 100 || left < 10_000 && served.Load() < all; left += 100 {
		r.leavers(rnd, 100)
	}
	if n := served.Load(); n < all {
		t.Errorf("%d of %d neighbours were answered while %d clients came and left", n, all, left)
	}
	stop.Store(true)
	wg.Wait()
	r.http.Client().CloseIdleConnections()
	r.quiet()
	goroutinesBack(t, base)
	t.Logf("%d clients left, neighbours answered %v times", left, rounds)
}

// leavers sends requests of n clients, of which at most 12 are there at a time, and waits until all have left.
func (r *rig) leavers(rnd *rand.Rand, n int) {
	r.t.Helper()
	var leavers sync.WaitGroup
	room := make(chan struct{}, 12)
	for i := range n {
		room <- struct{}{}
		wait := time.Duration(rnd.IntN(60)) * time.Millisecond
		body, err := json.Marshal(fieldsOf{"prompt": randomIDs(rnd, 1+rnd.IntN(1500)), "max_tokens": 400,
			"stream": i%2 == 0, "ignore_eos": true})
		if err != nil {
			r.t.Fatal(err)
		}
		leavers.Go(func() {
			defer func() { <-room }()
			r.leave(body, wait)
		})
	}
	leavers.Wait()
}

// leave sends a request and goes away after a while.
func (r *rig) leave(body []byte, wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "POST", r.http.URL+"/v1/completions", strings.NewReader(string(body)))
	if err != nil {
		r.t.Error(err)
		return
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer sk-leaver")
	res, err := r.http.Client().Do(q)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// TestCancelWithinAStep: from the moment the context ends until the call returns, the engine runs the step in flight
// and no other.
func TestCancelWithinAStep(t *testing.T) {
	r := newBare(t, setup{big: true, Options: infer.Options{Slots: 2, PrefillChunk: 16}})
	for name, c := range map[string]struct{ prompt, after int }{"in the prompt": {1500, 5}, "in the answer": {4, 20}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b, err := json.Marshal(fieldsOf{"prompt": randomIDs(rand.New(rand.NewPCG(1, 1)), c.prompt),
				"max_tokens": 500, "ignore_eos": true})
			if err != nil {
				t.Fatal(err)
			}
			q := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(string(b))).WithContext(ctx)
			start := r.model.Engine.Stats().Steps
			at := make(chan int)
			go func() {
				for r.model.Engine.Stats().Steps < start+c.after {
					time.Sleep(50 * time.Microsecond)
				}
				cancel()
				at <- r.model.Engine.Stats().Steps
			}()
			w := httptest.NewRecorder()
			r.Handler().ServeHTTP(w, q)
			seen := <-at
			if more := r.model.Engine.Stats().Steps - seen; more > 1 {
				t.Errorf("%d more steps after the client had gone", more)
			}
			r.quiet()
		})
	}
}

// TestDeadline: a request that takes too long gets 504, or an error event where its stream has begun; never silence.
func TestDeadline(t *testing.T) {
	s := setup{Config: Config{Limits: Limits{Request: 405 * time.Millisecond}},
		Options: infer.Options{Lock: pace(10 * time.Millisecond)}}
	bubble(t, s, func(t *testing.T, r *rig) {
		long := fieldsOf{"prompt": "x", "max_tokens": 100, "ignore_eos": true}
		begin := time.Now()
		r.refused("/v1/completions", long, http.StatusGatewayTimeout, "", "deadline_exceeded")
		list := r.events("/v1/completions", long)
		if last := list[len(list)-1]; len(list) < 30 || !strings.Contains(last, "deadline_exceeded") {
			t.Errorf("%d events, the last %s", len(list), last)
		}
		if took := time.Since(begin); took != 2*410*time.Millisecond { // each ends with the step in flight
			t.Errorf("took %v", took)
		}
		r.quiet()
	})
}

// TestLoading: the port answers 503 until there are models.
func TestLoading(t *testing.T) {
	r := newRig(t, setup{loading: true})
	for _, path := range []string{"/health", "/readyz", "/v1/models", "/tokenizer_info"} {
		status, _, b := r.do("GET", path, nil)
		if status != http.StatusServiceUnavailable || !strings.Contains(string(b), "Loading model") ||
			!strings.Contains(string(b), "unavailable_error") {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if status, _, _ := r.do("GET", "/livez", nil); status != http.StatusOK {
		t.Errorf("/livez: %d", status)
	}
	for _, path := range []string{"/v1/completions", "/v1/chat/completions", "/tokenize", "/v1/embeddings"} {
		r.refused(path, `{"prompt":"x"}`, http.StatusServiceUnavailable, "", "")
	}
	if err := r.Ready(r.model); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := r.do("GET", "/readyz", nil); status != http.StatusOK {
		t.Errorf("/readyz after loading: %d", status)
	}
}

// TestSmallCache: with pages for little more than one sequence, requests queue and take turns; one that can never fit
// is told so.
func TestSmallCache(t *testing.T) {
	r := newRig(t, setup{held: true, Options: infer.Options{Slots: 4, PageSize: 4, CacheTokens: 96}})
	rnd := rand.New(rand.NewPCG(17, 18))
	ample := newRig(t, setup{})
	asked := make([]fieldsOf, 24)
	want := make([]answer, len(asked))
	for i := range asked {
		asked[i] = fieldsOf{"prompt": randomIDs(rnd, 10+rnd.IntN(40)), "max_tokens": 40, "seed": i, "logprobs": 1}
		want[i] = ample.ask(asked[i])
	}
	var wg sync.WaitGroup
	for i, q := range asked {
		wg.Go(func() {
			if d := cmp.Diff(want[i], r.ask(q)); d != "" {
				t.Errorf("request %d: %s", i, d)
			}
		})
	}
	until(t, "all to come", func() bool { return r.inFlight() == len(asked) })
	r.step.free()
	wg.Wait()
	if n := r.model.Engine.Stats().Preempted; n == 0 {
		t.Error("nothing was preempted: the cache was not small enough to show anything")
	}
	r.refused("/v1/completions", fieldsOf{"prompt": randomIDs(rnd, 100), "max_tokens": 5}, http.StatusBadRequest,
		"prompt", "context_length_exceeded")
	r.quiet()
}

// TestPanics: a handler, work between steps, or the step itself panics: that request gets 500 with its id and nothing
// of the inside, and the next one is served as ever.
func TestPanics(t *testing.T) {
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("/secret/path in a handler") })
	r := newRig(t, setup{Config: Config{Page: page}})
	q := fieldsOf{"prompt": "abc", "max_tokens": 5, "seed": 1, "logprobs": 1}
	want := r.ask(q)
	check := func(how string, status int, b []byte) {
		t.Helper()
		if status != http.StatusInternalServerError || !strings.Contains(string(b), "req_") ||
			strings.Contains(string(b), "secret") || strings.Contains(string(b), ".go") {
			t.Errorf("%s: %d %s", how, status, b)
		}
		if d := cmp.Diff(want, r.ask(q)); d != "" {
			t.Errorf("after %s: %s", how, d)
		}
	}
	status, _, b := r.do("GET", "/", nil)
	check("a handler", status, b)

	good := *r.net
	*r.net = broken(good.Config)
	status, _, b = r.do("POST", "/v1/completions", q)
	*r.net = good
	check("a step", status, b)

	*r.net = broken(good.Config)
	status, _, b = r.do("POST", "/v1/embeddings", fieldsOf{"input": "x"})
	*r.net = good
	check("an embedding", status, b)
	r.quiet()
}

// broken is a model without layers or memory: every pass panics.
func broken(c model.Config) (m model.Model) {
	m.Config = c
	return m
}

// breaks takes the model away from an engine before its next step.
func (r *rig) breaks() { r.step.next <- func() { *r.net = broken(r.net.Config) } }

// TestErrorEvents: a stream that fails after its beginning ends with an error event, not in silence.
func TestErrorEvents(t *testing.T) {
	r := newRig(t, setup{held: true})
	good := *r.net
	go func() {
		r.step.let(20)
		r.breaks()
		r.step.free()
	}()
	list := r.events("/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 100, "ignore_eos": true})
	if last := list[len(list)-1]; !strings.Contains(last, "internal_error") || len(list) < 10 {
		t.Errorf("%d events, the last %s", len(list), last)
	}
	*r.net = good
	r.quiet()
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 2}, &reply)
}

// TestFullLog: a log that cannot be written does not keep requests from being served.
func TestFullLog(t *testing.T) {
	r := newRig(t, setup{Config: Config{Log: brokenLog()}})
	for i := range 3 {
		if status, _, b := r.do("POST", "/v1/completions",
			fieldsOf{"prompt": fmt.Sprint(i), "max_tokens": 1}); status != http.StatusOK {
			t.Errorf("%d %s", status, b)
		}
	}
}
