package infer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/model"
)

// spoil makes a token's vector NaN.
func spoil(m *model.Model, id int32) {
	p := m.Params.Lookup("embed.weight")
	x := make([]float32, p.Rows*p.Cols)
	device.ReadFloats(m.Device(), x, p.W)
	x[int(id)*p.Cols] = float32(math.NaN())
	m.Params.Set(m.Device(), p, x)
}

// A row of NaN fails its own request, with the place in the error; neighbours continue.
func TestNaNLogits(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		good := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{Temperature: 1, MaxTokens: 9}}
		want := generate(t, engine(t, m, nil, Options{}), good)[0]
		bad := int32(4)
		for slices.Contains(want.IDs, bad) {
			bad++
		}
		reqs := []Request{good, {IDs: []int32{1, bad, 2},
			Sampling: Sampling{Temperature: 1, MaxTokens: 9, Logprobs: 3, RepetitionPenalty: 1.1}}}
		spoil(m, bad)
		e := engine(t, m, nil, Options{PrefillChunk: 4})
		got := make([]answer, 2)
		err := e.Generate(context.Background(), reqs, func(i int, ev Event) bool { got[i].add(t, ev); return true })
		if err == nil || !strings.Contains(err.Error(),
			"request 1: infer: step 1, after 3 tokens: the logit of token 0 is NaN") {
			t.Errorf("error is %v", err)
		}
		if d := cmp.Diff(want, got[0]); d != "" || got[1].Reason != ReasonError {
			t.Errorf("the other request ended as %q and this one changed:\n%s", got[1].Reason, d)
		}
		if s := e.Stats(); s.FreePages != s.Pages {
			t.Errorf("left behind %+v", s)
		}
	})
}

// What a prompt that fails leaves in its pages is not found by another that begins like it: tokens before the NaN may
// be spoiled too. Also where pages were full some steps before.
func TestNaNIsNoPrefix(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		const bad = 40
		spoil(m, bad)
		head := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
		ask := func(rest ...int32) Request {
			return Request{IDs: slices.Concat(head, rest), Scope: "a", Sampling: Sampling{MaxTokens: 2}}
		}
		want := generate(t, engine(t, m, nil, Options{}), ask(10))
		for _, rest := range [][]int32{{bad}, {bad, 11, 12, 13, 14, 15, 16, 17, 18}} {
			e := engine(t, m, nil, Options{PageSize: 4, PrefillChunk: 12})
			if err := e.Generate(context.Background(), []Request{ask(rest...)},
				func(int, Event) bool { return true }); err == nil {
				t.Fatalf("%d passes", rest)
			}
			if d := cmp.Diff(want, generate(t, e, ask(10))); d != "" {
				t.Errorf("after %d failed:\n%s", rest, d)
			}
		}
	})
}

// faulty is a device that fails on demand.
type faulty struct {
	device.Device
	fault  error
	panics bool
}

func (f *faulty) Sync() error {
	if f.panics {
		panic("device lost")
	}
	return f.fault
}

func TestDeviceFaultEndsTheBatchNotTheEngine(t *testing.T) {
	d := &faulty{Device: ref.New()}
	e := engine(t, tiny(t, d, "diff"), nil, Options{})
	req := Request{IDs: []int32{1, 2}, Sampling: Sampling{MaxTokens: 4}}
	want := generate(t, e, req)
	run := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return e.Generate(context.Background(), []Request{req, req}, func(int, Event) bool { return true })
	}
	d.fault = errors.New("id out of range")
	if err := run(); !errors.Is(err, d.fault) {
		t.Errorf("fault came back as %v", err)
	}
	d.fault, d.panics = nil, true
	if err := run(); err == nil || err.Error() != "panic: device lost" {
		t.Errorf("panic came back as %v", err)
	}
	d.panics = false
	if d := cmp.Diff(want, generate(t, e, req)); d != "" {
		t.Errorf("after the faults:\n%s", d)
	}
	if s := e.Stats(); s.FreePages != s.Pages || s.Running+s.Waiting > 0 {
		t.Errorf("left behind %+v", s)
	}
}

// So does a row of an echoed prompt, as a whole and by its place.
func TestNaNInAnEcho(t *testing.T) {
	m := tiny(t, ref.New(), "diff")
	spoil(m, 9)
	e := engine(t, m, nil, Options{})
	reqs := []Request{{IDs: []int32{1, 2, 3}, Sampling: Sampling{Echo: true, MaxTokens: 2}},
		{IDs: []int32{1, 9, 3}, Sampling: Sampling{Echo: true, MaxTokens: 2}}}
	got := make([]answer, 2)
	err := e.Generate(t.Context(), reqs, func(i int, ev Event) bool { got[i].add(t, ev); return true })
	if err == nil || err.Error() != "request 1: infer: step 0, after 3 tokens: the logit of token 0 is NaN" {
		t.Errorf("error is %v", err)
	}
	if len(got[0].IDs) != 5 || got[0].Reason != ReasonLength || got[1].Reason != ReasonError {
		t.Errorf("%+v", got)
	}
	drained(t, e)
}
