package server

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func repeat(x any, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = x
	}
	return list
}

// TestNumericFields: every number out of its range, of the wrong kind or absurd is a 400 that names its field, never a
// 5xx.
func TestNumericFields(t *testing.T) {
	r := newRig(t, setup{})
	for path, base := range map[string]string{"/v1/completions": `"prompt":"x","max_tokens":2`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}],"max_completion_tokens":2`} {
		fields := []string{"temperature", "top_p", "min_p", "top_k", "repetition_penalty", "presence_penalty",
			"frequency_penalty", "min_tokens", "max_tokens", "n", "seed", "truncate_prompt_tokens"}
		if path == "/v1/completions" {
			fields = append(fields, "logprobs", "best_of")
		} else {
			fields = append(fields, "top_logprobs")
		}
		for _, f := range fields {
			for _, v := range []string{"-1", "-9223372036854775808", "9223372036854775807", "1e308", "-1e308", "1e999",
				"2.5", `"3"`, `"NaN"`, "[]", "{}", "true", "NaN", "Infinity", "0", "null", "1e-320",
				"99999999999999999999999"} {
				body := fmt.Sprintf(`{%s,%q:%s}`, base, f, v)
				status, _, b := r.do("POST", path, body)
				if status != http.StatusOK && status != http.StatusBadRequest {
					t.Errorf("%s: %d %s", body, status, b)
				}
				absurd := v == `"3"` || v == "[]" || v == "{}" || v == "true" || v == "1e308" || v == "-1e308"
				if absurd && status != http.StatusBadRequest {
					t.Errorf("%s: %d, want 400", body, status)
				}
				if absurd && !strings.Contains(string(b), `"param":"`+f) {
					t.Errorf("%s: %s does not name the field", body, b)
				}
			}
		}
	}
	r.quiet()
}

// TestUnknownField: a field that was not read is refused by name, with the nearest known one if there is any.
func TestUnknownField(t *testing.T) {
	for name, want := range map[string]string{
		"temprature": "; did you mean temperature?", "temperatrue": "; did you mean temperature?", "zzz": "",
		strings.Repeat("temperature", 20): "",
	} {
		o, err := parseObject([]byte(fmt.Sprintf(`{"temperature": 1, %q: 2}`, name)))
		if err != nil {
			t.Fatal(err)
		}
		o.ignore("temperature", "top_p")
		err = o.finish()
		if end := "this field is unknown" + want; err == nil ||
			!strings.HasPrefix(err.Error(), name[:min(len(name), 100)]) || !strings.HasSuffix(err.Error(), end) {
			t.Errorf("%s: %v, want it to end with %q", name, err, end)
		}
	}
}

// TestLimits: at the limit a request passes, one above it is refused by name.
func TestLimits(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{Choices: 3, Prompts: 4, Stops: 2, StopBytes: 5, Logprobs: 6,
		Biases: 3, Messages: 5, SchemaDepth: 3, Body: 2000}}})
	biases := func(n int) fieldsOf {
		m := fieldsOf{}
		for i := range n {
			m[fmt.Sprint(i)] = 1
		}
		return m
	}
	nested := func(n int) fieldsOf {
		var s any = true
		for range n {
			s = fieldsOf{"type": "array", "items": s}
		}
		return fieldsOf{"type": "json_schema", "json_schema": fieldsOf{"name": "x", "schema": s}}
	}
	say := fieldsOf{"role": "user", "content": "x"}
	for _, c := range []struct {
		path, field string
		good, bad   any
	}{
		{"/v1/completions", "n", 3, 4}, {"/v1/completions", "prompt", repeat("a", 4), repeat("a", 5)},
		{"/v1/completions", "stop", []string{"a", "b"}, []string{"a", "b", "c"}},
		{"/v1/completions", "stop", "12345", "123456"},
		{"/v1/completions", "logprobs", 6, 7}, {"/v1/completions", "logit_bias", biases(3), biases(4)},
		{"/v1/chat/completions", "messages", repeat(say, 5), repeat(say, 6)},
		{"/v1/completions", "response_format", nested(3), nested(5)},
		{"/v1/completions", "temperature", 100, 100.5}, {"/v1/completions", "presence_penalty", -2, -2.01},
		{"/v1/completions", "logit_bias", fieldsOf{"1": 100}, fieldsOf{"1": 101}},
		{"/v1/completions", "truncate_prompt_tokens", 128, 129},
	} {
		base := fieldsOf{"max_tokens": 1}
		if c.field != "prompt" && c.path == "/v1/completions" {
			base["prompt"] = "x"
		}
		base[c.field] = c.good
		if status, _, b := r.do("POST", c.path, base); status != http.StatusOK {
			t.Errorf("%s %v: %d %s", c.field, c.good, status, b)
		}
		base[c.field] = c.bad
		r.refused(c.path, base, http.StatusBadRequest, c.field, "")
	}
	pad := func(n int) string {
		s := `{"prompt":"x","max_tokens":1,"user":"`
		return s + strings.Repeat("u", n-len(s)-2) + `"}`
	}
	if status, _, b := r.do("POST", "/v1/completions", pad(2000)); status != http.StatusOK {
		t.Errorf("a body of 2000 bytes: %d %s", status, b)
	}
	if status, _, b := r.do("POST", "/v1/completions", pad(2001)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 2001 bytes: %d %s", status, b)
	}
}

