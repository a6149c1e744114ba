package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Which requests a queue refuses, what they are told and when they are to come back: by requests, by tokens and by the
// wait, at each bound and beyond it. Two sequences are inside for four seconds each.
func TestGateRefusals(t *testing.T) {
	for _, c := range []struct {
		name            string
		waiting, tokens int
		ahead           []int // sequences of those that wait
		prompt          int
		refusal         string
		retry           time.Duration
	}{
		{"nobody waits", 0, 0, nil, 5, "", 0}, {"a large prompt alone", 0, 0, nil, 5000, "", 0},
		{"tokens that just fit", 1, 60, []int{1}, 40, "", 0},
		{"one too many", 1, 60, []int{1}, 41, "prompts of 60 tokens wait already", time.Second},
		{"room for one more", 19, 0, []int{1}, 0, "", 0},
		{"none", 20, 0, []int{1}, 0, "20 requests wait already", time.Second},
		{"the longest wait", 5, 0, []int{1, 1, 1, 1, 1}, 0, "", 0},
		{"longer", 6, 0, []int{1, 1, 1, 1, 1, 1}, 0, "it would wait for about 12.0 s", 6 * time.Second},
		{"a large one ahead", 1, 0, []int{8}, 0, "it would wait for about 16.0 s", 8 * time.Second},
		{"much ahead", 1, 0, []int{100}, 0, "it would wait for about 200.0 s", time.Minute},
	} {
		g := newGate(2, 20, 100, 10*time.Second)
		g.waiting, g.tokens, g.service = c.waiting, c.tokens, 4
		for _, n := range c.ahead {
			g.queues["a"] = append(g.queues["a"], &waiter{seqs: n})
		}
		err := g.full("a", &waiter{seqs: 1, tokens: c.prompt})
		var e *apiError
		switch {
		case c.refusal == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &e) || e.Status != http.StatusTooManyRequests || e.Type != "rate_limit_error" ||
			e.Code != "rate_limit_exceeded" || !strings.Contains(e.Message, ": "+c.refusal+";") || e.Retry != c.retry:
			t.Errorf("%s: %+v, want %q and %v", c.name, err, c.refusal, c.retry)
		}
	}
}
