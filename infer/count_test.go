package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/model"
	"antiphase/tensor"
)

// What a caller sees of the load while it has it: sequences in the batch and in the queue, and pages in use.
func TestStatsMeanwhile(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4, CacheTokens: 40})
	req := Request{IDs: []int32{1, 2, 3, 4, 5}, Sampling: Sampling{MaxTokens: 2, IgnoreEOS: true}}
	var first *Stats
	if err := e.Generate(context.Background(), []Request{req, req, req, req, req}, func(int, Event) bool {
		if first == nil {
			s := e.Stats()
			first = &s
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := Stats{Running: 2, Waiting: 3, Pages: 10, FreePages: 10 - 2*2, Steps: 1, Rows: 10}
	if d := cmp.Diff(&want, first); d != "" {
		t.Error(d)
	}
	// Two at a time: a step of prompts and one of second tokens for each pair, then for the last.
	if s := e.Stats(); s != (Stats{Pages: 10, FreePages: 10, Steps: 6, Rows: 5 * 6}) {
		t.Errorf("%+v", s)
	}
}

// Who waits gives its pages from the end of the queue, never the one for whom they are taken.
func TestEvictFromTheQueue(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4, CacheTokens: 32})
	c := &scheduler{}
	var stats Stats
	c.init(2, &e.store, &stats)
	list := make([]*seq, 4)
	for i := range list {
		list[i] = &seq{tokens: []int32{1, 2, 3, 4, 5}, end: 8}
		c.enqueue(list[i])
		if i != 3 { // the last has none
			page, _ := e.store.pool.take()
			list[i].pages = []int32{page}
		}
	}
	for _, want := range []int{2, 0} { // for the second
		if !c.evict(list[1]) || len(list[want].pages) != 0 {
			t.Errorf("request %d keeps its pages", want)
		}
	}
	if c.evict(list[1]) || len(list[1].pages) != 1 || stats.Evicted != 2 || len(c.queue) != 4 {
		t.Errorf("%+v, %d wait", stats, len(c.queue))
	}
}

// A prompt of any length takes pages from as many idle sessions as it needs, those idle longest first, and no more; a
// session without pages does not count.
func TestEvictNoMoreThanNeeded(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4, CacheTokens: 32})
	for n := 1; n < 32; n++ {
		c := &scheduler{}
		var stats Stats
		c.init(2, &e.store, &stats)
		held := []int{2, 0, 1, 2} // of 8 pages
		list := make([]*seq, len(held))
		for i, pages := range held {
			list[i] = &seq{keep: true}
			for range pages {
				page, _ := e.store.pool.take()
				list[i].pages = append(list[i].pages, page)
			}
			c.release(list[i])
		}
		s := &seq{tokens: make([]int32, n), end: 32}
		c.enqueue(s)
		c.admit()
		free, evicted := 3, 0
		for i, pages := range held {
			took := pages > 0 && free < (n+1+3)/4 // and room for one more token
			if took {
				free += pages
				evicted++
			}
			if kept := len(list[i].pages); kept != pages && !took || kept != 0 && took {
				t.Errorf("%d tokens: session %d keeps %d pages of %d", n, i, kept, pages)
			}
		}
		if cap(s.tokens) < 32 || cap(s.pages) < 8 {
			t.Errorf("%d tokens: there is room for %d tokens and %d pages before steps allocate", n,
				cap(s.tokens), cap(s.pages))
		}
		if s.state != running || stats.Evicted != evicted {
			t.Errorf("%d tokens: %d sessions lost their pages, want %d", n, stats.Evicted, evicted)
		}
		for _, s := range append(list, s) {
			e.store.drop(s)
		}
	}
}

// Tokens that end a text do not come before min_tokens: those of the model and those of the request, but not an
// end-of-text token that is to be ignored. An engine may have no ends at all.
func TestMinTokensOfEveryEnd(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{EOS: []int32{48, 49}})
	want := func(id int32) []TokenBias { return []TokenBias{{ID: id, Bias: 1000}} }
	for _, c := range []struct {
		name   string
		s      Sampling
		tokens int
		reason string
	}{
		{"first end", Sampling{Bias: want(48), MinTokens: 3}, 4, ReasonEOS},
		{"second end", Sampling{Bias: want(49), MinTokens: 3}, 4, ReasonEOS},
		{"a stop id", Sampling{Bias: want(7), MinTokens: 3, StopIDs: []int32{5, 7}}, 4, ReasonStop},
		{"a stop id, ends ignored", Sampling{Bias: want(7), MinTokens: 3, StopIDs: []int32{7}, IgnoreEOS: true},
			4, ReasonStop},
		{"ignored", Sampling{Bias: want(49), MinTokens: 3, IgnoreEOS: true}, 6, ReasonLength},
	} {
		c.s.MaxTokens = 6
		a := generate(t, e, Request{IDs: []int32{1, 2}, Sampling: c.s})[0]
		forced := slices.Contains(a.IDs[:3], c.s.Bias[0].ID)
		if len(a.IDs) != c.tokens || a.Reason != c.reason || forced != (c.name == "ignored") {
			t.Errorf("%s: %v because of %q", c.name, a.IDs, a.Reason)
		}
	}
	if got := engine(t, chain(t, newCPU(t), "ab"), bytesTokenizer(t), Options{EOS: []int32{}}).EOS(); len(got) != 0 {
		t.Errorf("an engine without ends has %v", got)
	}
}

