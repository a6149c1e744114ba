package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// gate admits requests to one model's engine: as many sequences at a time as the engine has slots, and a few more, so that it never
// waits for the next. The rest wait, in turn by key and in order within a key: one who sends much does not hold up the others. The
// queue is bounded by requests and by prompt tokens; beyond that a request is refused at once.
type gate struct {
	mu        sync.Mutex
	room      int // sequences that may be inside
	free      int
	maxWait   int
	maxTokens int

	waiting, tokens int
	queues          map[string][]*waiter // by key
	turn            []string             // keys that wait, the next first

	rate float64 // requests that leave per second, smoothed
	last time.Time
}

type waiter struct {
	seqs, tokens int
	admitted     chan struct{}
}

func newGate(room, maxWait, maxTokens int) *gate {
	return &gate{room: room, free: room, maxWait: maxWait, maxTokens: maxTokens, queues: map[string][]*waiter{}}
}

// enter waits for admission of seqs sequences with tokens prompt tokens. The caller must call leave when it is through.
func (g *gate) enter(ctx context.Context, key string, seqs, tokens int) (leave func(), err error) {
	w := &waiter{seqs: min(seqs, g.room), tokens: tokens, admitted: make(chan struct{})}
	g.mu.Lock()
	if g.waiting == 0 && w.seqs <= g.free {
		g.free -= w.seqs
		g.mu.Unlock()
		return func() { g.leave(w) }, nil
	}
	if err := g.full(w); err != nil {
		g.mu.Unlock()
		return nil, err
	}
	if len(g.queues[key]) == 0 {
		g.turn = append(g.turn, key)
	}
	g.queues[key] = append(g.queues[key], w)
	g.waiting++
	g.tokens += tokens
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return func() { g.leave(w) }, nil
	case <-ctx.Done():
		g.cancel(key, w)
		return nil, context.Cause(ctx)
	}
}

// full refuses what the queue has no room for. A prompt larger than the token bound may still wait alone.
func (g *gate) full(w *waiter) error {
	what := ""
	switch {
	case g.waiting >= g.maxWait:
		what = fmt.Sprintf("%d requests wait already", g.waiting)
	case g.waiting > 0 && g.tokens+w.tokens > g.maxTokens:
		what = fmt.Sprintf("prompts of %d tokens wait already", g.tokens)
	default:
		return nil
	}
	return &apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: "rate_limit_exceeded", Retry: g.retry(),
		Message: "the server is at its limit: " + what + "; try again later"}
}

// retry guesses when half of the queue will have gone.
func (g *gate) retry() time.Duration {
	if g.rate <= 0 {
		return time.Second
	}
	d := time.Duration(float64(g.waiting) / 2 / g.rate * float64(time.Second))
	return max(time.Second, min(d, time.Minute))
}

// leave gives room back and admits who is next.
func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += w.seqs
	now := time.Now()
	if d := now.Sub(g.last).Seconds(); !g.last.IsZero() && d > 0 {
		g.rate += 0.1 * (min(1/d, 1e4) - g.rate)
	}
	g.last = now
	g.admit()
}

// cancel takes a waiter out of the queue, or gives back what it was granted meanwhile.
func (g *gate) cancel(key string, w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[key], w)
	if i < 0 {
		g.free += w.seqs
	} else {
		g.take(key, i)
	}
	g.admit()
}

// take removes waiter i of a key.
func (g *gate) take(key string, i int) *waiter {
	w := g.queues[key][i]
	g.waiting--
	g.tokens -= w.tokens
	if g.queues[key] = slices.Delete(g.queues[key], i, i+1); len(g.queues[key]) == 0 {
		delete(g.queues, key)
		g.turn = slices.DeleteFunc(g.turn, func(k string) bool { return k == key })
	}
	return w
}

// admit lets in whoever is next while there is room. Nobody overtakes, so that a large request gets its turn.
func (g *gate) admit() {
	for len(g.turn) > 0 {
		key := g.turn[0]
		if g.queues[key][0].seqs > g.free {
			return
		}
		w := g.take(key, 0)
		if len(g.queues[key]) > 0 { // to the end of the line
			g.turn = append(slices.Delete(g.turn, 0, 1), key)
		}
		g.free -= w.seqs
		close(w.admitted)
	}
}

// load is the number of requests and prompt tokens that wait.
func (g *gate) load() (requests, tokens int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting, g.tokens
}
