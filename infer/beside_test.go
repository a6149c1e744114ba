package infer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"antiphase/layer"
	"antiphase/model"
)

// TestBesideSharesTheDevice: work in pieces beside generation. As long as there is a sequence, every rest computes a
// step, and at most one more that somebody else had begun; none runs within a piece. What is generated, and what is
// computed beside it, has the bits that it has alone.
func TestBesideSharesTheDevice(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{Slots: 4})
	b := &model.Batch{B: 1, T: 30, IDs: make([]int32, 30)}
	alone := make([]float32, 30*16)
	if err := m.Hidden(b, func() {}, alone); err != nil {
		t.Fatal(err)
	}
	long := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 60, Temperature: 1, Seed: 1, IgnoreEOS: true}}
	want := generate(t, e, long)
	var got []answer
	var wg sync.WaitGroup
	began := e.Stats().Steps
	wg.Go(func() { got = generate(t, e, long) })
	for e.Stats().Steps == began {
		time.Sleep(10 * time.Microsecond)
	}
	rests := 0
	err := e.Beside(context.Background(), func(twin *model.Model, rest func()) error {
		if err := twin.Intervene(layer.Intervention{Heads: []int{0}, Knockout: true}); err != nil {
			return err
		}
		if err := twin.Intervene(); err != nil {
			return err
		}
		last := e.Stats()
		counted := func() {
			before := e.Stats()
			if before.Steps != last.Steps {
				t.Errorf("%d steps within a piece", before.Steps-last.Steps)
			}
			rest()
			last = e.Stats()
			rests++
			if n := last.Steps - before.Steps; before.Running > 0 && (n < 1 || n > 2) {
				t.Errorf("rest %d: %d steps", rests, n)
			}
		}
		for range 10 {
			beside := make([]float32, len(alone))
			if err := twin.Hidden(b, counted, beside); err != nil {
				return err
			}
			if d := cmp.Diff(alone, beside); d != "" {
				t.Errorf("beside generation: %s", d)
			}
		}
		return nil
	})
	wg.Wait()
	if err != nil || rests != 20 {
		t.Errorf("%v after %d rests", err, rests)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the neighbour's answer changed: %s", d)
	}
	drained(t, e)
}

// TestBesideComesToItsTurn: where steps are started ahead, one is always in flight; a call that wants the device still
// gets it at once, and one that has waited too long for its turn lets the others continue. In synctest's bubble waiting
// for ever fails.
func TestBesideComesToItsTurn(t *testing.T) { synctest.Test(t, besideComesToItsTurn) }

func besideComesToItsTurn(t *testing.T) {
	_, ahead, b := onBehind(t, "diff")
	e := engine(t, ahead, nil, Options{PageSize: 4})
	long := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 60}}
	want := generate(t, e, long)
	var wg sync.WaitGroup
	steps := 0
	b.at[b.advanced+3] = func() { // in the midst of it
		wg.Go(func() {
			err := e.Beside(context.Background(), func(_ *model.Model, rest func()) error {
				steps = e.Stats().Steps
				for range 3 {
					if e.pass.underWay() {
						t.Error("a step is in flight within a piece")
					}
					rest()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if e.claims != 1 {
			t.Errorf("%d claims while it waits for the step", e.claims)
		}
	}
	b.at[b.advanced+30] = func() { // who has left gives up, and nobody waits for it
		wg.Go(func() {
			gone, cancel := context.WithCancelCause(context.Background())
			why := errors.New("gone")
			cancel(why)
			if err := e.Use(gone, func(*model.Model) error { return nil }); err != nil && !errors.Is(err, why) {
				t.Error(err)
			}
		})
	}
	first := e.Stats().Steps
	got := generate(t, e, long)
	wg.Wait()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the neighbour's answer changed: %s", d)
	}
	if n := steps - first; n > 6 {
		t.Errorf("it came to its turn after %d steps of 60", n)
	}
	drained(t, e)
	if e.claims+e.beside != 0 {
		t.Errorf("%d claims and %d calls are left", e.claims, e.beside)
	}
}

// TestBesidePanics: work that panics, in a piece or within a step that it runs for others, leaves the engine as it was.
func TestBesidePanics(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	e := engine(t, m, nil, Options{Slots: 2})
	want := generate(t, e, mixed()...)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = e.Beside(context.Background(), func(*model.Model, func()) error { panic("a piece") })
	}()
	if d := cmp.Diff(want, generate(t, e, mixed()...)); d != "" {
		t.Error(d)
	}
	drained(t, e)
	if e.claims+e.beside != 0 {
		t.Errorf("%d claims and %d calls are left", e.claims, e.beside)
	}
}
