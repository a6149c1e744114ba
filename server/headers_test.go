package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The headers of every kind of answer.
func TestHeaders(t *testing.T) {
	r := newRig(t, setup{Config: Config{Origins: []string{"https://app.example"}}})
	check := func(what string, h http.Header, want map[string]string) {
		t.Helper()
		for name, v := range want {
			if got := h.Get(name); got != v {
				t.Errorf("%s: %s is %q, want %q", what, name, got, v)
			}
		}
	}
	always := map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
	status, h, b := r.do("GET", "/v1/models", nil)
	check("an answer", h, always)
	check("an answer", h, map[string]string{"Content-Type": "application/json", "Content-Length": fmt.Sprint(len(b)),
		"Access-Control-Allow-Origin": "", "Vary": ""})
	if status != http.StatusOK || b[len(b)-1] != '\n' {
		t.Errorf("%d %s", status, b)
	}
	_, h, _ = r.do("POST", "/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 1, "stream": true}, "Origin",
		"https://app.example")
	check("a stream", h, always)
	check("a stream", h, map[string]string{"Content-Type": "text/event-stream; charset=utf-8",
		"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Access-Control-Allow-Origin": "https://app.example",
		"Vary": "Origin"})
	status, h, _ = r.do("OPTIONS", "/v1/completions", nil, "Origin", "https://app.example")
	check("a preflight", h, map[string]string{"Access-Control-Allow-Methods": "GET, POST",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-Id", "Access-Control-Max-Age": "600",
		"Access-Control-Allow-Origin": "https://app.example"})
	if status != http.StatusNoContent {
		t.Errorf("a preflight: %d", status)
	}
	if status, _, _ := r.do("OPTIONS", "/v1/completions", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS without an origin: %d", status)
	}
	_, h, b = r.do("GET", "/", nil)
	check("the list", h, map[string]string{"Content-Type": "text/plain; charset=utf-8"})
	if !strings.Contains(string(b), "\nPOST /v1/chat/completions     answer a conversation\n") {
		t.Errorf("%s", b)
	}
	r.crowded.Store(true)
	for _, want := range []string{"close", ""} {
		w := httptest.NewRecorder() // a client does not show this header
		r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
		if r.crowded.Store(false); w.Header().Get("Connection") != want {
			t.Errorf("Connection is %q, want %q", w.Header().Get("Connection"), want)
		}
	}
}

// The code of an error: a name, or the status 503, or none.
func TestErrorCodes(t *testing.T) {
	for e, want := range map[*apiError]any{errDraining: "shutting_down", errDeadline: "deadline_exceeded",
		{Status: 503}: 503, {Status: 500}: nil} {
		if got := e.body()["error"].(map[string]any)["code"]; got != want {
			t.Errorf("%v: the code is %v, want %v", e, got, want)
		}
	}
}

// The bodies of errors, in OpenAI's form with what is added to it.
func TestErrorBodies(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{Body: 1000}}, loading: true})
	read := func(method, path string, body any) (int, map[string]any) {
		t.Helper()
		status, _, b := r.do(method, path, body)
		var v struct{ Error map[string]any }
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatalf("%s: %s", path, b)
		}
		return status, v.Error
	}
	for _, path := range []string{"/health", "/readyz", "/v1/models", "/v1/models/tiny", "/tokenizer_info"} {
		if status, e := read("GET", path, nil); status != 503 || e["code"] != 503. ||
			e["type"] != "unavailable_error" || e["message"] != "Loading model" {
			t.Errorf("%s while loading: %d %v", path, status, e)
		}
	}
	if status, _, _ := r.do("GET", "/livez", nil); status != 200 {
		t.Errorf("/livez while loading: %d", status)
	}
	if err := r.Ready(r.model); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		body any
		want map[string]any
	}{
		{"/v1/completions", fieldsOf{"prompt": strings.Repeat("x", 2000)},
			map[string]any{"status": 413, "code": "request_too_large", "limit_bytes": 1000.,
				"type": "invalid_request_error", "param": nil}},
		{"/v1/completions", fieldsOf{"prompt": strings.Repeat("x", 200)},
			map[string]any{"status": 400, "code": "context_length_exceeded", "n_prompt_tokens": 200., "n_ctx": 128.,
				"param": "prompt"}},
		{"/v1/completions", `{"prompt":"x","n":99}`,
			map[string]any{"status": 400, "param": "n", "code": nil, "message": "n: is 99, must be between 1 and 16"}},
		{"/v1/completions", `{"prompt":"x","nn":9}`,
			map[string]any{"status": 400, "param": "nn", "code": "unknown_parameter"}},
		{"/v1/completions", "{\"prompt\":\"\xff\"}",
			map[string]any{"status": 400, "message": "the body is not valid UTF-8", "param": nil}},
		{"/v1/nothing", `{}`, map[string]any{"status": 404, "code": "unknown_url", "type": "invalid_request_error"}},
		{"/v1/models", `{}`, map[string]any{"status": 405, "message": "the method is not allowed here; use GET"}},
	} {
		status, e := read("POST", c.path, c.body)
		e["status"] = status
		for k, v := range c.want {
			if e[k] != v {
				t.Errorf("%s %.60v: %s is %v, want %v", c.path, c.body, k, e[k], v)
			}
		}
	}
	if status, h, _ := r.do("DELETE", "/v1/models/tiny", nil); status != http.StatusMethodNotAllowed ||
		h.Get("Allow") != "GET" {
		t.Errorf("%d, allowed %q", status, h.Get("Allow"))
	}
}

