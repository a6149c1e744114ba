package infer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"antiphase/model"
)

// Steps are started ahead wherever the next one is known: all of a single token's, all but the prompt's own and the
// first after a longer one; also while others wait for a slot, and while the cache has just as many pages as are
// needed.
func TestAheadWheneverItCanBe(t *testing.T) {
	one, three := []int32{1}, []int32{1, 2, 3}
	for name, c := range map[string]struct {
		opt     Options
		prompts [][]int32
		tokens  int
		ahead   int
	}{
		"alone":                    {Options{}, [][]int32{one}, 20, 19},
		"two tokens":               {Options{}, [][]int32{one}, 2, 1},
		"one token":                {Options{}, [][]int32{one}, 1, 0},
		"a prompt":                 {Options{}, [][]int32{three}, 20, 18},
		"a full cache":             {Options{PageSize: 4, CacheTokens: 24}, [][]int32{three}, 21, 19},
		"a full cache of three":    {Options{PageSize: 4, CacheTokens: 3 * 24}, [][]int32{three, three, three}, 21, 19},
		"together":                 {Options{Slots: 2}, [][]int32{one, one}, 20, 19},
		"one after the other":      {Options{Slots: 1}, [][]int32{one, one}, 20, 2 * 19},
		"more than there are rows": {Options{Slots: 2}, [][]int32{one, one, one, one}, 10, 2 * 9},
	} {
		_, m, _ := onBehind(t, "diff")
		e := engine(t, m, nil, c.opt)
		var reqs []Request
		for _, ids := range c.prompts {
			reqs = append(reqs, Request{IDs: ids, Sampling: Sampling{MaxTokens: c.tokens}})
		}
		ahead := 0
		err := e.Stream(t.Context(), reqs, func(int, Event) bool { return true }, func() {
			if e.pass.underWay() {
				ahead++
			}
		})
		if err != nil || ahead != c.ahead {
			t.Errorf("%s: %d steps were started ahead, want %d (%v)", name, ahead, c.ahead, err)
		}
		drained(t, e)
	}
}

// A batch in which one sequence is sampled, scored or adjusted takes no page before the step that fills it: after every
// event as many are free as on a device that does not work ahead.
func TestPagesOfWhatIsSampled(t *testing.T) {
	greedy := Request{IDs: []int32{1}, Sampling: Sampling{MaxTokens: 20, IgnoreEOS: true}}
	for name, s := range map[string]Sampling{
		"sampled": {Temperature: 1}, "log-probabilities": {Logprobs: 1}, "a penalty": {PresencePenalty: 1},
		"an echo": {Echo: true},
	} {
		s.MaxTokens, s.IgnoreEOS = 20, true
		plain, ahead, _ := onBehind(t, "diff")
		var free [2][]int
		for i, m := range []*model.Model{plain, ahead} {
			e := engine(t, m, nil, Options{PageSize: 4})
			err := e.Generate(t.Context(), []Request{{IDs: []int32{2}, Sampling: s}, greedy}, func(int, Event) bool {
				free[i] = append(free[i], e.Stats().FreePages)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			drained(t, e)
		}
		if !slices.Equal(free[0], free[1]) {
			t.Errorf("%s: free pages %v, ahead %v", name, free[0], free[1])
		}
	}
}

// A claim that is given up while a step is in flight lets those who wait for it go on.
func TestGivingUpWakesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m, _ := onBehind(t, "diff")
		e := engine(t, m, nil, Options{})
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gone"))
		given := 0
		var wg sync.WaitGroup
		long := []Request{{IDs: []int32{1}, Sampling: Sampling{MaxTokens: 20}}}
		err := e.Generate(t.Context(), long, func(int, Event) bool {
			if given++; given != 5 {
				return true
			}
			if !e.pass.underWay() {
				t.Error("no step is in flight")
			}
			claim := newTurn(e)
			e.mu.Lock()
			e.claims++
			e.mu.Unlock()
			wg.Go(func() { generate(t, e, Request{IDs: []int32{2}, Sampling: Sampling{MaxTokens: 3}}) })
			if synctest.Wait(); len(e.sched.queue) != 1 {
				t.Errorf("%d requests wait for the claim", len(e.sched.queue))
			}
			e.mu.Lock()
			if claim.await(gone) {
				t.Error("who has left got the turn")
			}
			claim.end()
			if synctest.Wait(); len(e.sched.queue) != 0 {
				t.Error("the request still waits")
			}
			return true
		})
		if wg.Wait(); err != nil || given != 20 {
			t.Errorf("%d events, %v", given, err)
		}
		drained(t, e)
	})
}

// Who leaves while a step computes its row is in the batch until the step has ended: the row's pages are in use.
func TestLeavingWaitsForTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m, b := onBehind(t, "diff")
		e := engine(t, m, nil, Options{PageSize: 4})
		req := []Request{{IDs: []int32{1}, Sampling: Sampling{MaxTokens: 20}}}
		leave, left := make(chan struct{}), make(chan struct{})
		given := 0
		err := e.Generate(t.Context(), req, func(int, Event) bool {
			if given++; given != 2 {
				return true
			}
			go func() {
				if err := e.Generate(t.Context(), req, func(int, Event) bool { <-leave; return false }); err != nil {
					t.Error(err)
				}
				close(left)
			}()
			synctest.Wait() // it has run a step, and its emit waits
			b.at[b.advanced+2] = func() {
				close(leave)
				synctest.Wait()
				if s := e.sched.batch; len(s) != 2 || !e.stepping {
					t.Errorf("%d sequences are in the batch that is computed, want 2", len(s))
				}
			}
			return true
		})
		if <-left; err != nil || given != 20 {
			t.Errorf("%d events, %v", given, err)
		}
		drained(t, e)
	})
}

// Who waits for the end of work beside generation gets its turn then.
func TestTurnsFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m, _ := onBehind(t, "diff")
		e := engine(t, m, nil, Options{})
		order := ""
		err := e.Beside(t.Context(), func(_ *model.Model, rest func()) error {
			go func() {
				if err := e.Use(t.Context(), func(*model.Model) error { order += "use "; return nil }); err != nil {
					t.Error(err)
				}
			}()
			for range 3 {
				synctest.Wait()
				rest()
				order += "piece "
			}
			return nil
		})
		if synctest.Wait(); err != nil || order != "piece piece piece use " {
			t.Errorf("%s, %v", order, err)
		}
		drained(t, e)
	})
}

// A cancelled call tells every request that is still open, once and without a token; those that have ended or left hear
// nothing further.
func TestCancelledOnce(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var last [4]Event
	var events [4]int
	reqs := make([]Request, 4)
	for i, n := range []int{1, 9, 9, 9} { // the first has ended by then
		reqs[i] = Request{IDs: []int32{1, 2}, Sampling: Sampling{MaxTokens: n, IgnoreEOS: true}}
	}
	err := e.Generate(ctx, reqs, func(i int, ev Event) bool {
		last[i], events[i] = ev, events[i]+1
		if i == 3 && events[3] == 3 {
			cancel(why)
		}
		return i != 1 // the second leaves at once
	})
	if err != why || events != [4]int{1, 1, 4, 4} {
		t.Errorf("%v events, %v", events, err)
	}
	for i, want := range []string{ReasonLength, "", ReasonCancelled, ReasonCancelled} {
		if ev := last[i]; ev.Reason != want || ev.Done != (want != "") ||
			(ev.ID < 0) != (want == ReasonCancelled) || ev.ID < -1 {
			t.Errorf("request %d ended with %+v, want %q", i, ev, want)
		}
	}
	drained(t, e)
}
