package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// server answers like an OpenAI-compatible one whose tokens are characters: each has log-probability −1, an 'x' −2
// where −1 is possible.
type server struct {
	mu      sync.Mutex
	noEcho  bool
	refuses int // status of every request with echo; 0: none
	longest int // characters of a prompt; 0: any number
	busy    int // refusals before the first answer
	bodies  []completionRequest
	headers []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var q completionRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	if s.busy > 0 {
		s.busy--
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	s.bodies, s.headers = append(s.bodies, q), append(s.headers, r.Header.Get("Authorization"))
	switch {
	case q.Echo && s.refuses != 0:
		http.Error(w, "echo is not supported", s.refuses)
	case s.longest > 0 && len(q.Prompt) > s.longest:
		http.Error(w, "the prompt is too long", http.StatusBadRequest)
	case q.Model != "small":
		http.Error(w, `{"error": "no such model"}`, http.StatusNotFound)
	case r.URL.Path == "/v1/chat/completions":
		w.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": "heard ` +
			q.Messages[0].Content + `"}}]}`))
	case !q.Echo || s.noEcho:
		w.Write([]byte(`{"choices": [{"text": " four\nfive"}]}`))
	default:
		w.Write(s.echo(q.Prompt))
	}
}

func (s *server) echo(prompt string) []byte {
	var tokens []string
	var lps []*float64
	var tops []map[string]float64
	var offsets []int
	for i, r := range []rune(prompt) {
		lp := -1.0
		if r == 'x' {
			lp = -2
		}
		tokens, offsets, tops, lps = append(tokens, string(r)), append(offsets, i),
			append(tops, map[string]float64{"t": -1}), append(lps, &lp)
	}
	lps[0], tops[0] = nil, nil
	b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"text": prompt,
		"logprobs": map[string]any{"tokens": tokens, "token_logprobs": lps, "top_logprobs": tops,
			"text_offset": offsets}}}})
	return b
}

func serve(t *testing.T, s *server) *Endpoint {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return &Endpoint{URL: srv.URL + "/v1/", Model: "small", Key: "secret"}
}

func TestEndpoint(t *testing.T) {
	s := &server{busy: 1}
	e := serve(t, s)
	ctx := context.Background()
	got, err := e.Loglikelihood(ctx, []Continuation{{"a é", " bc"}, {"ab", " xy"}, {"trailing ", "word"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Score{{-3, 3, true}, {-4, 3, false}, {-5, 5, true}} // the space before "word" counts with it
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	rolling, err := e.LoglikelihoodRolling(ctx, []string{"naïve"})
	if err != nil || rolling[0].Tokens != utf8.RuneCountInString("naïve")-1 || rolling[0].LogProb != -4 {
		t.Errorf("%+v, %v", rolling, err)
	}
	text, err := e.GenerateUntil(ctx, []Generation{{Prompt: "three", Until: []string{"\n"}, MaxTokens: 7}})
	if err != nil || text[0] != " four" {
		t.Errorf("%q, %v", text, err)
	}
	last := s.bodies[len(s.bodies)-1]
	if last.MaxTokens != 7 || last.Stop[0] != "\n" || last.Temperature != 0 || s.headers[0] != "Bearer secret" {
		t.Errorf("sent %+v with %q", last, s.headers[0])
	}
}

// A server without echo can generate, and says clearly that it cannot score.
func TestEndpointWithoutEcho(t *testing.T) {
	e := serve(t, &server{noEcho: true})
	if _, err := e.Loglikelihood(context.Background(), []Continuation{{"a", "b"}}); !errors.Is(err, errNoEcho) {
		t.Errorf("%v", err)
	}
	e.Chat = true
	if _, err := e.Loglikelihood(context.Background(), []Continuation{{"a", "b"}}); !errors.Is(err, errNoEcho) {
		t.Errorf("chat: %v", err)
	}
	text, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "you", MaxTokens: 3}})
	if err != nil || text[0] != "heard you" {
		t.Errorf("chat: %q, %v", text, err)
	}
}