// TestContextLength: a prompt is never cut in silence. One below the context gets one token, at the context nothing is
// left, above it the numbers are told.
func TestContextLength(t *testing.T) {
	r := newRig(t, setup{context: 64, template: "{{ messages[0].content }}"})
	for n, ok := range map[int]bool{63: true, 64: false, 65: false, 500: false} {
		for path, body := range map[string]fieldsOf{
			"/v1/completions": {"prompt": strings.Repeat("x", n), "ignore_eos": true},
			"/v1/chat/completions": {"messages": []fieldsOf{{"role": "user", "content": strings.Repeat("x", n)}},
				"ignore_eos": true},
		} {
			if !ok {
				msg := r.refused(path, body, http.StatusBadRequest, "prompt", "context_length_exceeded")
				if !strings.Contains(msg, fmt.Sprint(n)) || !strings.Contains(msg, "64") {
					t.Errorf("%d tokens: %q does not tell both numbers", n, msg)
				}
				continue
			}
			var reply struct{ Usage usage }
			r.post(path, body, &reply)
			if reply.Usage.Completion != 1 || reply.Usage.Prompt != n {
				t.Errorf("%s with %d tokens: %+v, want one token", path, n, reply.Usage)
			}
		}
	}
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": strings.Repeat("x", 500), "truncate_prompt_tokens": 10,
		"max_tokens": 2}, &reply)
	if reply.Usage.Prompt != 10 {
		t.Errorf("truncated on request: %+v", reply.Usage)
	}
	// The end of the prompt stays.
	for _, prompt := range []any{"abcdef", []string{"abcdef", "uvwdef"}, []int{97, 98, 99, 100, 101, 102}} {
		r.post("/v1/completions", fieldsOf{"prompt": prompt, "truncate_prompt_tokens": 3, "echo": true,
			"max_tokens": 0}, &reply)
		for _, c := range reply.Choices {
			if c.Text != "def" {
				t.Errorf("%v truncated to three tokens is %q", prompt, c.Text)
			}
		}
	}
	r.post("/v1/completions", fieldsOf{"prompt": strings.Repeat("x", 64), "echo": true, "logprobs": 0, "max_tokens": 1},
		&reply)
	if len(reply.Choices[0].Logprobs.Tokens) != 64 {
		t.Errorf("scoring a full context: %d tokens", len(reply.Choices[0].Logprobs.Tokens))
	}
}

