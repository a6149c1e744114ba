package server

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// flushes counts how often a stream is put on its way.
type flushes struct {
	*httptest.ResponseRecorder
	n int
}

func (w *flushes) Flush() { w.n++ }

// TestOneFlushPerStep: the choices of a request share a flush, and every token still has an event of its own.
func TestOneFlushPerStep(t *testing.T) {
	r := newBare(t, setup{})
	w := &flushes{ResponseRecorder: httptest.NewRecorder()}
	body := `{"prompt":"abc","n":4,"max_tokens":16,"ignore_eos":true,"stream":true,"seed":1,"logprobs":0}`
	q := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body))
	r.Handler().ServeHTTP(w, q)
	text := w.Body.String()
	if got := strings.Count(text, `"token_logprobs":[`); got < 32 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d events with tokens:\n%s", got, text)
	}
	if w.n < 10 || w.n > 16+2 {
		t.Errorf("%d flushes, want one for each of 16 steps and one for the end", w.n)
	}
}
