package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Half of a surrogate pair is found wherever it is, and nothing else is: encoding/json puts U+FFFD exactly there.
func TestLoneSurrogate(t *testing.T) {
	for _, text := range []string{``, `a`, `\\`, `\"`, `\n`, `\u0041`, `\\u0041`, `\\ud800`, `\\\\ud800`, `\ud83d\ude00`, `\uD83D\uDE00`, `x\ud83d\ude00y\udbff\udfff`,
		`😀`, `\ud800`, `\uDFFF`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\ud83d\ude00\ude00`, `\ud83d\n\ude00`, `\ud83dx`, `\ud83d\u0041`, `\\\ud800`, `\ud7ff\ue000`} {
		b := []byte(`{"a":["` + text + `"]}`)
		if !json.Valid(b) {
			t.Fatalf("%s is not JSON", b)
		}
		var v map[string][]string
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		want := strings.ContainsRune(v["a"][0], '\uFFFD')
		if escape, got := loneSurrogate(b); got != want || got && !strings.Contains(text, escape) {
			t.Errorf("%s: %q, %v, want %v", text, escape, got, want)
		}
	}
}

// A request with half a character is refused in every kind of text, also in the name of a field.
func TestLoneSurrogateIsRefused(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range [][2]string{{"/v1/completions", `{"prompt":"emoji \ud83d","max_tokens":1}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"\ude00"}],"max_tokens":1}`},
		{"/v1/completions", `{"prompt":"a","stop":["\ud83d\ud83d"],"max_tokens":1}`},
		{"/v1/completions", `{"prompt":"a","\udfff":1,"max_tokens":1}`}, {"/tokenize", `{"prompt":"\ud800"}`}} {
		if status, _, b := r.do("POST", c[0], c[1]); status != http.StatusBadRequest || !strings.Contains(string(b), "surrogate pair") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, b)
		}
	}
	if status, _, b := r.do("POST", "/v1/completions", `{"prompt":"\ud83d\ude00","max_tokens":1}`); status != http.StatusOK {
		t.Errorf("a whole pair: %d %s", status, b)
	}
}