// A server that refuses echo is one without likelihoods; one that refuses a single prompt, or everything, is wrong in
// another way.
func TestEndpointRefusesEcho(t *testing.T) {
	score := func(e *Endpoint) error {
		_, err := e.Loglikelihood(context.Background(), []Continuation{{"a long context", "b"}})
		return err
	}
	for _, status := range []int{400, 404, 422} {
		if err := score(serve(t, &server{refuses: status})); !errors.Is(err, ErrCannot) ||
			!strings.Contains(err.Error(), "echo is not supported") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := score(serve(t, &server{longest: 14})); err == nil || errors.Is(err, ErrCannot) ||
		!strings.Contains(err.Error(), "the prompt is too long") {
		t.Errorf("a prompt that is too long: %v", err)
	}
	e := serve(t, &server{refuses: 400})
	e.Model = "large"
	if err := score(e); err == nil || errors.Is(err, ErrCannot) {
		t.Errorf("a model that is not there: %v", err)
	}
}

// An answer without the text that was asked for is an error: it would be scored as a wrong answer.
func TestEndpointWithoutText(t *testing.T) {
	for reply, chat := range map[string]bool{`{"choices": [{"text": "x"}]}`: true,
		`{"choices": [{"message": {"content": "x"}}]}`: false, `{"choices": [{}]}`: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			w.Write([]byte(reply))
		}))
		e := &Endpoint{URL: s.URL, Model: "m", Chat: chat}
		if got, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "a", MaxTokens: 1}}); err == nil ||
			!strings.Contains(err.Error(), "its answer has no") {
			t.Errorf("%s: %q, %v", reply, got, err)
		}
		s.Close()
	}
}

func TestEndpointErrors(t *testing.T) {
	e := serve(t, &server{})
	e.Model = "large"
	if _, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "a"}, {Prompt: "b"}}); err == nil ||
		!strings.Contains(err.Error(), "404 Not Found: {\"error\": \"no such model\"}") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.GenerateUntil(ctx, []Generation{{Prompt: "a"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A server that refuses is asked once, one that is busy again; replies of another form are errors, and long ones are
// cut.
func TestEndpointReplies(t *testing.T) {
	for _, x := range []struct {
		status int
		body   string
		want   string
		calls  int
	}{
		{200, `{"choices": []}`, "its answer has no choices", 1},
		{200, `[1]`, "its answer is not a completion", 1},
		{403, "no " + strings.Repeat("x", 500), "403 Forbidden: no " + strings.Repeat("x", 297) + "…", 1},
		{418, "", "418", 1},
	} {
		calls := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(x.status)
			w.Write([]byte(x.body))
		}))
		_, err := (&Endpoint{URL: srv.URL, Model: "m"}).GenerateUntil(t.Context(),
			[]Generation{{Prompt: "a", MaxTokens: 1}})
		srv.Close()
		if err == nil || !strings.Contains(err.Error(), x.want) || calls != x.calls {
			t.Errorf("%d %.20s: %v after %d calls", x.status, x.body, err, calls)
		}
		if strings.Contains(fmt.Sprint(err), strings.Repeat("x", 298)) {
			t.Errorf("%d bytes of text in an error", len(err.Error()))
		}
	}
	for status, again := range map[int]bool{429: true, 500: true, 503: true, 499: false, 400: false, 404: false} {
		_, err := parseReply(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"3"}}}, nil)
		var b busy
		var no refusal
		if errors.As(err, &b) != again || errors.As(err, &no) == again || again && b.pause != 3*time.Second {
			t.Errorf("%d: %v", status, err)
		}
	}
	e := serve(t, &server{})
	if got, err := e.Loglikelihood(t.Context(), []Continuation{{"ab", ""}}); err == nil ||
		!strings.Contains(err.Error(), "no token of") {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	got, err := e.Losses(t.Context(), []string{"axa"})
	if err != nil || len(got[0]) != 2 || got[0][0].Loss != 2 || got[0][1].Loss != 1 || got[0][0].Position != 1 ||
		got[0][1].Position != 2 || got[0][0].ID == got[0][1].ID || got[0][0].ID < 0 {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := e.GenerateUntil(t.Context(),
		[]Generation{{Prompt: "p", MaxTokens: 3, Until: []string{"a", "b", "c", "d", "ou"}}})
	if err != nil || text[0] != " f" {
		t.Errorf("cut at a fifth stop: %q, %v", text, err)
	}
}

// What is sent: at most four stops, a user's message to chats and nothing as a prompt, no key without one, and echoes
// of the whole text without new tokens. Tokens that a server adds of its own do not count.
func TestEndpointRequests(t *testing.T) {
	s := &server{}
	e := serve(t, s)
	five := []string{"1", "2", "3", "4", "5"}
	if _, err := e.GenerateUntil(t.Context(), []Generation{{Prompt: "p", Until: five, MaxTokens: 3}}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Losses(t.Context(), []string{"ab"}); err != nil {
		t.Fatal(err)
	}
	e.Chat, e.Key = true, ""
	if _, err := e.GenerateUntil(t.Context(), []Generation{{Prompt: "q", Until: five[:1], MaxTokens: 9}}); err != nil {
		t.Fatal(err)
	}
	written, echoed, chat := s.bodies[0], s.bodies[1], s.bodies[2]
	if written.Prompt != "p" || len(written.Stop) != 4 || written.Stop[3] != "4" || written.Echo ||
		written.Logprobs != 0 || written.MaxTokens != 3 || written.Messages != nil {
		t.Errorf("%+v", written)
	}
	if echoed.Prompt != "ab" || !echoed.Echo || echoed.Logprobs != 1 || echoed.MaxTokens != 0 || echoed.Stop != nil {
		t.Errorf("%+v", echoed)
	}
	if chat.Prompt != "" || len(chat.Messages) != 1 || chat.Messages[0] != (message{"user", "q"}) ||
		chat.MaxTokens != 9 || chat.Stop[0] != "1" {
		t.Errorf("%+v", chat)
	}
	if s.headers[0] != "Bearer secret" || s.headers[2] != "" {
		t.Errorf("keys %q", s.headers)
	}
	more := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(
			`{"choices": [{"text": "abc!", "logprobs": {"tokens": ["a", "b", "c", "!"], "token_logprobs": [null, -1, -2, -50], "text_offset": [0, 1, 2, 3],
			"top_logprobs": [null, {"b": -1}, {"x": -1.5, "c": -2}, {}]}}]}`))
	}))
	defer more.Close()
	got, err := (&Endpoint{URL: more.URL, Model: "m"}).Loglikelihood(t.Context(), []Continuation{{"a", "bc"}})
	if want := (Score{LogProb: -3, Tokens: 2, Greedy: false}); err != nil || got[0] != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// An echo of another text, or without the text, or with lists of different lengths, is none; likely tokens may be left
