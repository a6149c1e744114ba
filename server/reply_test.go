package server

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/tokenizer"
)

// forced is a body whose answers are known: the bias makes every token an A.
func forced(more fieldsOf) fieldsOf {
	body := fieldsOf{"max_tokens": 2, "temperature": 0, "logit_bias": fieldsOf{"65": 100}}
	maps.Copy(body, more)
	return body
}

var (
	replyID      = regexp.MustCompile(`"id":"((?:cmpl|chatcmpl|call)[-_][0-9a-f]{24})"`)
	replyCreated = regexp.MustCompile(`"created":(\d+)`)
)

// plainReply replaces what differs from call to call: the id, which all events of a stream share, and the time.
func plainReply(t *testing.T, text string) (plain, id string) {
	t.Helper()
	if m := replyID.FindStringSubmatch(text); m != nil {
		id = m[1]
	}
	for _, m := range replyCreated.FindAllStringSubmatch(text, -1) {
		at, err := strconv.ParseInt(m[1], 10, 64)
		if age := time.Now().Unix() - at; err != nil || age < 0 || age > 600 {
			t.Errorf("created %s, %d s ago", m[1], age)
		}
	}
	kind, _, _ := strings.Cut(id, "-")
	plain = replyID.ReplaceAllString(text, `"id":"`+kind+`"`)
	return replyCreated.ReplaceAllString(plain, `"created":0`), id
}

