package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// lengthsOf parses lengths that are right.
func lengthsOf(t *testing.T, s string) Lengths {
	t.Helper()
	l, err := ParseLengths(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What a load sends: a greedy, streamed completion of random ids, with the model, the key and the length asked for.
func TestServeRequests(t *testing.T) {
	type request struct {
		path, key, kind string
		body            map[string]any
	}
	var mu sync.Mutex
	var seen []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := request{path: r.Method + " " + r.URL.Path, key: r.Header.Get("Authorization"),
			kind: r.Header.Get("Content-Type")}
		if err := json.NewDecoder(r.Body).Decode(&q.body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen = append(seen, q)
		mu.Unlock()
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer s.Close()
	o := ServeOptions{URL: s.URL + "/", Requests: 3, Prompt: lengthsOf(t, "40"), Output: lengthsOf(t, "5..6"), Vocab: 7,
		Deadline: time.Minute, Seed: 3}
	send := func() []request {
		seen = nil
		if r, err := Serve(context.Background(), o); err != nil || r.Answered != 3 || r.Tokens != 0 {
			t.Fatalf("%+v (%v)", r, err)
		}
		return seen
	}
	for _, q := range send() {
		ids := q.body["prompt"].([]any)
		most := q.body["max_tokens"].(float64)
		used := map[any]bool{}
		for _, id := range ids {
			if used[id] = true; id.(float64) < 0 || id.(float64) > 6 {
				t.Errorf("id %v", id)
			}
		}
		if len(ids) != 40 || len(used) < 4 || most < 5 || most > 6 {
			t.Errorf("%d ids, %d different, %g tokens", len(ids), len(used), most)
		}
		delete(q.body, "prompt")
		delete(q.body, "max_tokens")
		want := map[string]any{"temperature": 0.0, "stream": true,
			"stream_options": map[string]any{"include_usage": true}}
		if q.path != "POST /v1/completions" || q.key != "" || q.kind != "application/json" ||
			!reflect.DeepEqual(q.body, want) {
			t.Errorf("%+v", q)
		}
	}
	o.Model, o.Key, o.IgnoreEOS = "m", "k", true
	for _, q := range send() {
		if q.key != "Bearer k" || q.body["model"] != "m" || q.body["ignore_eos"] != true {
			t.Errorf("%+v", q)
		}
	}
}

// What is out of range is refused with the flag's name, on both sides of each bound.
func TestServeChecks(t *testing.T) {
	good := ServeOptions{Requests: 1, Prompt: lengthsOf(t, "1"), Output: lengthsOf(t, "1"), Vocab: 1, Deadline: 1}
	for _, x := range []struct {
		change func(*ServeOptions)
		want   string
	}{
		{func(*ServeOptions) {}, ""}, {func(o *ServeOptions) { o.Requests = 0 }, "requests"},
		{func(o *ServeOptions) { o.Requests = 1e6 }, ""},
		{func(o *ServeOptions) { o.Requests = 1e6 + 1 }, "requests"},
		{func(o *ServeOptions) { o.Rate = -1 }, "rate"}, {func(o *ServeOptions) { o.Rate = 1e5 }, ""},
		{func(o *ServeOptions) { o.Rate = 2e5 }, "rate"},
		{func(o *ServeOptions) { o.Concurrency = -1 }, "concurrency"},
		{func(o *ServeOptions) { o.Concurrency = 1e4 }, ""},
		{func(o *ServeOptions) { o.Concurrency = 1e4 + 1 }, "concurrency"},
		{func(o *ServeOptions) { o.Vocab = 0 }, "vocab"}, {func(o *ServeOptions) { o.Deadline = 0 }, "deadline"},
		{func(o *ServeOptions) { o.Prompt = Lengths{} }, "prompt: no lengths"},
		{func(o *ServeOptions) { o.Output = Lengths{} }, "output: no lengths"},
	} {
		o := good
		x.change(&o)
		if err := o.Check(); (err == nil) != (x.want == "") || err != nil && !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", o, err, x.want)
		}
		if x.want == "" {
			continue
		}
		if _, err := Serve(context.Background(), o); err == nil {
			t.Errorf("%q was sent", x.want)
		}
	}
	g := rand.New(rand.NewPCG(1, 1))
	l, seen := lengthsOf(t, "3..5"), map[int]bool{}
	for i := range 100 {
		seen[l.draw(g, i)] = true
	}
	if !reflect.DeepEqual(seen, map[int]bool{3: true, 4: true, 5: true}) {
		t.Errorf("3..5 gives %v", seen)
	}
	for text, want := range map[string]string{"": "has no lengths",
		"5 x": `entry 2 is "x", must be a positive whole number`, "5 0": "must be a positive whole number"} {
		path := filepath.Join(t.TempDir(), "lengths")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseLengths("@" + path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Streams that break, err or hold no JSON are failures with their reason, and a stopped load sends no more.
func TestServeFailures(t *testing.T) {
	for text, want := range map[string]string{"data: {\"error\":{\"message\":\"too hot\"}}\n\n": "too hot",
		"data: {\n\n": "unexpected end of JSON", "": "unexpected EOF", ": ping\n\nevent: x\n\n": "unexpected EOF"} {
		var s shot
		if err := s.read(strings.NewReader(text), time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var s shot
	err := s.read(strings.NewReader("data: {\"choices\":[{\"text\":\"a\"}]}\ndata: {\"choices\":[{\"text\":\"\"}]}\n"+
		"data: {\"choices\":[{\"text\":\"b\"}],\"usage\":{\"completion_tokens\":1}}\ndata: [DONE]\n"),
		time.Now().Add(-time.Second))
	if err != nil || s.tokens != 2 || len(s.gaps) != 1 || s.first < time.Second {
		t.Errorf("two texts of one token as counted: %+v (%v)", s, err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			stop(enough)
		}
		http.Error(w, strings.Repeat("x", 500), http.StatusInternalServerError)
	}))
	defer server.Close()
	o := ServeOptions{URL: server.URL, Concurrency: 1, Requests: 50, Prompt: lengthsOf(t, "1"),
		Output: lengthsOf(t, "1"), Vocab: 5, Deadline: time.Minute}
	if _, err := Serve(ctx, o); !errors.Is(err, enough) || n > 3 {
		t.Errorf("%d requests were sent: %v", n, err)
	}
	o.Requests = 1
	r, err := Serve(context.Background(), o)
	if err != nil || r.Failed != 1 {
		t.Fatalf("%+v (%v)", r, err)
	}
	for text := range r.Errors {
		if !strings.HasPrefix(text, "500 Internal Server Error: xxx") || len(text) > 100 {
			t.Errorf("the error is %q", text)
		}
	}
}

// A result for display, by hand: times in milliseconds, errors in order.
func TestPrintedResult(t *testing.T) {
	r := &ServeResult{Requests: 9, Rate: 2.5, Seconds: 4, Answered: 5, Rejected: 1, Failed: 3,
		Errors: map[string]int{"zz": 1, "aa": 2}, TTFT: Spread{0.001, 0.002, 0.003},
		TPOT: Spread{0.004, 0.005, 0.006}, ITL: Spread{0.007, 0.008, 0.009}, E2E: Spread{1, 2, 3},
		Reject: Spread{4, 5, 6}, RPS: 1.25, Tokens: 50, Goodput: 0.75, Deadline: 30}
	want := []string{"9 requests at 2.5/s in 4.0 s: 5 answered, 1 refused (429), 3 failed", "2 × aa", "1 × zz",
		"MS MEAN P50 P99", "time to first token 1.00 2.00 3.00", "time per output token 4.00 5.00 6.00",
		"between tokens 7.00 8.00 9.00", "whole answer 1000.00 2000.00 3000.00", "refusal 4000.00 5000.00 6000.00",
		"1.25 answers/s, 50 output tokens/s, goodput 0.75/s within 30 s", ""}
	for range 8 { // whatever the order of a map
		var b bytes.Buffer
		if err := r.Print(&b); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(b.String(), "\n") {
			if got := strings.Join(strings.Fields(line), " "); got != want[i] {
				t.Fatalf("%q, want %q", got, want[i])
			}
		}
	}
	r.Errors = nil
	for want, change := range map[string]func(){
		"9 requests, 3 at a time, in 4.0 s: 5 answered, 1 refused (429), 3 failed": func() { r.Open, r.Rate = 3, 0 },
		"9 requests at once in 4.0 s: 5 answered, 1 refused (429), 3 failed":       func() { r.Open, r.Rate = 0, 0 },
	} {
		var b bytes.Buffer
		if change(); r.Print(&b) != nil || !strings.HasPrefix(b.String(), want+"\n") {
			t.Errorf("%s\nwant %s", b.String(), want)
		}
	}
	var b bytes.Buffer
	none := &ServeResult{Requests: 2, Rate: 1, Seconds: 4, Failed: 2, Errors: map[string]int{"aa": 2}}
	if err := none.Print(&b); err != nil ||
		b.String() != "2 requests at 1.0/s in 4.0 s: 0 answered, 0 refused (429), 2 failed\n  2 × aa\n" {
		t.Errorf("nothing was measured: %q, %v", b.String(), err)
	}
	b.Reset()
	rows := []ServedRow{{Batch: 1, Engine: 100, Streamed: 98, Ratio: [3]float64{0.97, 0.98, 0.99},
		Whole: [3]float64{0.94, 0.95, 0.96}, CPU: [3]float64{1, 1.1, 1.2}, FirstByte: 0.012,
		First: [3]float64{1.1, 1.2, 1.3}, Prefill: 0.008, Step: 0.01},
		{Batch: 2, Engine: 200, Streamed: 190, First: [3]float64{9, 9, 9}}}
	if err := PrintServed(&b, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if got := strings.Join(strings.Fields(lines[1]),
		" "); got != "1 100 98 0.980 0.970 … 0.990 1.100 0.950 0.940 … 0.960 12.00 8.00 + 10.00 1.20" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(strings.Fields(lines[2]),
		" "); got != "2 200 190 0.000 0.000 … 0.000 0.000 0.000 0.000 … 0.000" {
		t.Errorf("%q", got)
	}
}

// nanoEngine serves a small random model.
func nanoEngine(t *testing.T, slots int) *infer.Engine {
	t.Helper()
	c := open(t)
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(c.Device, r.Model, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	drawParams(c.Device, m.Params)
	e, err := infer.New(m, nil, infer.Options{Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// fourTokens is a server that answers prompts of three tokens with four, and counts what it is asked for.
type fourTokens struct {
	t                     *testing.T
	mu                    sync.Mutex
	streams, wholes, live int
	wrong                 int // 1: the usage has another number of tokens; 2: also, the stream breaks off
}

func (f *fourTokens) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.URL.Path == "/livez" {
		f.live++
		return
	}
	var body struct {
		Prompt        []int32
		Max           int     `json:"max_tokens"`
		EOS           bool    `json:"ignore_eos"`
		Temperature   float64 `json:"temperature"`
		Stream        bool
		StreamOptions *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil || q.URL.Path != "/v1/completions" ||
		len(body.Prompt) != 3 || body.Max != 4 || !body.EOS ||
		body.Temperature != 0 || body.Stream != (body.StreamOptions != nil && body.StreamOptions.Usage) {
		f.t.Errorf("%s %+v (%v)", q.URL.Path, body, err)
	}
	for _, id := range body.Prompt {
		if id != 5 && id != 9 {
			f.t.Errorf("id %d", id)
		}
	}
	if !body.Stream {
		f.wholes++
		fmt.Fprint(w, `{}`)
		return
	}
	f.streams++
	for range 4 {
		time.Sleep(100 * time.Microsecond)
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w,
		"data: {\"choices\":[{\"finish_reason\":\"length\"}]}\n\ndata: {\"usage\":{\"completion_tokens\":%d}}\n\n",
		4+f.wrong)
	if f.wrong < 2 {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// The engine is compared with the server around it: the same number of tokens of each prompt in turns, on connections
// that were used before; a server that breaks off, or writes another number of tokens, is an error.
func TestServed(t *testing.T) {
	e := nanoEngine(t, 2)
	f := &fourTokens{t: t}
	server := httptest.NewServer(f)
	defer server.Close()
	o := ServedOptions{Engine: e, IDs: []int32{5, 9}, URL: server.URL, Batch: []int{1, 2}, Prompt: 3, Output: 4,
		Rounds: 2, Say: func(string, ...any) {}}
	rows, err := Served(context.Background(), o)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v (%v)", rows, err)
	}
	if f.streams != 3*(1+2) || f.wholes != f.streams || f.live != 2*f.streams { // two rounds and one to warm up
		t.Errorf("%d streams, %d whole answers, %d warm connections", f.streams, f.wholes, f.live)
	}
	for i, r := range rows {
		if r.Batch != i+1 || r.Engine <= 0 || r.Streamed <= 0 || r.Step <= 0 || r.Ratio[0] > r.Ratio[1] ||
			r.Ratio[1] > r.Ratio[2] || (r.FirstByte > 0) != (r.Batch == 1) || (r.Prefill > 0) != (r.Batch == 1) {
			t.Errorf("%+v", r)
		}
	}
	p, err := o.served(context.Background(), [][]int32{{5, 5, 5}, {9, 9, 9}}, true)
	// Tokens and times, without the reason and the usage.
	if err != nil || len(p.at) != 2 || len(p.at[0]) != 4 || len(p.at[1]) != 4 || p.tokens != 8 || p.whole < p.at[0][3] {
		t.Errorf("%+v (%v)", p, err)
	}
	for f.wrong = 1; f.wrong < 3; f.wrong++ {
		if _, err := Served(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), "batch 1: ") {
			t.Errorf("%d: %v", f.wrong, err)
		} else if f.wrong == 2 && !errors.Is(err, io.ErrUnexpectedEOF) || f.wrong == 1 &&
			!strings.Contains(err.Error(), "not 4 tokens") {
			t.Errorf("%d: %v", f.wrong, err)
		}
	}
}
