package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzIDs compares parseIDs with encoding/json on valid JSON; null is the one difference.
func FuzzIDs(f *testing.F) {
	for _, text := range []string{
		`[]`, ` [ ] `, `[1]`, `[0,-1, 2147483647,-2147483648]`, "[ 1 ,\t2\n]", `[-0]`, `[2147483648]`, `[-2147483649]`,
		`[99999999999999999999]`,
		`[1.0]`, `[1e2]`, `[1,null]`, `null`, `1`, `"[1]"`, `[[1]]`, `["1"]`, `["a,b"]`, `{"a":[1]}`, `[true]`,
		`[1,{"a":2}]`, `[-]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		var list []*int32
		known := json.Unmarshal([]byte(text), &list) == nil && list != nil && !slices.Contains(list, nil)
		ids, ok := parseIDs([]byte(text))
		if ok != known || ok && len(ids) != len(list) {
			t.Fatalf("%q: %v %v, want %v and %d ids", text, ids, ok, known, len(list))
		}
		for i, id := range ids {
			if id != *list[i] {
				t.Fatalf("%q: entry %d is %d, want %d", text, i, id, *list[i])
			}
		}
	})
}

// TestNullIDs: null in a list is refused everywhere; it was read as 0.
func TestNullIDs(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range []struct{ path, body, param string }{
		{"/v1/completions", `{"prompt":[65,null],"max_tokens":1}`, "prompt"},
		{"/v1/completions", `{"prompt":[null],"max_tokens":1}`, "prompt"},
		{"/v1/completions", `{"prompt":[[65],[65,null]],"max_tokens":1}`, "prompt"},
		{"/v1/completions", `{"prompt":["A",null],"max_tokens":1}`, "prompt"},
		{"/v1/completions", `{"prompt":"A","max_tokens":1,"stop_token_ids":[null]}`, "stop_token_ids"},
		{"/v1/completions", `{"prompt":"A","max_tokens":1,"logit_bias":{"65":null}}`, "logit_bias"},
		{"/v1/embeddings", `{"input":[65,null]}`, "input"},
		{"/detokenize", `{"tokens":[65,null]}`, "tokens"},
		{"/v1/attention", `{"prompt":"A","layers":[null]}`, "layers"},
		{"/v1/attention", `{"prompt":"A","next":[null]}`, "next"},
		{"/v1/attention", `{"prompt":"A","interventions":[null]}`, "interventions"},
		{"/v1/attention", `{"prompt":"A","interventions":[{"lambda":0.5,"layers":[ null ]}]}`, "interventions"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":["a",null]}]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[null]}]}`, "messages"},
	} {
		status, _, body := r.do("POST", c.path, c.body)
		if status != http.StatusBadRequest || !strings.Contains(string(body), `"param":"`+c.param+`"`) {
			t.Errorf("%s %s: %d %s, want 400 for %s", c.path, c.body, status, body, c.param)
		}
	}
}

// TestAmbiguousBodies: what readers of JSON understand differently is refused: bytes that are not UTF-8, and two
// spellings of one id.
func TestAmbiguousBodies(t *testing.T) {
	r := newRig(t, setup{})
	for _, body := range []string{"{\"prompt\":\"\xff\",\"max_tokens\":1}",
		"{\"prompt\":\"\xed\xa0\x80\",\"max_tokens\":1}"} {
		if msg := r.refused("/v1/completions", body, http.StatusBadRequest, "", ""); !strings.Contains(msg, "UTF-8") {
			t.Errorf("%q: %s", body, msg)
		}
	}
	for _, id := range []string{"+5", "05", " 5", "5.0", "-0", "0x5"} {
		r.refused("/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 1, "logit_bias": fieldsOf{id: 1}},
			http.StatusBadRequest, "logit_bias", "")
	}
	r.post("/v1/completions", fieldsOf{"prompt": "é", "max_tokens": 1, "logit_bias": fieldsOf{"5": 1}},
		new(completionReply))
	for _, body := range []string{`[]`, `"x"`, `3`} {
		if msg := r.refused("/v1/completions", body, http.StatusBadRequest, "", ""); strings.Contains(msg, "Go ") {
			t.Errorf("%s: %s", body, msg)
		}
	}
	if msg := r.refused("/v1/attention", `{"prompt":"x","interventions":{}}`, http.StatusBadRequest, "interventions",
		""); strings.Contains(msg, "Go ") {
		t.Error(msg)
	}
}

// FuzzObject compares parseObject with encoding/json.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a" : [1, {"b": "}"}] , "c":{"d":[]},"e":"\",{"}`, `{"a":null,"a":2}`,
		`{"\u0061":1,"b":-1e5}`, "{\"\xff\":1}",
		`{"a":[1,null]}`, `{"a":[[{"b":null}, null ]]}`, `{"a":["null",{"n":null}],"n":null}`, `{"a":[ null]}`,
		`null`, `[]`, `[{}]`, `1`, `""`, ``, `{`, `{}{}`, `{} x`, `{"a":1,}`, `{"a":}`, `{"":{"":""}}`,
		"{\n\t\"a\"\r:\n1\n}", `{"a":tru}`,
		"\v{}", "{}\f", "\u00a0{}", "{\"a\":\v1}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]json.RawMessage
		known := json.Unmarshal([]byte(text), &want) == nil && want != nil
		o, err := parseObject([]byte(text))
		if (err == nil) != known {
			t.Fatalf("%q: %v, encoding/json reads it: %v", text, err, known)
		}
		var any any
		twice := false
		if json.Valid([]byte(text)) {
			_, twice = duplicateKey([]byte(text))
		}
		if !twice && json.Unmarshal([]byte(text), &any) == nil && nullInList([]byte(text)) != listsNull(any) {
			t.Fatalf("%q: null in a list: %v", text, nullInList([]byte(text)))
		}
		if known && !maps.EqualFunc(o.m, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Fatalf("%q: %s, want %s", text, o.m, want)
		}
	})
}

// listsNull is nullInList of a decoded value. A repeated name hides its earlier value, so those are not compared.
func listsNull(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return x == nil || listsNull(x) })
	case map[string]any:
		for _, x := range v {
			if listsNull(x) {
				return true
			}
		}
	}
	return false
}