// Whole answers, byte for byte: every field that a client reads has its name, its place and its value, with one choice
// and with several, and null where there is nothing.
func TestWholeReplies(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}"})
	r.model.Print = "fp_x"
	say := []fieldsOf{{"role": "user", "content": "abc"}}
	const (
		completion = `{"id":"cmpl","object":"text_completion","created":0,"model":"tiny","system_fingerprint":"fp_x","choices":[`
		chat       = `{"id":"chatcmpl","object":"chat.completion","created":0,"model":"tiny","system_fingerprint":"fp_x","choices":[`
	)
	usage := func(prompt, made string, total string) string {
		return `],"usage":{"prompt_tokens":` + prompt + `,"completion_tokens":` + made + `,"total_tokens":` + total +
			`,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n"
	}
	message := `"message":{"role":"assistant","content":"AA","refusal":null},"logprobs":null,"finish_reason":`
	for _, c := range []struct {
		path string
		body fieldsOf
		want string
	}{
		{"/v1/completions", fieldsOf{"prompt": "ab"},
			completion + `{"index":0,"text":"AA","logprobs":null,"finish_reason":"length"}` + usage("2", "2", "4")},
		{"/v1/completions", fieldsOf{"prompt": "ab", "stop_token_ids": []int{65}, "max_tokens": 9},
			completion + `{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}` + usage("2", "1", "3")},
		{"/v1/completions", fieldsOf{"prompt": []string{"ab", "abcd"}, "n": 2, "echo": true, "max_tokens": 1},
			completion + `{"index":0,"text":"abA","logprobs":null,"finish_reason":"length"},` +
				`{"index":1,"text":"abA","logprobs":null,"finish_reason":"length"},` +
				`{"index":2,"text":"abcdA","logprobs":null,"finish_reason":"length"},` +
				`{"index":3,"text":"abcdA","logprobs":null,"finish_reason":"length"}` + usage("6", "4", "10")},
		{"/v1/chat/completions", fieldsOf{"messages": say},
			chat + `{"index":0,` + message + `"length"}` + usage("3", "2", "5")},
		{"/v1/chat/completions", fieldsOf{"messages": say, "n": 2, "stop": "AAA", "max_tokens": 2},
			chat + `{"index":0,` + message + `"length"},{"index":1,` + message + `"length"}` + usage("3", "4", "7")},
	} {
		status, _, b := r.do("POST", c.path, forced(c.body))
		if got, _ := plainReply(t, string(b)); status != 200 || got != c.want {
			t.Errorf("%s %v: %d\n got %s\nwant %s", c.path, c.body, status, got, c.want)
		}
	}
}

// Streams, event for event: each choice begins, continues and ends under its own index, usage comes last and only if it
// was asked for, and all events carry one id.
func TestWholeStreams(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}"})
	const (
		completion = `{"id":"cmpl","object":"text_completion","created":0,"model":"tiny","choices":[`
		chat       = `{"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"tiny","choices":[`
		total      = `],"usage":{"prompt_tokens":2,"completion_tokens":4,"total_tokens":6,"prompt_tokens_details":{"cached_tokens":0}}}`
	)
	piece := func(i string) string {
		return completion + `{"index":` + i + `,"text":"A","logprobs":null,"finish_reason":null}]}`
	}
	end := func(i string) string {
		return completion + `{"index":` + i + `,"text":"","logprobs":null,"finish_reason":"length"}]}`
	}
	delta := func(i, what, reason string) string {
		return chat + `{"index":` + i + `,"delta":` + what + `,"logprobs":null,"finish_reason":` + reason + `}]}`
	}
	begin, more := `{"role":"assistant","content":""}`, `{"content":"A"}`
	chats := []string{
		delta("0", begin, "null"), delta("0", more, "null"), delta("1", begin, "null"), delta("1", more, "null"),
		delta("0", more, "null"), delta("0", "{}", `"length"`), delta("1", more, "null"), delta("1", "{}", `"length"`),
	}
	texts := []string{piece("0"), piece("1"), piece("0"), end("0"), piece("1"), end("1")}
	say := []fieldsOf{{"role": "user", "content": "ab"}}
	for _, c := range []struct {
		path string
		body fieldsOf
		last string // before the end
		want []string
	}{
		{"/v1/completions", fieldsOf{"prompt": "ab"}, completion, texts},
		{"/v1/chat/completions", fieldsOf{"messages": say}, chat, chats},
	} {
		for _, usage := range []bool{false, true} {
			c.body["n"], c.body["stream_options"] = 2, fieldsOf{"include_usage": usage}
			want := slices.Clone(c.want)
			if usage {
				want = append(want, c.last+total)
			}
			var got []string
			ids := map[string]bool{}
			for _, event := range r.events(c.path, forced(c.body)) {
				plain, id := plainReply(t, event)
				if got = append(got, plain); event != "[DONE]" {
					ids[id] = true
				}
			}
			if want = append(want, "[DONE]"); !slices.Equal(got, want) || len(ids) != 1 {
				t.Errorf("%s, usage %v, %d ids\n got %s\nwant %s", c.path, usage, len(ids), strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
	}
}

// Of top tokens with one spelling the more likely one counts, whichever token was chosen; a token that is not among the
// top ones has its own entry.
func TestLogprobsOfOneSpelling(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"model":{"vocab":{"a":0,"c":1,"d":2},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := &call{model: &Model{Tokenizer: tok}, logprobs: true, top: 3}
	// Several ids may have one spelling; one id twice stands for two of them.
	top := []infer.TokenLogprob{{ID: 0, Logprob: -1}, {ID: 0, Logprob: -2}, {ID: 1, Logprob: -3}, {ID: 2, Logprob: -4}}
	l := c.completionLogprobs([]tokenInfo{{id: 0, logprob: -2, top: top}, {id: 2, logprob: -4, top: top}})
	for i, want := range []map[string]float64{{"a": -1, "c": -3}, {"a": -1, "c": -3, "d": -4}} {
		if !maps.Equal(l.Top[i], want) {
			t.Errorf("token %d: %v, want %v", i, l.Top[i], want)
		}
	}
}

// Log-probabilities in both forms, against the model's loss: the token, its bytes, where its text begins, and as many
// alternatives as were asked for, the best first.
func TestLogprobForms(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}"})
	want := r.nll([]int32{'a', 'b', 'A', 'A', 'A'}) // of b, A, A and A
	near := func(what string, got, loss float64) {
		t.Helper()
		if !(math.Abs(got+loss) <= 1e-4) {
			t.Errorf("%s has %g, its loss is %g", what, got, loss)
		}
	}
	for _, top := range []int{0, 2} {
		var c completionReply
		r.post("/v1/completions", forced(fieldsOf{"prompt": "ab", "max_tokens": 3, "logprobs": top, "echo": true}), &c)
		l := c.Choices[0].Logprobs
		if !slices.Equal(l.Tokens, []string{"a", "b", "A", "A", "A"}) ||
			!slices.Equal(l.Offset, []int{0, 1, 2, 3, 4}) ||
			l.Logprob[0] != nil || l.Top[0] == nil || len(l.Top[0]) != 0 || len(l.Top) != 5 {
			t.Fatalf("%+v", l)
		}
		for i, loss := range want {
			near("token "+l.Tokens[i+1], *l.Logprob[i+1], loss)
			own, there := l.Top[i+1][l.Tokens[i+1]]
			if near("its own entry", own, loss); !there || len(l.Top[i+1]) < top || len(l.Top[i+1]) > top+1 {
				t.Errorf("token %d of %d alternatives: %v", i+1, top, l.Top[i+1])
			}
		}
		var h chatReply
		body := forced(fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "ab"}}, "max_tokens": 3,
			"logprobs": true})
		body["top_logprobs"] = top
		r.post("/v1/chat/completions", body, &h)
		list := h.Choices[0].Logprobs.Content
		if len(list) != 3 {
			t.Fatalf("%d tokens", len(list))
		}
		for i, x := range list {
			near("a token of a chat", x.Logprob, want[i+1])
			if x.Token != "A" || !slices.Equal(x.Bytes, []int{65}) || x.Top == nil || len(x.Top) != top {
				t.Errorf("%+v, want %d alternatives", x, top)
			}
			for k, alt := range x.Top {
				if k > 0 && alt.Logprob > x.Top[k-1].Logprob || alt.Logprob < x.Logprob {
					t.Errorf("alternative %d of %+v is out of order", k, x)
				}
				if len(alt.Bytes) == 1 { // a byte, whose id is its value
					prefix := append([]int32{'a', 'b'}, slices.Repeat([]int32{'A'}, i)...)
					near("alternative "+alt.Token, alt.Logprob, r.nll(append(prefix, int32(alt.Bytes[0])))[i+1])
				}
			}
		}
	}
	b, err := json.Marshal((&call{model: r.model, logprobs: true}).chatLogprobs(nil))
	if err != nil || string(b) != `{"content":[]}` {
		t.Errorf("no tokens: %s, %v", b, err)
	}
}

// The small routes, byte for byte.
func TestSmallReplies(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}", Config: Config{Version: "v1", Commit: "c1"}})
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/tokenize", `{"prompt":"aé"}`, `{"count":3,"max_model_len":128,"tokens":[97,195,169]}`},
		{"POST", "/tokenize", `{"prompt":"a","return_token_strs":true}`,
			`{"count":1,"max_model_len":128,"token_strs":["a"],"tokens":[97]}`},
		{"POST", "/tokenize", `{"prompt":"a","with_pieces":false}`, `{"count":1,"max_model_len":128,"tokens":[97]}`},
		{"POST", "/tokenize", `{"messages":[{"role":"user","content":"<|endoftext|>b"}],"with_pieces":true}`,
			`{"count":2,"max_model_len":128,"token_strs":["\u003c|endoftext|\u003e","b"],"tokens":[256,98]}`},
		{"POST", "/detokenize", `{"tokens":[97,256]}`,
			`{"content":"a\u003c|endoftext|\u003e","prompt":"a\u003c|endoftext|\u003e"}`},
		{"POST", "/detokenize", `{"tokens":[]}`, `{"content":"","prompt":""}`},
		{"GET", "/tokenizer_info", "", `{"bos_token":null,"chat_template":"{{ messages[0].content }}",` +
			`"eos_token":"\u003c|endoftext|\u003e","max_model_len":128,"model":"tiny","pad_token":"\u003c|pad|\u003e","vocab_size":260}`},
		{"GET", "/health", "", `{"status":"ok"}`}, {"GET", "/livez", "", `{"status":"ok"}`},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		if status, _, b := r.do(c.method, c.path, body); status != 200 || string(b) != c.want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", c.path, c.body, status, b, c.want)
		}
	}
	_, _, b := r.do("GET", "/version", nil)
	if !regexp.MustCompile(`^\{"commit":"c1","go":"(go|devel)[^"]+","version":"v1"\}\n$`).Match(b) {
		t.Errorf("%s", b)
	}
	if _, _, b = r.do("GET", "/", nil); !strings.HasPrefix(string(b), "antiphase v1\n\nGET  /v1/models ") {
		t.Errorf("%.100s", b)
	}
	for _, c := range []struct{ path, body, want string }{
		{"/detokenize", `{"tokens":[97,260]}`, "tokens: id 260 at position 1 is not in the vocabulary of 260"},
		{"/v1/completions", `{"prompt":[97,98,-4]}`, "prompt: id -4 at position 2 is not in the vocabulary of 260"},
		{"/v1/completions", `{"prompt":"a","stop_token_ids":[1,300]}`,
			"stop_token_ids: entry 1 is 300, outside the vocabulary of 260"},
		{"/v1/completions", `{"prompt":"a","stop":["a",""]}`, "stop: entry 1 has 0 bytes, must have between 1 and 256"},
		{"/v1/completions", `{"prompt":"a","top_p":1.5}`, "top_p: is 1.5, must be between 0 and 1"},
		{"/v1/completions", `{"prompt":"a","n":17}`, "n: is 17, must be between 1 and 16"},
		{"/v1/completions", `{"prompt":"a","n":"x"}`, `n: is "x", must be a whole number`},
		{"/v1/embeddings", `{"input":"a","dimensions":3}`, "dimensions: is 3, the model has 16"},
	} {
		if status, _, b := r.do("POST", c.path, c.body); status != 400 ||
			!strings.Contains(string(b), strconv.Quote(c.want)) {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, status, b, c.want)
		}
	}
}
