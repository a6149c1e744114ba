package eval

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a server without a network, for tests whose time passes only while everyone waits.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEndpointTimeout: a server that never answers ends a try, and the error says so.
func TestEndpointTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		silent := answers(func(r *http.Request) (*http.Response, error) {
			calls++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		const limit = 20 * time.Millisecond
		e := &Endpoint{URL: "http://x", Model: "m", Timeout: limit, Client: &http.Client{Transport: silent}}
		begin := time.Now()
		_, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "x", MaxTokens: 1}})
		if err == nil || err.Error() != "eval: endpoint http://x: no answer within 20ms" {
			t.Errorf("error %v", err)
		}
		want := tries*limit + (1+2+4+8)*firstPause // pauses double
		if took := time.Since(begin); calls != tries || took != want {
			t.Errorf("%d calls within %v, want %v", calls, took, want)
		}
	})
	for set, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, -1: 10 * time.Minute,
		time.Second: time.Second} {
		if got := (&Endpoint{Timeout: set}).patience(); got != want {
			t.Errorf("a time-out of %v is %v, want %v", set, got, want)
		}
	}
}

// TestEndpointRetryAfter: a busy server's own pause is kept, and the call succeeds afterwards.
func TestEndpointRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		busy := answers(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if calls++; calls == 1 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			} else {
				fmt.Fprint(w, `{"choices":[{"text":"yes"}]}`)
			}
			return w.Result(), nil
		})
		begin := time.Now()
		e := &Endpoint{URL: "http://x", Model: "m", Client: &http.Client{Transport: busy}}
		out, err := e.GenerateUntil(context.Background(), []Generation{{Prompt: "x", MaxTokens: 1}})
		if err != nil || out[0] != "yes" {
			t.Fatalf("%q, %v", out, err)
		}
		if pause := time.Since(begin); pause != 7*time.Second {
			t.Errorf("the next try came after %v, the server asked for 7 s", pause)
		}
	})
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