// A prompt is the caller's: what is generated is not written behind it, though there is room.
func TestPromptsStayAsTheyAre(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{})
	all := make([]int32, 40)
	for i := range all {
		all[i] = int32(i)
	}
	want := slices.Clone(all)
	generate(t, e, Request{IDs: all[:5], Sampling: Sampling{MaxTokens: 9}},
		Request{IDs: all[:9], Sampling: Sampling{Echo: true, MaxTokens: 4}})
	s := e.NewSession()
	defer s.Close()
	s.Prompt(all[:6])
	say(t, s, Sampling{MaxTokens: 4})
	s.Prompt(all[:3])
	s.Append(49)
	say(t, s, Sampling{MaxTokens: 4})
	if !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
}

// knowing is a lock that knows whether it is held.
type knowing struct{ taken, times int }

func (l *knowing) Lock()   { l.taken++; l.times++ }
func (l *knowing) Unlock() { l.taken-- }

// locked is a device that is used only while a lock is held.
type locked struct {
	device.Device
	t    *testing.T
	lock *knowing
}

func (d *locked) Embed(x, table, ids tensor.Tensor) {
	if d.lock.taken != 1 {
		d.t.Errorf("the device computes while its lock is held %d times", d.lock.taken)
	}
	d.Device.Embed(x, table, ids)
}

func (d *locked) Sync() error {
	if d.lock.taken != 1 {
		d.t.Errorf("the device is waited for while its lock is held %d times", d.lock.taken)
	}
	return d.Device.Sync()
}

// Engines that share a device share a lock: it is held for every step and every piece of other work, and free while
// callers have their events and between pieces.
func TestLockIsHeld(t *testing.T) {
	lock := &knowing{}
	e := engine(t, tiny(t, &locked{ref.New(), t, lock}, "diff"), nil,
		Options{Lock: lock, Commit: true, PrefillChunk: 4})
	free := func(when string) {
		t.Helper()
		if lock.taken != 0 {
			t.Errorf("%s: the lock is held %d times", when, lock.taken)
		}
	}
	free("after the beginning")
	reqs := []Request{{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 5}},
		{IDs: []int32{4}, Sampling: Sampling{Temperature: 1, MaxTokens: 3}}}
	lock.times = 0
	if err := e.Generate(t.Context(), reqs, func(int, Event) bool { free("in an event"); return true }); err != nil ||
		lock.times != e.Stats().Steps {
		t.Errorf("%d steps took the lock %d times, %v", e.Stats().Steps, lock.times, err)
	}
	why := errors.New("its own")
	for range 2 {
		if err := e.Use(t.Context(), func(m *model.Model) error {
			if lock.taken != 1 {
				t.Errorf("in Use the lock is held %d times", lock.taken)
			}
			return why
		}); err != why {
			t.Error(err)
		}
		free("after Use")
		out := make([]float32, 3*16)
		if err := e.Beside(t.Context(), func(m *model.Model, rest func()) error {
			if m == e.model || m != e.twin {
				t.Error("Beside does not pass the twin")
			}
			return errors.Join(m.Hidden(&model.Batch{B: 1, T: 3, IDs: []int32{1, 2, 3}}, rest, out), why)
		}); !errors.Is(err, why) {
			t.Error(err)
		}
		free("after Beside")
	}
}

// Who waits for Beside while another is in it leaves when its context ends, and is told why.
func TestBesideWaitsInTurn(t *testing.T) {
	e := engine(t, tiny(t, ref.New(), "diff"), nil, Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	ran := false
	for range 2 {
		if err := e.Beside(t.Context(), func(*model.Model, func()) error {
			if err := e.Beside(ctx, func(*model.Model, func()) error { ran = true; return nil }); err != why || ran {
				t.Errorf("a second call beside the first: %v, ran %v", err, ran)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if e.claims+e.beside != 0 || len(e.aside) != 1 {
		t.Errorf("%d claims, %d calls, %d tokens", e.claims, e.beside, len(e.aside))
	}
}

// A step that panics ends the calls of others with an error that names the step, and they get nothing further.
func TestPanicReachesOthers(t *testing.T) {
	d := &faulty{Device: ref.New()}
	e := engine(t, tiny(t, d, "diff"), nil, Options{})
	req := Request{IDs: []int32{1, 2}, Sampling: Sampling{MaxTokens: 9}}
	var reasons []string
	step := 0
	err := e.Generate(t.Context(), []Request{req}, func(_ int, ev Event) bool {
		reasons = append(reasons, ev.Reason)
		if len(reasons) != 3 {
			return true
		}
		d.panics, step = true, e.Stats().Steps
		func() {
			defer func() { _ = recover() }()
			_ = e.Generate(t.Context(), []Request{req}, func(int, Event) bool { t.Error("an event"); return true })
			t.Error("the panic was lost")
		}()
		d.panics = false
		return true
	})
	if want := fmt.Sprintf("request 0: infer: step %d panicked", step); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got := strings.Join(reasons, ","); got != ",,,"+ReasonError {
		t.Errorf("reasons %q", got)
	}
	drained(t, e)
}
