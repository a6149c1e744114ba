package server

import (
	"net/http"
	"strings"
	"testing"
)

// A request with half a character is refused in every kind of text, also in the name of a field.
func TestLoneSurrogateIsRefused(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range [][2]string{{"/v1/completions", `{"prompt":"emoji \ud83d","max_tokens":1}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"\ude00"}],"max_tokens":1}`},
		{"/v1/completions", `{"prompt":"a","stop":["\ud83d\ud83d"],"max_tokens":1}`},
		{"/v1/completions", `{"prompt":"a","\udfff":1,"max_tokens":1}`}, {"/tokenize", `{"prompt":"\ud800"}`}} {
		if status, _, b := r.do("POST", c[0], c[1]); status != http.StatusBadRequest ||
			!strings.Contains(string(b), "surrogate pair") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, b)
		}
	}
	if status, _, b := r.do("POST", "/v1/completions",
		`{"prompt":"\ud83d\ude00","max_tokens":1}`); status != http.StatusOK {
		t.Errorf("a whole pair: %d %s", status, b)
	}
}