// The log has a line per request: its id, route, status and caller, and nothing that a client wrote.
func TestRequestLog(t *testing.T) {
	var text bytes.Buffer
	r := newRig(t, setup{Config: Config{Keys: keys(t, "sk-first-key", "sk-second-key"),
		Log: slog.New(slog.NewJSONHandler(&text, nil))}})
	r.do("GET", "/v1/models", nil, "Authorization", "Bearer sk-second-key", "X-Request-Id", "id-1")
	r.do("GET", "/secret-path", nil, "X-Request-Id", "id-2")
	r.http.Close()
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	for i, want := range []map[string]any{
		{"msg": "request", "id": "id-1", "route": "GET /v1/models", "status": 200., "who": "key 1"},
		{"msg": "request", "id": "id-2", "route": "other", "status": 401., "who": ""},
	} {
		var got map[string]any
		if len(lines) != 2 || json.Unmarshal([]byte(lines[i]), &got) != nil {
			t.Fatalf("%q", lines)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("line %d: %s is %v, want %v", i, k, got[k], v)
			}
		}
	}
	if strings.Contains(text.String(), "secret") || strings.Contains(text.String(), "sk-") {
		t.Errorf("%s", &text)
	}
}

// Which connections go when others wait: all idle ones that have been so for a while, else the one whose request has
// been arriving for longest, never one that is being answered or has just begun.
func TestDispensable(t *testing.T) { synctest.Test(t, dispensable) }

func dispensable(t *testing.T) {
	type conn struct {
		phase phase
		age   time.Duration
	}
	for name, c := range map[string]struct {
		open []conn
		want []int
	}{
		"none": {nil, nil},
		"idle ones": {[]conn{{idles, 2 * time.Second}, {arrives, 9 * time.Second},
			{idles, 5 * time.Second}}, []int{0, 2}},
		"just idle": {[]conn{{idles, 500 * time.Millisecond}, {serves, 9 * time.Second}}, nil},
		"the oldest that arrives": {[]conn{{arrives, 3 * time.Second}, {arrives, 8 * time.Second},
			{arrives, 5 * time.Second}}, []int{1}}, "just begun": {[]conn{{arrives, 500 * time.Millisecond}}, nil},
		"served": {[]conn{{serves, time.Hour}}, nil},
	} {
		l := newBounded(nil, 9, new(atomic.Bool))
		var all []*boundedConn
		for _, x := range c.open {
			b := &boundedConn{l: l, phase: x.phase, since: time.Now().Add(-x.age)}
			all = append(all, b)
			l.open[b] = struct{}{}
		}
		var got []int
		for _, b := range l.dispensable() {
			got = append(got, slices.Index(all, b))
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The mean time inside, by its definition: of about the last ten sequences, or of the last fifty if that is larger; and
// what is expected of it.
func TestGateMeans(t *testing.T) { synctest.Test(t, gateMeans) }

func gateMeans(t *testing.T) {
	g := newGate(4, 9, 1000, 0)
	leave := func(seqs int, seconds float64) {
		g.free -= seqs
		g.leave(&waiter{seqs: seqs, entered: time.Now().Add(-time.Duration(seconds * float64(time.Second)))})
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	leave(1, 10)
	near("the first", g.service, 10)
	leave(1, 20)
	near("recent", g.recent, 10+0.1*10)
	near("lasting", g.lasting, 10+0.02*10)
	near("the larger", g.service, 11)
	leave(2, 1) // as two that took a second each
	near("recent", g.recent, 11-0.19*10)
	near("lasting", g.lasting, 10.2-(1-0.98*0.98)*9.2)
	near("the larger", g.service, g.lasting)
	if g.left != 4 || g.free != 4 {
		t.Errorf("%d have left, %d are free", g.left, g.free)
	}
	// Of another key no more are ahead than this one has and one more.
	w := func(n int) *waiter { return &waiter{seqs: n} }
	g.queues = map[string][]*waiter{"a": {w(1), w(2), w(3)}, "b": {w(4)}}
	for key, want := range map[string]int{"a": 1 + 2 + 3 + 4, "b": 1 + 2 + 4, "new": 1 + 4} {
		if got := g.ahead(key); got != want {
			t.Errorf("%d are ahead of %s, want %d", got, key, want)
		}
		near("the delay", g.delay(key).Seconds(), float64(want)*g.service/4)
	}
	g.waiting, g.maxWait = 9, 9
	for service, want := range map[float64]time.Duration{0.1: time.Second, 8: 5 * time.Second, 1e6: time.Minute} {
		g.service = service
		e, _ := g.full("new", w(1)).(*apiError)
		if e == nil || e.Retry != want || e.Status != 429 || !strings.Contains(e.Message, "9 requests wait already") {
			t.Errorf("%g s: %+v, want %v", service, e, want)
		}
	}
}

// Both sides of the numbers that fit an id.
func TestParseID(t *testing.T) {
	for text, want := range map[string]int32{"0": 0, "-0": 0, "7": 7, "-7": -7, "2147483647": math.MaxInt32,
		"-2147483648": math.MinInt32, "007": 7} {
		if got, ok := parseID([]byte(text)); !ok || got != want {
			t.Errorf("%s is %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "2147483648", "-2147483649", "99999999999", "18446744073709551621",
		"-18446744073709551621", "36893488147419103237", "1.0", "1e2", "+1", "null", "1 2", "--1", ":", "/"} {
		if got, ok := parseID([]byte(text)); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
	for text, want := range map[string]string{"[]": "[] true", " [ 1 , 2 ] ": "[1 2] true", "[1,]": "[] false",
		"[": "[] false", "1": "[] false", "[1 2]": "[] false", "{}": "[] false"} {
		ids, ok := parseIDs([]byte(text))
		if got := fmt.Sprint(ids, ok); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