// TestBadBodies: what is no request is refused, each with the field at fault.
func TestBadBodies(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range []struct {
		path, body, param string
	}{
		{"/v1/completions", ``, ""}, {"/v1/completions", `null`, ""}, {"/v1/completions", `[]`, ""},
		{"/v1/completions", `{`, ""}, {"/v1/completions", `{} {}`, ""},
		{"/v1/completions", `{}`, "prompt"}, {"/v1/completions", `{"prompt":""}`, ""},
		{"/v1/completions", `{"prompt":[]}`, "prompt"}, {"/v1/completions", `{"prompt":[[]]}`, "prompt"},
		{"/v1/completions", `{"prompt":[1,"a"]}`, "prompt"}, {"/v1/completions", `{"prompt":[-1]}`, "prompt"},
		{"/v1/completions", `{"prompt":[260]}`, "prompt"}, {"/v1/completions", `{"prompt":[1e10]}`, "prompt"},
		{"/v1/completions", `{"prompt":{}}`, "prompt"}, {"/v1/completions", `{"prompt":"x","suffix":"y"}`, "suffix"},
		{"/v1/completions", `{"prompt":"x","best_of":5}`, "best_of"},
		{"/v1/completions", `{"prompt":"x","max_tokens":0}`, "max_tokens"},
		{"/v1/completions", `{"prompt":"x","tempature":1}`, "tempature"},
		{"/v1/completions", `{"prompt":"x","stop":""}`, "stop"},
		{"/v1/completions", `{"prompt":"x","stop":[3]}`, "stop"},
		{"/v1/completions", `{"prompt":"x","stop_token_ids":[-5]}`, "stop_token_ids"},
		{"/v1/completions", `{"prompt":"x","logit_bias":{"x":1}}`, "logit_bias"},
		{"/v1/completions", `{"prompt":"x","logit_bias":{"9999":1}}`, "logit_bias"},
		{"/v1/completions", `{"prompt":"x","stream_options":{"include_usage":true}}`, "stream_options"},
		{"/v1/completions", `{"prompt":"x","response_format":{"type":"xml"}}`, "response_format"},
		{"/v1/completions",
			`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"pattern":"(a+)+$"}}}}`,
			"response_format"},
		{"/v1/completions", `{"prompt":"x","response_format":{"type":"json_object"},"stop":"a"}`, "stop"},
		{"/v1/chat/completions", `{}`, "messages"}, {"/v1/chat/completions", `{"messages":[]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"x","content":"y"}]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user"}]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"top_logprobs":3}`, "top_logprobs"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"x"}]}`, "tools"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"chat_template":"{{ 7*7 }}"}`,
			"chat_template"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"messages":[]}}`,
			"chat_template_kwargs"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"tool_choice":"required"}`,
			"tool_choice"},
		{"/tokenize", `{}`, "prompt"}, {"/detokenize", `{}`, "tokens"}, {"/detokenize", `{"tokens":[-1]}`, "tokens"},
		{"/detokenize", `{"tokens":[2147483647]}`, "tokens"},
		{"/v1/embeddings", `{}`, "input"}, {"/v1/embeddings", `{"input":[]}`, "input"},
		{"/v1/embeddings", `{"input":"x","dimensions":3}`, "dimensions"},
		{"/v1/embeddings", `{"input":"x","encoding_format":"hex"}`, "encoding_format"},
	} {
		if c.body == `{"prompt":""}` {
			continue // the tokenizer has a token for it
		}
		r.refused(c.path, c.body, http.StatusBadRequest, c.param, "")
	}
	r.refused("/v1/completions", `{"model":"../../etc/passwd","prompt":"x"}`, http.StatusNotFound, "model",
		"model_not_found")
	r.refused("/v1/completions", `{"model":3,"prompt":"x"}`, http.StatusBadRequest, "model", "")
	r.quiet()
}

// TestNamesOnce: a field that is there twice is refused and named, at any depth and however it is spelled; JSON readers
// take the last one silently.
func TestNamesOnce(t *testing.T) {
	r := newRig(t, setup{})
	for body, name := range map[string]string{
		`{"prompt":"a","prompt":"b"}`:                                                       "prompt",
		`{"prompt":"a","max_tokens":1,"m\u0061x_tokens":2}`:                                 "max_tokens",
		`{"prompt":"a","logit_bias":{"5":1,"6":1,"5":-1}}`:                                  "5",
		`{"prompt":["{\"a\":1,\"a\":2}"],"stream_options":{},"stream":false,"stream":true}`: "stream",
	} {
		r.refused("/v1/completions", body, http.StatusBadRequest, name, "")
	}
	r.refused("/v1/chat/completions", `{"messages":[{"role":"user","content":"x","role":"system"}]}`,
		http.StatusBadRequest, "role", "")
	var reply completionReply
	r.post("/v1/completions",
		`{"prompt":["{\"a\":1,\"a\":\"\\\\\"}","a"],"logit_bias":{"5":1},"max_tokens":1,"stop":["prompt","prompt"]}`,
		&reply)
	if len(reply.Choices) != 2 {
		t.Errorf("%+v", reply)
	}
}

// TestRequestTokens: prompts × n × max_tokens is bounded before anything is made of it, echoed prompts included.
func TestRequestTokens(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{RequestTokens: 24}}})
	ask := func(more fieldsOf) fieldsOf {
		q := fieldsOf{"prompt": []string{"abc", "def"}, "add_special_tokens": false}
		maps.Copy(q, more)
		return q
	}
	for _, good := range []fieldsOf{{"n": 3, "max_tokens": 4}, {"max_tokens": 9, "echo": true},
		{"max_tokens": 0, "n": 4, "echo": true}} {
		if status, _, b := r.do("POST", "/v1/completions", ask(good)); status != http.StatusOK {
			t.Errorf("%v: %d %s", good, status, b)
		}
	}
	for _, bad := range []fieldsOf{{"n": 3, "max_tokens": 5}, {"max_tokens": 10, "echo": true},
		{"max_tokens": 0, "n": 5, "echo": true}, {}} {
		r.refused("/v1/completions", ask(bad), http.StatusBadRequest, "max_tokens", "")
	}
	r.refused("/v1/chat/completions",
		fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "x"}}, "max_tokens": 25}, http.StatusBadRequest,
		"max_tokens", "")
	r.refused("/v1/completions", ask(fieldsOf{"max_tokens": 1, "cache_salt": strings.Repeat("s", 257)}),
		http.StatusBadRequest, "cache_salt", "")
}

