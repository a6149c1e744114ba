package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A client that has gone gets no answer: it counts as cancelled under 499, in the log too, and not as a success. A
// failure of the server is logged with its reason under the request's id, which is all that the client is told.
func TestGoneAndFailed(t *testing.T) {
	var text bytes.Buffer
	r := newBare(t, setup{Config: Config{Log: slog.New(slog.NewJSONHandler(&text, nil))}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, body := range []string{`{"prompt":"a"}`, `{"prompt":"a","stream":true}`} {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions",
			strings.NewReader(body)).WithContext(ctx))
		if w.Body.Len() != 0 || !strings.Contains(text.String(), `"status":499`) {
			t.Errorf("%s: %q, logged %s", body, w.Body, &text)
		}
		text.Reset()
	}
	page := httptest.NewRecorder() // not through the network, where the log is written after the answer
	r.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	b := page.Body.Bytes()
	for _, line := range []string{`requests_cancelled_total 2`,
		`http_requests_total{code="499",route="POST /v1/completions"} 2`} {
		if !contains(b, "\n"+namespace+"_"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	if contains(b, namespace+"_request_success_total{") || contains(b, namespace+"_requests_rejected_total{") {
		t.Error("who has gone counts as answered or refused")
	}
	for _, begun := range []bool{false, true} {
		text.Reset()
		w := httptest.NewRecorder()
		q := httptest.NewRequest("POST", "/", nil)
		q = q.WithContext(context.WithValue(q.Context(), keyID, "id-9"))
		out := newEvents(w, &r.cfg.Limits)
		if begun {
			if err := out.raw("x"); err != nil {
				t.Fatal(err)
			}
		}
		r.abandon(w, q, out, errors.New("disk on fire"))
		out.close()
		want := map[bool]int{false: http.StatusInternalServerError, true: http.StatusOK}[begun]
		said := w.Body.String()
		if w.Code != want || !strings.Contains(said, "id-9") || strings.Contains(said, "fire") ||
			strings.Contains(said, "data: ") != begun {
			t.Errorf("begun %v: %d %s", begun, w.Code, said)
		}
		var line map[string]any
		if err := json.Unmarshal(text.Bytes(), &line); err != nil ||
			fmt.Sprint(line["level"], ", ", line["msg"], ", ", line["id"], ", ",
				line["err"]) != "ERROR, request failed, id-9, disk on fire" {
			t.Errorf("begun %v: logged %s", begun, &text)
		}
	}
}
