package eval

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// taskOf is a task of one question that asks in some way.
func taskOf(name string, inside bool, ask func(ctx context.Context, lm LM) error) Task {
	return Task{Name: name, Version: 1, Inside: inside, Measures: []Measure{{Name: "n"}},
		Prepare: func(context.Context, *Plan) (*Job, error) {
			return &Job{IDs: []string{"0"}, Ask: func(ctx context.Context, lm LM, _ []int) ([]Answer, error) {
				return []Answer{{Values: map[string]float64{"n": 1}}}, ask(ctx, lm)
			}}, nil
		}}
}

// What an endpoint cannot do is skipped and named, the rest is asked; where nothing is left, the call reports why.
func TestSkipped(t *testing.T) {
	writes := taskOf("writes", false, func(ctx context.Context, lm LM) error {
		_, err := lm.GenerateUntil(ctx, []Generation{{Prompt: "a", MaxTokens: 1}})
		return err
	})
	scores := taskOf("scores", false, func(ctx context.Context, lm LM) error {
		_, err := lm.Loglikelihood(ctx, []Continuation{{"a", "b"}})
		return err
	})
	looks := taskOf("looks", true, func(context.Context, LM) error { return nil })
	for name, s := range map[string]*server{"completions without echo": {noEcho: true},
		"completions that refuse echo": {refuses: 400}, "chat": {}} {
		e := serve(t, s)
		e.Chat = name == "chat"
		target := Target{Model: Model{Name: "e", Context: 64}, LM: e}
		dir := t.TempDir()
		ev, err := Run(context.Background(), []Target{target}, []Task{scores, looks, writes}, Options{Output: dir})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var skipped []string
		for _, x := range ev.Skipped {
			skipped = append(skipped, x.Model+" "+x.Task)
			if !strings.Contains(x.Why, "looks into the model") && !strings.Contains(x.Why, "no log-probabilities") {
				t.Errorf("%s: %s: %s", name, x.Task, x.Why)
			}
		}
		if got := strings.Join(skipped, ", "); got != "e looks, e scores" && got != "e scores, e looks" ||
			len(ev.Models[0].Results) != 1 {
			t.Errorf("%s: skipped %s, %d results", name, got, len(ev.Models[0].Results))
		}
		var input *InputError
		if _, err := Run(context.Background(), []Target{target}, []Task{scores, looks}, Options{}); !errors.As(err,
			&input) || !input.Usage {
			t.Errorf("%s: nothing is left, and the error is %v", name, err)
		}
	}
}

// An endpoint gets as many requests at a time as allowed, and no more.
func TestEndpointConcurrency(t *testing.T) {
	for _, parallel := range []int32{1, 3} {
		var now, most atomic.Int32
		var once sync.Once
		together := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == parallel {
				once.Do(func() { close(together) })
			}
			select {
			case <-together:
			case <-r.Context().Done():
			}
			time.Sleep(5 * time.Millisecond) // one more would come meanwhile
			now.Add(-1)
			w.Write([]byte(`{"choices": [{"text": "x"}]}`))
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // reached only by a fault
		_, err := (&Endpoint{URL: srv.URL, Model: "m", Parallel: int(parallel)}).GenerateUntil(ctx,
			make([]Generation, 9))
		cancel()
		srv.Close()
		if err != nil || most.Load() != parallel {
			t.Errorf("%d requests at a time, want %d; %v", most.Load(), parallel, err)
		}
	}
}
