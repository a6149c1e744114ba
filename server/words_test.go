package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/tokenizer/chat"
)

// errorOf sends a request with names and values of headers to the handler itself, and reads the error.
func (r *rig) errorOf(method, path, body string, header []string) (status int, kind, code, message string) {
	r.t.Helper()
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		if q.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			q.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, q)
	var e struct {
		Error struct {
			Message, Type string
			Code          *string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		r.t.Errorf("%s %s: %d %s: %v", method, path, w.Code, w.Body, err)
	}
	if e.Error.Code != nil {
		code = *e.Error.Code
	}
	return w.Code, e.Error.Type, code, e.Error.Message
}

// Who is refused, and in which words: status, type, code and message of what stops a request before its fields are
// read.
func TestRefusalWords(t *testing.T) {
	r := newBare(t, setup{Config: Config{Keys: keys(t, "sk-right-one"), Hosts: []string{"example.com"},
		Limits: Limits{Body: 100}}})
	const right = "Bearer sk-right-one"
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		kind, code, says         string
	}{
		{"no key", "GET", "/v1/models", "", nil, 401, typeAuth, "invalid_api_key",
			`no API key was given; send the header "Authorization: Bearer KEY"`},
		{"unknown key", "GET", "/v1/models", "", []string{"Authorization", "Bearer sk-wrong-one"}, 401, typeAuth,
			"invalid_api_key", "the API key is not known here"},
		{"another host", "GET", "/v1/models", "", []string{"Host", "evil.example"}, 403, typePermission,
			"host_not_allowed", "the Host header names another server; --allow-host permits it"},
		{"another origin", "GET", "/v1/models", "", []string{"Origin", "http://evil.example"}, 403, typePermission,
			"origin_not_allowed", "pages of other origins may not call this server; --allow-origin permits one"},
		{"compressed", "POST", "/tokenize", "{}", []string{"Content-Encoding", "gzip"}, 415, typeInvalid, "",
			"compressed request bodies are not read"},
		{"another kind", "POST", "/tokenize", "{}", []string{"Authorization", right, "Content-Type", "text/xml"}, 415,
			typeInvalid, "", `the header Content-Type is "text/xml", must be application/json`},
		{"too large", "POST", "/tokenize", `{"prompt":"` + strings.Repeat("x", 100) + `"}`,
			[]string{"Authorization", right}, 413, typeInvalid, "request_too_large",
			"the body is larger than the server reads"},
		{"null", "POST", "/tokenize", "null", []string{"Authorization", right}, 400, typeInvalid, "",
			"the body is null, must be a JSON object"},
		{"two values", "POST", "/tokenize", "{} {}", []string{"Authorization", right}, 400, typeInvalid, "",
			"the body has more than one JSON value"},
		{"a list", "POST", "/tokenize", "[]", []string{"Authorization", right}, 400, typeInvalid, "",
			"the body is not a JSON object: it is of another kind (array)"},
		{"cut off", "POST", "/tokenize", "{", []string{"Authorization", right}, 400, typeInvalid, "",
			"the body is not a JSON object: unexpected EOF"},
		{"a name twice", "POST", "/tokenize", `{"a":1,"a":2}`, []string{"Authorization", right}, 400, typeInvalid, "",
			"a: is there twice; say it once"},
		{"no route", "GET", "/nothing", "", []string{"Authorization", right}, 404, typeInvalid, "unknown_url",
			"there is no such route; GET /openapi.json lists them"},
		{"another method", "PUT", "/tokenize", "", []string{"Authorization", right}, 405, typeInvalid, "",
			"the method is not allowed here; use POST"},
		{"no model", "GET", "/v1/models/x", "", []string{"Authorization", right}, 404, typeInvalid, "model_not_found",
			"there is no such model; GET /v1/models lists them"},
	} {
		status, kind, code, message := r.errorOf(c.method, c.path, c.body, c.header)
		if status != c.status || kind != c.kind || code != c.code || message != c.says {
			t.Errorf("%s: %d, %s, %q, %s; want %d, %s, %q, %s", c.name, status, kind, code, message, c.status, c.kind,
				c.code, c.says)
		}
	}
}

