package eval

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestEndpointTimeout: a server that never answers ends a try, and the error says so.
func TestEndpointTimeout(t *testing.T) {
	stop := make(chan struct{})
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1); <-stop }))
	defer s.Close()
	defer close(stop)
	e := &Endpoint{URL: s.URL, Model: "m", Timeout: 20 * time.Millisecond}
	begin := time.Now()
	_, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "x", MaxTokens: 1}})
	if err == nil || err.Error() != fmt.Sprintf("eval: endpoint %s: no answer within 20ms", s.URL) {
		t.Errorf("error %v after %v", err, time.Since(begin))
	}
	if n, took := calls.Load(), time.Since(begin); n != tries || took < (1+2+4+8)*firstPause { // pauses double
		t.Errorf("%d calls within %v", n, took)
	}
	for set, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, -1: 10 * time.Minute,
		time.Second: time.Second} {
		if got := (&Endpoint{Timeout: set}).patience(); got != want {
			t.Errorf("a time-out of %v is %v, want %v", set, got, want)
		}
	}
}

// TestEndpointRetryAfter: a busy server's own pause is kept, and the call succeeds afterwards.
func TestEndpointRetryAfter(t *testing.T) {
	var calls atomic.Int32
	var first, second atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			first.Store(time.Now().UnixNano())
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		second.Store(time.Now().UnixNano())
		fmt.Fprint(w, `{"choices":[{"text":"yes"}]}`)
	}))
	defer s.Close()
	out, err := (&Endpoint{URL: s.URL, Model: "m"}).GenerateUntil(context.Background(),
		[]Generation{{Prompt: "x", MaxTokens: 1}})
	if err != nil || out[0] != "yes" {
		t.Fatalf("%q, %v", out, err)
	}
	if pause := time.Duration(second.Load() - first.Load()); pause < time.Second {
		t.Errorf("the next try came after %v, the server asked for a second", pause)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-3": 0, "soon": 0, "99999999999": longestWait,
		"999999999999999999999": 0,
		"18446744074":           longestWait, "-9223372037": 0, // as nanoseconds these overflow to another sign or size
		"300": longestWait, "299": 299 * time.Second,
		now.Add(30 * time.Second).Format(http.TimeFormat): 30 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(24 * time.Hour).Format(http.TimeFormat):   longestWait,
	} {
		if got := retryAfter(s, now); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// TestEndpointPlain: nothing that a server says reaches a terminal raw.
func TestEndpointPlain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "no\x1b[2J\x1b]0;title\x07 \u202e\xff\r\nmore")
	}))
	defer s.Close()
	_, err := (&Endpoint{URL: s.URL, Model: "m"}).GenerateUntil(context.Background(),
		[]Generation{{Prompt: "x", MaxTokens: 1}})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\r\n\u202e") ||
		!strings.Contains(err.Error(), `no\x1b[2J`) {
		t.Errorf("error %q", err)
	}
}