// out, and all tokens count as the likeliest then.
func TestEndpointEchoes(t *testing.T) {
	const lists = `"tokens": ["a", "b", "c"], "token_logprobs": [null, -1, -2], "text_offset": [0, 1, 2]`
	const abc = `"text": "abc", "logprobs": `
	for reply, can := range map[string]bool{
		`"text": "abc", "logprobs": {` + lists + `}`: true, `"text": "abc", "logprobs": {` + lists +
			`, "top_logprobs": [null, {"b": -1}]}`: true,
		`"text": "xbc", "logprobs": {` + lists + `}`: false, `"logprobs": {` + lists + `}`: false,
		`"text": null, "logprobs": {` + lists + `}`: false,
		`"text": "abc"`: false, `"text": "abc", "logprobs": {}`: false,
		abc + `{"tokens":["a","b"],"token_logprobs":[null,-1,-2],"text_offset":[0,1,2]}`:      false,
		abc + `{"tokens":["a","b","c"],"token_logprobs":[null,-1,-2],"text_offset":[0,1]}`:    false,
		abc + `{"tokens":["a","b","c"],"token_logprobs":[null,-1],"text_offset":[0,1,2]}`:     false,
		abc + `{"tokens":["a","b","c"],"token_logprobs":[null,-1,-2,-3],"text_offset":[0,1]}`: false,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			w.Write([]byte(`{"choices": [{` + reply + `}]}`))
		}))
		got, err := (&Endpoint{URL: srv.URL, Model: "m"}).Loglikelihood(t.Context(), []Continuation{{"a", "bc"}})
		srv.Close()
		if can && (err != nil || got[0] != Score{-3, 2, true}) || !can && !errors.Is(err, ErrCannot) {
			t.Errorf("%s: %+v, %v", reply, got, err)
		}
	}
}

// The first error ends the requests, and what was not begun is not asked.
func TestEndpointStopsAtAnError(t *testing.T) {
	const bad = 5
	for _, parallel := range []int{1, 3} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var calls atomic.Int32
		wrong := errors.New("wrong")
		err := (&Endpoint{Parallel: parallel}).each(ctx, 1000, func(ctx context.Context, i int) error {
			calls.Add(1)
			if i == bad {
				return wrong
			}
			if i > bad {
				<-ctx.Done() // as a request would until the error ends it
			}
			return nil
		})
		// The calls up to the error, those under way beside it, and one that was already being handed out.
		if n, most := int(calls.Load()), bad+1+parallel; !errors.Is(err, wrong) || n > most {
			t.Errorf("%d at a time: %v after %d calls, at most %d expected", parallel, err, n, most)
		}
	}
}
