package server

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
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

// deafWriter fails to write, and does not tell when it is flushed.
type deafWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *deafWriter) Write([]byte) (int, error) { w.writes++; return 0, io.ErrShortWrite }

// TestStreamKeepsItsFault: a write that fails ends the stream, whatever the flush after it says, and nothing more is written.
func TestStreamKeepsItsFault(t *testing.T) {
	w := &deafWriter{ResponseRecorder: httptest.NewRecorder()}
	e := newEvents(w, &Limits{Ping: time.Hour})
	defer e.close()
	if err := e.send(map[string]int{"a": 1}); !errors.Is(err, errSlow) {
		t.Errorf("the write failed, and send says %v", err)
	}
	if err := e.flush(); !errors.Is(err, errSlow) {
		t.Errorf("flush says %v", err)
	}
	if err := e.raw("[DONE]"); !errors.Is(err, errSlow) || w.writes != 1 {
		t.Errorf("after the fault: %v, %d writes", err, w.writes)
	}
}
