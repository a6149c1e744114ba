package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/tokenizer"
)

// lockedPair serves the models tiny and other, whose steps wait for the same lock.
func lockedPair(t *testing.T, device *sync.Mutex) (r *rig, other *Model) {
	t.Helper()
	r = newRig(t, setup{Options: infer.Options{Slots: 1, Lock: device},
		Config: Config{Limits: Limits{Queue: 1, Body: 1 << 20}}})
	other, err := NewModel(Source{ID: "other", Model: r.net, Tokenizer: tokenizer.Bytes(), First: -1,
		Options: infer.Options{Slots: 1, Lock: device}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	if err := r.Ready(r.model, other); err != nil {
		t.Fatal(err)
	}
	return r, other
}

// TestRefusalsWaitForNothing: the engine is stuck in a step, long texts wait to be encoded, and another model still has
// room. Refusals of the full model are answered all the same, and so are probes and metrics: on their way they take no
// lock that work holds.
func TestRefusalsWaitForNothing(t *testing.T) {
	var device sync.Mutex
	r, other := lockedPair(t, &device)
	device.Lock()
	r.model.large.Lock()
	ctx, cancel := context.WithCancel(context.Background())
	var held, asked sync.WaitGroup
	leave, err := r.model.gate.enter(ctx, "", r.model.gate.room, 1)
	if err != nil {
		t.Fatal(err)
	}
	held.Go(func() { _, _ = r.model.gate.enter(ctx, "", 1, 1) })
	until(t, "one to wait", func() bool { n, _ := r.model.gate.load(); return n != 0 })
	held.Go(func() { r.do("POST", "/v1/completions", fieldsOf{"model": "other", "prompt": "x", "max_tokens": 1}) })
	until(t, "the other model's step", func() bool { return other.Engine.Stats().Running != 0 })
	long := strings.Repeat("a b ", 50_000)
	for path, body := range map[string]fieldsOf{
		"/v1/completions": {"model": "tiny", "prompt": long, "truncate_prompt_tokens": 5},
		"/v1/chat/completions": {"model": "tiny", "messages": []fieldsOf{{"role": "user", "content": long}},
			"truncate_prompt_tokens": 5},
		"/v1/embeddings": {"model": "tiny", "input": long[:70_000]},
		"/v1/attention":  {"model": "tiny", "prompt": long[:70_000]},
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
	case <-time.After(time.Minute):
		t.Error("answers wait for work")
	}
	cancel()
	leave()
	r.model.large.Unlock()
	device.Unlock()
	<-answered
	held.Wait()
}

// A model with room answers, whichever other one is full, and the full one does not.
func TestOneOfTwoIsFull(t *testing.T) {
	r := newBare(t, setup{}).several(Source{ID: "a", First: 0}, Source{ID: "b", First: -1})
	for _, full := range r.models.list() {
		full.gate = newGate(1, 1, 1, time.Hour)
		leave, err := full.gate.enter(context.Background(), "", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		full.gate.waiting++
		for _, m := range r.models.list() {
			want := map[bool]int{true: http.StatusTooManyRequests, false: http.StatusOK}[m == full]
			status, _, b := r.do("POST", "/v1/completions", fieldsOf{"model": m.ID, "prompt": "x", "max_tokens": 1})
			if status != want {
				t.Errorf("%s, where %s is full: %d %s", m.ID, full.ID, status, b)
			}
		}
		full.gate.waiting--
		leave()
	}
	for name, want := range map[string][]int32{"a": {0, 'x'}, "b": {'x'}} { // 0 may begin every text
		var v struct{ Tokens []int32 }
		if r.post("/tokenize", fieldsOf{"model": name, "prompt": "x"}, &v); !slices.Equal(v.Tokens, want) {
			t.Errorf("%s: %v, want %v", name, v.Tokens, want)
		}
		first := map[string]any{"a": r.model.Tokenizer.Token(0), "b": nil}
		_, _, b := r.do("GET", "/tokenizer_info?model="+name, nil)
		var info map[string]any
		if err := json.Unmarshal(b, &info); err != nil || info["bos_token"] != first[name] || info["model"] != name {
			t.Errorf("%s: %s, want the first token %v", name, b, first[name])
		}
	}
}

// Events of a stream: none is without text but the first and the last of a choice, unless its tokens were asked for,
// which then come all, in order. With tools the text comes at the end.
func TestEventsHaveText(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}{% if tools %}{% endif %}"})
	say := []fieldsOf{{"role": "user", "content": "x"}}
	for i, more := range []fieldsOf{{}, {"logprobs": true}, {"tools": oneTool}, {"tools": oneTool, "logprobs": true},
		{"continue_final_message": true}} {
		body := fieldsOf{"messages": say, "max_tokens": 40, "ignore_eos": true, "seed": 5, "n": 2}
		maps.Copy(body, more)
		var whole chatReply
		r.post("/v1/chat/completions", body, &whole)
		empty, text, tokens := make([]int, 2), make([]string, 2), make([]int, 2)
		for _, data := range r.events("/v1/chat/completions", body) {
			var ev chatReply
			if data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				t.Fatal(err)
			}
			c := ev.Choices[0]
			if c.Delta.Content != nil {
				text[c.Index] += *c.Delta.Content
			}
			if c.Logprobs != nil {
				tokens[c.Index] += len(c.Logprobs.Content)
			} else if c.Delta.Content == nil || *c.Delta.Content == "" {
				empty[c.Index]++
			}
		}
		for k, c := range whole.Choices {
			if want := 40 * (i % 2); text[k] != *c.Message.Content || tokens[k] != want || i%2 == 0 && empty[k] > 2 {
				t.Errorf("%v: %d events without text, %d tokens, %q, whole %q", more, empty[k], tokens[k], text[k],
					*c.Message.Content)
			}
		}
	}
}