// What the decoder says is cut after 200 bytes.
func TestProblemsAreCut(t *testing.T) {
	long := jsonProblem(errors.New("json: " + strings.Repeat("é", 101)))
	if long != strings.Repeat("é", 100)+"…" ||
		jsonProblem(errors.New("json: "+strings.Repeat("x", 200))) != strings.Repeat("x", 200) {
		t.Errorf("%q", long)
	}
}

// Where the buckets of each time begin and end, in seconds: a tenth of a millisecond for waits and tokens, a
// millisecond for answers, each with seventeen doublings.
func TestBuckets(t *testing.T) {
	r := newRig(t, setup{})
	w := r.metrics.watch(r.model, 1)
	w.admitted()
	for range 2 {
		w.event(0, infer.Event{ID: 1})
	}
	w.finished([]*choice{{reason: "stop"}}, nil)
	_, _, b := r.do("GET", "/metrics", nil)
	for name, from := range map[string]float64{
		"request_queue_time": 1e-4, "time_to_first_token": 1e-3, "inter_token_latency": 1e-4,
		"request_time_per_output_token": 1e-4, "e2e_request_latency": 1e-3,
	} {
		all := regexp.MustCompile(`(?m)^`+namespace+"_"+name+
			`_seconds_bucket\{model_name="tiny",le="([^"]+)"\}`).FindAllSubmatch(b, -1)
		if len(all) != 19 || string(all[0][1]) != fmt.Sprint(from) || string(all[17][1]) != fmt.Sprint(from*(1<<17)) ||
			string(all[18][1]) != "+Inf" {
			t.Errorf("%s: %q", name, all)
		}
	}
}

// A listener that fails takes no room, a connection gives its room back once however often it is closed, and who waits
// for room leaves when the listener closes.
func TestRoomComesBack(t *testing.T) {
	few := &net.OpError{Op: "accept", Err: syscall.EMFILE}
	p := newPipes(few, few)
	l := newBounded(p, 1, new(atomic.Bool))
	for range 2 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) || len(l.room) != 0 {
			t.Fatalf("%v, %d connections count", err, len(l.room))
		}
	}
	go func() { p.dial() }()
	c, err := l.Accept()
	if err != nil || len(l.room) != 1 || len(l.open) != 1 {
		t.Fatalf("%v, %d connections count", err, len(l.room))
	}
	waiting := make(chan error, 1)
	go func() { waiting <- l.enter() }()
	until(t, "one to wait for room", l.crowded.Load)
	_ = l.Close()
	_ = l.Close()
	if err := <-waiting; !errors.Is(err, net.ErrClosed) || l.crowded.Load() {
		t.Errorf("%v, crowded %v", err, l.crowded.Load())
	}
	for range 2 {
		_ = c.Close()
	}
	if len(l.room) != 0 || len(l.open) != 0 {
		t.Errorf("%d connections count, %d are open", len(l.room), len(l.open))
	}
	// The state of a connection, as net/http tells it.
	b := c.(*boundedConn)
	for state, want := range map[http.ConnState]phase{http.StateIdle: idles, http.StateActive: arrives,
		http.StateNew: serves, http.StateClosed: serves} {
		b.phase, b.since = serves, time.Time{}
		l.turn(b, state)
		if moved := !b.since.IsZero(); b.phase != want || moved != (want != serves) {
			t.Errorf("%v: phase %d, moved %v", state, b.phase, moved)
		}
	}
	if got := l.keep(t.Context(), c).Value(keyConn); got != c {
		t.Errorf("a request finds the connection %v", got)
	}
}

// Arguments of an earlier call come to the template as an object; what is not one stays as it was sent.
func TestArgumentsOfCalls(t *testing.T) {
	tpl, err := chat.Parse("{% for c in messages[0].tool_calls %}[{{ c.function.name }}:{{ c.function.arguments "+
		"}}:{{ c.function.arguments.x }}:{{ c.id }}]{% endfor %}", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := formOf(t,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"i","function":{"name":"f","arguments":"{\"x\":\"7\"}"}},
		{"function":{"name":"g","arguments":"plain"}},{"function":{"name":"h","arguments":{"x":"8"}}}]}],"parallel_tool_calls":true}`,
		infer.Sampling{})
	o.model.Template = tpl
	talk := o.conversation()
	if err := o.finish(); err != nil {
		t.Fatal(err)
	}
	text, err := tpl.Render(talk.Conversation)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{":7:i]", "[g:plain::]", ":8:]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
}
