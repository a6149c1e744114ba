package server

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func contains(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }

// fuzzed are the routes that read a body.
var fuzzed = []string{"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/embeddings",
	"/v1/attention"}

func newFuzzRig(t testing.TB) *rig {
	return newBare(t, setup{context: 32,
		Config: Config{Limits: Limits{MaxTokens: 4, Body: 4096, Prompts: 4, Choices: 2}}})
}

// holds: no body gives a 5xx or a panic, and every refusal is an error in OpenAI's form that says nothing of the
// inside.
func (r *rig) holds(t *testing.T, route uint8, body []byte) (status int) {
	q := httptest.NewRequest("POST", fuzzed[int(route)%len(fuzzed)], bytes.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, q)
	var e struct {
		Error *struct{ Message, Type string }
	}
	if w.Code >= 500 || w.Code != http.StatusOK &&
		(json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "") {
		t.Fatalf("%s %q: %d %s", q.URL, body, w.Code, w.Body)
	}
	if contains(w.Body.Bytes(), "internal_error") || contains(w.Body.Bytes(), "Go value") {
		t.Fatalf("%s %q: %s", q.URL, body, w.Body)
	}
	return w.Code
}

// FuzzBodies: any bytes on any route.
func FuzzBodies(f *testing.F) {
	r := newFuzzRig(f)
	for route, list := range [][]string{
		{
			`{"prompt":"hello","max_tokens":3,"temperature":0.5,"top_p":0.9,"stop":["a"],"logprobs":2,"echo":true,"n":2,"seed":1}`,
			`{"prompt":[[1,2,3],[4]],"stream":true,"stream_options":{"include_usage":true},"logit_bias":{"5":1.5}}`,
			`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"]}}}}`,
		},
		{
			`{"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","max_completion_tokens":2}`,
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"z"}],"logprobs":true,"top_logprobs":3}`,
		},
		{`{"prompt":"x","add_special_tokens":false,"return_token_strs":true}`},
		{`{"tokens":[1,2,256]}`},
		{`{"input":["a","b"],"encoding_format":"base64"}`, `{"input":[1,2]}`},
		{`{"prompt":"hello","layers":[0],"heads":[1],"maps":["a1","diff"],"rows":[1],"next":[0,2],"topk":3,"size":2,"interventions":[{"lambda":0.5,"second":"shuffled","seed":3},{"knockout":true,"layers":[1],"heads":[0]}]}`},
	} {
		for _, body := range list {
			f.Add(uint8(route), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) { r.holds(t, route, body) })
}

// TestHostileFields: JSON that is well formed, made of fields that the routes know, with values that they may not
// expect. Bytes alone seldom get past the parser. With ANTIPHASE_TEST_LONG=1 a million bodies.
func TestHostileFields(t *testing.T) {
	r := newFuzzRig(t)
	bodies := 5_000
	if os.Getenv("ANTIPHASE_TEST_LONG") == "1" {
		bodies = 1_000_000
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	count := map[string]map[int]int{}
	for i := range bodies {
		route := i % len(fuzzed)
		body, err := json.Marshal(hostileBody(rnd, route))
		if err != nil {
			t.Fatal(err)
		}
		if count[fuzzed[route]] == nil {
			count[fuzzed[route]] = map[int]int{}
		}
		count[fuzzed[route]][r.holds(t, uint8(route), body)]++
	}
	t.Logf("%d bodies: %v", bodies, count)
	for _, path := range fuzzed {
		if n := count[path][http.StatusOK]; n < bodies/100 {
			t.Errorf("%s: %d of %d bodies were answered: the others' fields were not reached", path, n,
				bodies/len(fuzzed))
		}
	}
}

// hostileBody is what a route needs, and a few other fields of any value; now and then it lacks what is needed.
func hostileBody(rnd *rand.Rand, route int) map[string]any {
	needed := []map[string]any{
		{"prompt": "ab"}, {"messages": []any{map[string]any{"role": "user", "content": "ab"}}}, {"prompt": "ab"},
		{"tokens": []int{1, 2}}, {"input": "ab"}, {"prompt": "ab"},
	}
	fields := strings.Fields(`prompt messages tokens input model stream stream_options max_tokens
		max_completion_tokens temperature top_p top_k min_p n stop seed logit_bias presence_penalty frequency_penalty
		repetition_penalty min_tokens ignore_eos stop_token_ids response_format truncate_prompt_tokens cache_salt
		logprobs top_logprobs tools tool_choice chat_template_kwargs add_generation_prompt continue_final_message
		add_special_tokens echo best_of suffix encoding_format dimensions layers heads maps size rows next topk
		interventions return_token_strs content with_pieces user`)
	m := map[string]any{}
	if rnd.IntN(8) > 0 {
		m = needed[route]
	}
	for range rnd.IntN(4) {
		m[fields[rnd.IntN(len(fields))]] = hostileValue(rnd, 0)
	}
	return m
}

// hostileValue is any JSON value, with a liking for edges and for what some field expects.
func hostileValue(rnd *rand.Rand, depth int) any {
	edges := []any{nil, true, false, 0, 1, 2, -1, 0.5, 1e308, -1e308, 1e-320, 1 << 53, math.MaxInt64,
		uint64(math.MaxUint64), math.MinInt64, 31, 32, 33, "", "a", "\x00", "\ufffd",
		"🎈", strings.Repeat("a", 300), "json_object", "auto", "shuffled", "averaged", "a2", "base64",
		json.RawMessage("1e999"), json.RawMessage(`"\ud800"`)}
	words := []string{"type", "json_schema", "schema", "name", "properties", "required", "items", "enum", "anyOf",
		"$ref", "role", "content", "function", "lambda", "second", "knockout", "layers", "heads", "seed",
		"include_usage", "0", "259", "260", ""}
	values := append(edges, "object", "array", "string", "integer", "#", "user", "tool", "function", "text")
	switch k := rnd.IntN(6); {
	case k == 0 && depth < 5:
		list := make([]any, rnd.IntN(6))
		for i := range list {
			list[i] = hostileValue(rnd, depth+1)
		}
		return list
	case k == 1 && depth < 5:
		m := map[string]any{}
		for range rnd.IntN(5) {
			m[words[rnd.IntN(len(words))]] = hostileValue(rnd, depth+1)
		}
		return m
	case k == 2:
		return rnd.IntN(40)
	}
	return values[rnd.IntN(len(values))]
}
