package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

func contains(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }

// FuzzBodies: no body gives a 5xx or a panic on any route, and every refusal is an error in OpenAI's form.
func FuzzBodies(f *testing.F) {
	r := newBare(f, setup{context: 32, Config: Config{Limits: Limits{MaxTokens: 4, Body: 4096, Prompts: 4, Choices: 2}}})
	paths := []string{"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/embeddings", "/v1/attention"}
	for i, body := range []string{
		`{"prompt":"hello","max_tokens":3,"temperature":0.5,"top_p":0.9,"stop":["a"],"logprobs":2,"echo":true,"n":2,"seed":1}`,
		`{"prompt":[[1,2,3],[4]],"stream":true,"stream_options":{"include_usage":true},"logit_bias":{"5":1.5}}`,
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","max_completion_tokens":2}`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"z"}],"logprobs":true,"top_logprobs":3}`,
		`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"]}}}}`,
		`{"prompt":"x","add_special_tokens":false,"return_token_strs":true}`, `{"tokens":[1,2,256]}`, `{"input":["a","b"],"encoding_format":"base64"}`, `{"input":[1,2]}`,
		`{"prompt":"hello","layers":[0],"heads":[1],"maps":["a1","diff"],"rows":[1],"next":[0,2],"topk":3,"size":2,"interventions":[{"lambda":0.5,"second":"shuffled","seed":3},{"knockout":true,"layers":[1],"heads":[0]}]}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		q := httptest.NewRequest("POST", paths[int(route)%len(paths)], bytes.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, q)
		var e struct {
			Error *struct{ Message, Type string }
		}
		if w.Code >= 500 || w.Code != http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "") {
			t.Fatalf("%s %q: %d %s", q.URL, body, w.Code, w.Body)
		}
		if contains(w.Body.Bytes(), "internal_error") {
			t.Fatalf("%s %q: %s", q.URL, body, w.Body)
		}
	})
}
