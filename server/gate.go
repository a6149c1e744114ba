package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// gate admits requests to one model's engine: as many sequences at a time as the engine has slots, and a few more, so
// that it never waits for the next. The rest wait, round-robin by key and in order within a key, so that one sender
// cannot delay the others. The queue is bounded by requests, by prompt tokens and by the expected waiting time; beyond
// that a request is rejected at once.
//
// The last bound keeps an overloaded server useful. A queue that stays full makes every answer late by its own length
// and none sooner: at twice the capacity 256 requests waited six seconds each, and goodput within five fell to 0.4 of
// the best. By default half as many sequences may wait as may be inside: however long they take, a request that arrives
// at a bad moment waits half of that. More may wait if they are known not to wait longer than shortWait, so that bursts
// of short requests are accepted.
type gate struct {
	mu        sync.Mutex
	room      int // sequences that may be inside
	free      int
	maxWait   int
	maxTokens int
	maxDelay  time.Duration // 0: see late

	waiting, tokens int
	queues          map[string][]*waiter // by key
	turn            []string             // keys that wait, the next first

	// Seconds that a sequence spends inside, 0 until one has left: the larger of a mean over about the last ten and one
	// over the last fifty. Under overload the queue fills whenever the estimate is too low, so waits are dominated by
	// errors in that direction.
	service         float64
	recent, lasting float64
	left            int // sequences that have left
}

type waiter struct {
	seqs, tokens int
	entered      time.Time // when it was admitted
	admitted     chan struct{}
}

func newGate(room, maxWait, maxTokens int, maxDelay time.Duration) *gate {
	return &gate{room: room, free: room, maxWait: maxWait, maxTokens: maxTokens, maxDelay: maxDelay,
		queues: map[string][]*waiter{}}
}

// enter waits for admission of seqs sequences with tokens prompt tokens. The caller must call leave when it is done.
func (g *gate) enter(ctx context.Context, key string, seqs, tokens int) (leave func(), err error) {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) { // a busy machine is late to report it itself
		return nil, errDeadline
	}
	w := &waiter{seqs: min(seqs, g.room), tokens: tokens, admitted: make(chan struct{})}
	g.mu.Lock()
	if g.waiting == 0 && w.seqs <= g.free {
		g.free -= w.seqs
		w.entered = time.Now()
		g.mu.Unlock()
		return func() { g.leave(w) }, nil
	}
	if err := g.full(key, w); err != nil {
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

// closed reports whether any request of this key would be rejected, however small.
func (g *gate) closed(key string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == 0 {
		return nil
	}
	return g.full(key, &waiter{seqs: 1})
}

// shortWait is a wait that is never rejected, however short requests are.
const shortWait = 500 * time.Millisecond

// late reports whether a request of this key would wait for too long.
func (g *gate) late(key string) bool {
	if g.maxDelay > 0 {
		return g.delay(key) > g.maxDelay
	}
	known := g.left >= 4*g.room // a mean over fewer may be that of a few short ones
	return g.ahead(key) >= max(1, g.room/2) && !(known && g.delay(key) <= shortWait)
}

// full rejects a request that the queue has no room for. A prompt larger than the token bound may still wait alone.
func (g *gate) full(key string, w *waiter) error {
	what, delay := "", g.delay(key)
	switch {
	case g.waiting >= g.maxWait:
		what = fmt.Sprintf("%d requests wait already", g.waiting)
	case g.waiting > 0 && g.tokens+w.tokens > g.maxTokens:
		what = fmt.Sprintf("prompts of %d tokens wait already", g.tokens)
	case g.waiting > 0 && g.late(key):
		what = fmt.Sprintf("it would wait for about %.1f s", delay.Seconds())
	default:
		return nil
	}
	return &apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: "rate_limit_exceeded",
		Retry:   max(time.Second, min(delay/2, time.Minute)), // when half of the queue will be gone
		Message: "the server is at its limit: " + what + "; try again later"}
}

// ahead is the number of sequences that would be admitted before the next one of this key. Keys take turns, so that of
// another key no more are ahead than of this one.
func (g *gate) ahead(key string) (n int) {
	mine := len(g.queues[key]) + 1
	for _, q := range g.queues {
		for _, w := range q[:min(len(q), mine)] {
			n += w.seqs
		}
	}
	return n
}

// delay is how long a request of this key would wait: room sequences are inside for a service time each.
func (g *gate) delay(key string) time.Duration {
	return time.Duration(float64(g.ahead(key)) * g.service / float64(g.room) * float64(time.Second))
}

// leave frees the room and admits the next.
func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += w.seqs
	spent := time.Since(w.entered).Seconds()
	if g.left += w.seqs; g.service == 0 {
		g.recent, g.lasting = spent, spent
	}
	g.recent += (1 - math.Pow(0.9, float64(w.seqs))) * (spent - g.recent)
	g.lasting += (1 - math.Pow(0.98, float64(w.seqs))) * (spent - g.lasting)
	g.service = max(g.recent, g.lasting)
	g.admit()
}

// cancel removes a waiter from the queue, or returns what it was granted meanwhile.
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

// admit admits the next waiters while there is room. None overtakes, so that a large request gets its turn.
func (g *gate) admit() {
	for len(g.turn) > 0 {
		key := g.turn[0]
		if g.queues[key][0].seqs > g.free {
			return
		}
		w := g.take(key, 0)
		if len(g.queues[key]) > 0 { // to the end of the queue
			g.turn = append(slices.Delete(g.turn, 0, 1), key)
		}
		g.free -= w.seqs
		w.entered = time.Now()
		close(w.admitted)
	}
}

// load is the number of requests and prompt tokens that wait.
func (g *gate) load() (requests, tokens int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting, g.tokens
}