// TestLongTexts: a text that cannot fit is refused by its length, before it is encoded; one that will be cut, and one
// whose tokens are only counted, may be longer.
func TestLongTexts(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{Body: 1 << 20}}})
	long := strings.Repeat("a b ", 100_000)
	r.refused("/v1/completions", fieldsOf{"prompt": []string{"x", long}}, http.StatusBadRequest, "prompt",
		"context_length_exceeded")
	r.refused("/v1/chat/completions", fieldsOf{"messages": []fieldsOf{{"role": "user", "content": long}}},
		http.StatusBadRequest, "messages", "context_length_exceeded")
	r.refused("/v1/embeddings", fieldsOf{"input": long}, http.StatusBadRequest, "input", "context_length_exceeded")
	r.refused("/v1/attention", fieldsOf{"prompt": long}, http.StatusBadRequest, "prompt", "context_length_exceeded")
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": long, "truncate_prompt_tokens": 5, "max_tokens": 1}, &reply)
	if reply.Usage.Prompt != 5 {
		t.Errorf("%+v", reply.Usage)
	}
	var count struct{ Count int }
	r.post("/tokenize", fieldsOf{"prompt": long, "add_special_tokens": false}, &count)
	if count.Count != len(long) {
		t.Errorf("%d tokens, want %d", count.Count, len(long))
	}
}

// TestLargeBodiesAreBounded: of bodies that are large or do not tell their size only so many are read at a time; small
// ones pass, and when the large ones have gone there is room again.
func TestLargeBodiesAreBounded(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{Body: 100_000}}})
	var wg sync.WaitGroup
	ends := make([]*io.PipeWriter, manyBodies)
	for i := range ends {
		body, w := io.Pipe()
		ends[i] = w
		wg.Go(func() {
			rec := httptest.NewRecorder()
			r.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/tokenize", body))
			if rec.Code != http.StatusOK {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
	until(t, "all bodies", func() bool { return r.bodies.Load() == manyBodies*100_000 })
	large := fieldsOf{"prompt": strings.Repeat("a", 80_000)}
	if status, h, b := r.do("POST", "/tokenize", large); status != http.StatusTooManyRequests ||
		h.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", status, b)
	}
	if status, _, b := r.do("POST", "/tokenize", fieldsOf{"prompt": "a"}); status != http.StatusOK {
		t.Errorf("a small one: %d %s", status, b)
	}
	for _, w := range ends {
		_, _ = io.WriteString(w, `{"prompt":"a"}`)
		w.Close()
	}
	wg.Wait()
	if status, _, b := r.do("POST", "/tokenize", large); status != http.StatusOK {
		t.Errorf("afterwards: %d %.200s", status, b)
	}
	until(t, "held bytes to be given back", func() bool { return r.bodies.Load() == 0 })
}

// TestHeldBytes: what a body's stated length reserves. A length beyond the limit reserves no more than the limit, so
// that one client's header does not keep all others out.
func TestHeldBytes(t *testing.T) {
	const limit = 100_000
	r := newBare(t, setup{Config: Config{Limits: Limits{Body: limit}}})
	for length, want := range map[int64]int64{
		0: 0, 1: 0, smallBody - 1: 0, smallBody: smallBody, limit - 1: limit - 1, limit: limit, limit + 1: limit,
		1 << 50: limit, -1: limit,
	} {
		q := httptest.NewRequest("POST", "/tokenize", nil)
		q.ContentLength = length
		rec := &recorder{}
		if err := r.hold(rec, q); err != nil || rec.held != want || r.bodies.Load() != want {
			t.Errorf("%d bytes: %d held, %d in all, %v; want %d", length, rec.held, r.bodies.Load(), err, want)
		}
		r.bodies.Store(manyBodies*limit - want) // exactly enough room
		if err := r.hold(rec, q); err != nil {
			t.Errorf("%d bytes in the last room: %v", length, err)
		}
		r.bodies.Store(manyBodies*limit - want + 1)
		if err := r.hold(rec, q); (err != nil) != (want > 0) || err != nil &&
			r.bodies.Load() != manyBodies*limit-want+1 {
			t.Errorf("%d bytes, one too few: %v, %d held", length, err, r.bodies.Load())
		}
		r.bodies.Store(0)
	}
}

// TestEmptyPrompt: an empty text begins with the token that every text begins with; it must not end the server.
func TestEmptyPrompt(t *testing.T) {
	r := newRig(t, setup{})
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": "", "max_tokens": 2}, &reply)
	if reply.Usage.Prompt != 1 {
		t.Errorf("%+v", reply.Usage)
	}
	r.refused("/v1/completions", fieldsOf{"prompt": []string{"", ""}, "add_special_tokens": false},
		http.StatusBadRequest, "prompt", "")
}
