package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A request that is cancelled at the moment of its admission gives back what it was granted; one that still waits
// leaves the queue; others go on.
func TestGateCancel(t *testing.T) {
	for _, admitted := range []bool{true, false} {
		g := newGate(2, 10, 100, time.Hour)
		inside := &waiter{seqs: 2, admitted: make(chan struct{})}
		g.free = 0
		first, next := &waiter{seqs: 2, tokens: 5, admitted: make(chan struct{})},
			&waiter{seqs: 1, tokens: 7, admitted: make(chan struct{})}
		g.queues["a"], g.queues["b"], g.turn, g.waiting, g.tokens = []*waiter{first}, []*waiter{next},
			[]string{"a", "b"}, 2, 12
		if admitted {
			g.leave(inside) // lets the first in
			<-first.admitted
		}
		g.cancel("a", first)
		if !admitted {
			g.leave(inside)
		}
		select {
		case <-next.admitted:
		default:
			t.Fatalf("admitted before %v: the next one waits with %d of 2 free", admitted, g.free)
		}
		if requests, tokens := g.load(); g.free != 1 || requests != 0 || tokens != 0 || len(g.turn) != 0 ||
			len(g.queues) != 0 {
			t.Errorf("admitted before %v: %d free, %d requests, %d tokens wait", admitted, g.free, requests, tokens)
		}
	}
}

// Whatever comes, leaves and is cancelled in whatever order, all room is free at the end and no more than there is was
// ever taken.
func TestGateKeepsItsRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := newGate(4, 1000, 1<<30, time.Hour)
	type entry struct {
		cancel context.CancelFunc
		done   chan func()
	}
	var all []entry
	for range 300 {
		if len(all) == 0 || r.IntN(3) > 0 {
			ctx, cancel := context.WithCancel(t.Context())
			e := entry{cancel, make(chan func(), 1)}
			key, seqs := fmt.Sprint(r.IntN(3)), 1+r.IntN(6)
			go func() {
				leave, _ := g.enter(ctx, key, seqs, 10)
				e.done <- leave
			}()
			all = append(all, e)
		} else {
			i := r.IntN(len(all))
			e := all[i]
			all = append(all[:i], all[i+1:]...)
			e.cancel() // perhaps at the moment of its admission
			if leave := <-e.done; leave != nil {
				leave()
			}
		}
		g.mu.Lock()
		if g.free < 0 || g.free > g.room {
			t.Fatalf("%d of %d free", g.free, g.room)
		}
		g.mu.Unlock()
	}
	for _, e := range all {
		e.cancel()
		if leave := <-e.done; leave != nil {
			leave()
		}
	}
	if requests, tokens := g.load(); g.free != 4 || requests != 0 || tokens != 0 || len(g.queues) != 0 ||
		len(g.turn) != 0 {
		t.Errorf("%d free of 4, %d requests and %d tokens wait", g.free, requests, tokens)
	}
}

// Both sides of each bound of the queue, and when to try again.
func TestGateOnBothSides(t *testing.T) {
	for _, c := range []struct {
		waiting, tokens, mine int
		delay                 time.Duration
		want                  string
	}{{0, 0, 999, 0, ""}, {1, 60, 40, 0, ""}, {1, 60, 41, 0, "60 tokens"}, {4, 4, 1, 0, ""}, {5, 5, 1, 0, "5 requests"},
		{1, 1, 1, 10 * time.Second, ""}, {1, 1, 1, 11 * time.Second, "11.0 s"}} {
		g := newGate(1, 5, 100, 10*time.Second)
		g.waiting, g.tokens, g.service = c.waiting, c.tokens, c.delay.Seconds()
		if c.waiting > 0 {
			g.queues["a"] = []*waiter{{seqs: 1}}
		}
		err := g.full("b", &waiter{seqs: 1, tokens: c.mine})
		var api *apiError
		if c.want == "" && err != nil || c.want != "" &&
			(!errors.As(err, &api) || !strings.Contains(api.Message, c.want) || api.Status != 429) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for service, want := range map[float64]time.Duration{0: time.Second, 1: time.Second, 20: 10 * time.Second,
		119: 59500 * time.Millisecond, 1e6: time.Minute} {
		g := newGate(1, 1, 100, time.Hour)
		g.waiting, g.service, g.queues["a"] = 1, service, []*waiter{{seqs: 1}}
		var api *apiError
		if err := g.full("b", &waiter{seqs: 1}); !errors.As(err, &api) || api.Retry != want {
			t.Errorf("%g s each: %v, want %v", service, api.Retry, want)
		}
	}
}

// Both sides of what a list of tools may be.
func TestToolBounds(t *testing.T) {
	tool := func(name string) string { return fmt.Sprintf(`{"type":"function","function":{"name":%q}}`, name) }
	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, tool(fmt.Sprint("f", i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for text, want := range map[string]int{`[]`: 0, list(1): 1, list(maxTools): maxTools, list(maxTools + 1): -1, "[" +
		tool(strings.Repeat("a", 64)) + "]": 1, "[" + tool(strings.Repeat("a", 65)) + "]": -1,
		"[" + tool("") + "]": -1, "[" + tool("a b") + "]": -1, "[" + tool("é") + "]": -1, "[" + tool("A-z_09") + "]": 1,
		`{}`: -1, `[3]`: -1, `[{"type":"function"}]`: -1, `[{"type":"x","function":{"name":"a"}}]`: -1,
		"[" + tool("a") + `,{"type":"function","function":{"name":"b","parameters":3}}]`: -1} {
		got, problem := checkTools(json.RawMessage(text))
		if want >= 0 && (problem != "" || len(got) != want) || want < 0 && problem == "" {
			t.Errorf("%.100s: %d tools, %q", text, len(got), problem)
		}
	}
}
