package server

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
)

// value is a metric's number as Prometheus would read it.
func (r *rig) value(name string) float64 {
	r.t.Helper()
	_, _, b := r.do("GET", "/metrics", nil)
	m := regexp.MustCompile(`(?m)^` + namespace + "_" + name + `(?:\{[^}]*\})? (.*)$`).FindStringSubmatch(string(b))
	if m == nil {
		r.t.Fatalf("there is no %s", name)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return x
}

// Gauges of the engine: pages in use as a share of all, tokens found in the cache, sequences that wait.
func TestGauges(t *testing.T) {
	r := newRig(t, setup{Options: infer.Options{Slots: 2, PageSize: 16}}) // 2 contexts of 128: 16 pages
	s := r.model.Engine.NewSession()
	s.Append(slices.Repeat([]int32{65}, 40)...)
	if err := s.Generate(context.Background(), infer.Sampling{MaxTokens: 2, IgnoreEOS: true},
		func(infer.Event) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := r.value("kv_cache_usage_perc"); got != 3./16 { // 41 positions in 3 pages
		t.Errorf("%g of the pages are in use, want 3/16", got)
	}
	s.Close()
	body := fieldsOf{"prompt": strings.Repeat("0123456789", 6), "max_tokens": 1}
	for range 2 {
		r.post("/v1/completions", body, new(completionReply))
	}
	for name, want := range map[string]float64{"kv_cache_usage_perc": 0, "prefix_cache_hits_total": 48,
		"num_preemptions_total": 0, "num_requests_running": 0} {
		if got := r.value(name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	g := r.model.gate
	g.mu.Lock()
	g.waiting = 3
	g.mu.Unlock()
	if got := r.value("num_requests_waiting"); got != 3 {
		t.Errorf("%g wait, want 3", got)
	}
	g.mu.Lock()
	g.waiting = 0
	g.mu.Unlock()
}

// Times of a call by hand: in seconds, from its arrival; per token after the first of each choice.
func TestWatchTimes(t *testing.T) { bubble(t, setup{}, watchTimes) }

func watchTimes(t *testing.T, r *rig) {
	w := r.metrics.watch(r.model, 5)
	w.begin = time.Now().Add(-20 * time.Second)
	w.admitted()
	w.event(0, infer.Event{ID: 1})
	w.event(1, infer.Event{ID: 1})
	w.first = time.Now().Add(-10 * time.Second)
	w.last[0], w.last[1] = time.Now().Add(-4*time.Second), time.Now().Add(-3*time.Second)
	for i := range int32(5) { // 0 is an id as any other
		w.event(0, infer.Event{ID: i})
		w.event(1, infer.Event{ID: i, Text: "x"})
		w.event(1, infer.Event{ID: -1})
		w.event(1, infer.Event{ID: 1, Prompt: true})
	}
	w.finished([]*choice{{reason: "stop"}, {reason: "stop"}}, nil)
	for name, want := range map[string]float64{
		"request_queue_time_seconds_sum": 20, "time_to_first_token_seconds_sum": 20,
		"inter_token_latency_seconds_sum": 4 + 3, "inter_token_latency_seconds_count": 10,
		"e2e_request_latency_seconds_sum":           20,
		"request_time_per_output_token_seconds_sum": 10. * 2 / 10, "prompt_tokens_total": 5,
		"generation_tokens_total": 12, "request_success_total": 2,
	} {
		if got := r.value(name); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
}

// A request whose choices have one token each has no time per token after the first.
func TestWatchOfSingleTokens(t *testing.T) {
	r := newRig(t, setup{})
	for choices := range 4 {
		w := r.metrics.watch(r.model, 1)
		for i := range choices {
			w.event(i, infer.Event{ID: 1})
		}
		w.finished(nil, nil)
	}
	w := r.metrics.watch(r.model, 1)
	w.event(0, infer.Event{ID: 1})
	w.event(0, infer.Event{ID: 1})
	w.finished(nil, nil)
	if n := r.value("request_time_per_output_token_seconds_count"); n != 1 {
		t.Errorf("%g times, want that of the last request only", n)
	}
}

// openapi.json has every route with its method, key and parameter.
func TestOpenAPI(t *testing.T) {
	r := newRig(t, setup{Config: Config{Version: "v7"}})
	_, _, b := r.do("GET", "/openapi.json", nil)
	var doc struct {
		OpenAPI string
		Info    struct{ Title, Version string }
		Paths   map[string]map[string]struct {
			Summary    string
			Security   *[]any
			Parameters []struct {
				Name, In string
				Required bool
			}
			RequestBody *struct{ Required bool }
			Responses   map[string]any
		}
		Components struct {
			SecuritySchemes map[string]struct{ Type, Scheme string }
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.OpenAPI != "3.1.0" || doc.Info.Title != "antiphase" ||
		doc.Info.Version != "v7" || doc.Components.SecuritySchemes["key"].Scheme != "bearer" {
		t.Fatalf("%v: %.300s", err, b)
	}
	n := 0
	for _, route := range r.router.routes {
		path := strings.NewReplacer("{id...}", "{id}", "{$}", "").Replace(route.path)
		op, ok := doc.Paths[path][strings.ToLower(route.method)]
		if !ok || op.Summary != route.about || (op.Security != nil && len(*op.Security) == 0) != route.public ||
			(op.RequestBody != nil) != (route.method == "POST") || op.Responses["200"] == nil ||
			op.Responses["default"] == nil {
			t.Errorf("%s: %+v", route.pattern(), op)
		}
		if has := len(op.Parameters) == 1 && op.Parameters[0].Name == "id" && op.Parameters[0].In == "path" &&
			op.Parameters[0].Required; has != strings.Contains(path, "{id}") {
			t.Errorf("%s: parameters %+v", route.pattern(), op.Parameters)
		}
		n++
	}
	total := 0
	for _, ops := range doc.Paths {
		total += len(ops)
	}
	if total != n {
		t.Errorf("%d operations of %d routes", total, n)
	}
}
