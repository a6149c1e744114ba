package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/tokenizer"
)

// TestRefusalsWaitForNothing: the engine is stuck in a step, long texts wait to be encoded, and another model still has
// room. Refusals of the full model are answered all the same, and so are probes and metrics: on their way they take no
// lock that work holds.
func TestRefusalsWaitForNothing(t *testing.T) {
	var device sync.Mutex
	r := newRig(t, setup{Options: infer.Options{Slots: 1, Lock: &device}, Config: Config{Limits: Limits{Queue: 1, Body: 1 << 20}}})
	other, err := NewModel(Source{ID: "other", Model: r.net, Tokenizer: tokenizer.Bytes(), First: -1, Options: infer.Options{Slots: 1, Lock: &device}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	if err := r.Ready(r.model, other); err != nil {
		t.Fatal(err)
	}
	device.Lock()
	r.model.large.Lock()
	ctx, cancel := context.WithCancel(context.Background())
	var held, asked sync.WaitGroup
	leave, err := r.model.gate.enter(ctx, "", r.model.gate.room, 1)
	if err != nil {
		t.Fatal(err)
	}
	held.Go(func() { _, _ = r.model.gate.enter(ctx, "", 1, 1) })
	for n := 0; n == 0; n, _ = r.model.gate.load() {
		time.Sleep(50 * time.Microsecond)
	}
	held.Go(func() { r.do("POST", "/v1/completions", fieldsOf{"model": "other", "prompt": "x", "max_tokens": 1}) })
	for other.Engine.Stats().Running == 0 {
		time.Sleep(50 * time.Microsecond)
	}
	long := strings.Repeat("a b ", 50_000)
	for path, body := range map[string]fieldsOf{
		"/v1/completions":      {"model": "tiny", "prompt": long, "truncate_prompt_tokens": 5},
		"/v1/chat/completions": {"model": "tiny", "messages": []fieldsOf{{"role": "user", "content": long}}, "truncate_prompt_tokens": 5},
		"/v1/embeddings":       {"model": "tiny", "input": long[:70_000]},
		"/v1/attention":        {"model": "tiny", "prompt": long[:70_000]},
	} {
		for range 3 { // of large bodies only so many are read at a time
			asked.Go(func() {
				status, _, b := r.do("POST", path, body)
				if status != http.StatusTooManyRequests || !strings.Contains(string(b), "1 requests wait already") {
					t.Errorf("%s: %d %s", path, status, b)
				}
			})
		}
	}
	for _, path := range []string{"/health", "/metrics", "/v1/models"} {
		asked.Go(func() {
			if status, _, b := r.do("GET", path, nil); status != http.StatusOK {
				t.Errorf("%s: %d %s", path, status, b)
			}
		})
	}
	answered := make(chan struct{})
	go func() { asked.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(20 * time.Second):
		t.Error("answers wait for work")
	}
	cancel()
	leave()
	r.model.large.Unlock()
	device.Unlock()
	<-answered
	held.Wait()
}
