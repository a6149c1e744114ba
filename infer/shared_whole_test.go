package infer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
)

// most is the index of the largest logit.
func most(row []float32) int32 {
	best := 0
	for i, x := range row {
		if x > row[best] {
			best = i
		}
	}
	return int32(best)
}

// walkRow is a row of a walk: what is shown before its token t.
type walkRow struct{ walk, t int }

// aloneTokens are the likeliest tokens of every row that is wanted, each by a pass over its whole sequence alone.
func aloneTokens(t *testing.T, m *model.Model, walks []Walk) map[walkRow]int32 {
	t.Helper()
	vocab := m.Config.Vocab
	last := func(ids []int32) []float32 { // of every row
		logits := make([]float32, len(ids)*vocab)
		if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, logits); err != nil {
			t.Fatal(err)
		}
		return logits
	}
	want := map[walkRow]int32{}
	for i, w := range walks {
		ids := slices.Clone(w.IDs)
		run := w.IDs
		if w.Grow == 0 {
			run = run[:len(run)-1] // nothing is wanted of the last row
		}
		for at := w.From; at < len(w.IDs); at++ {
			want[walkRow{i, at}] = most(last(run)[(at-1)*vocab : at*vocab])
		}
		for range w.Grow {
			row := last(ids)[(len(ids)-1)*vocab:]
			want[walkRow{i, len(ids)}] = most(row)
			ids = append(ids, most(row))
		}
		if w.Grow > 0 {
			want[walkRow{i, len(ids)}] = most(last(ids)[(len(ids)-1)*vocab:]) // what follows the last one is shown too
		}
	}
	return want
}

// sharedTokens are the likeliest tokens of every row that a scorer shows, each of them once; its cache is there from
// the run to Free.
func sharedTokens(t *testing.T, m *model.Model, walks []Walk, slots int, whole bool) map[walkRow]int32 {
	t.Helper()
	s := NewShared(m)
	if s.Bytes() != 0 {
		t.Error("a cache before it is needed")
	}
	s.Whole = whole
	got := map[walkRow]int32{}
	err := s.Run(t.Context(), walks, slots, func(i, at int, logits []float32) (int32, bool) {
		k := walkRow{i, at}
		if _, again := got[k]; again {
			t.Errorf("row %d of walk %d is shown twice", at, i)
		}
		got[k] = most(logits)
		return got[k], true
	})
	if err != nil || s.Bytes() == 0 {
		t.Fatalf("%d bytes, %v", s.Bytes(), err)
	}
	s.Free()
	if s.Bytes() != 0 {
		t.Error("the cache is there after Free")
	}
	return got
}

// Sequences that are run alone from their first token, those that grow included, show what the whole sequence alone
// computes, also where a scale spans its rows; each row once, whatever the number of slots.
func TestSharedWhole(t *testing.T) {
	for _, low := range []layer.Lowbit{{}, {Logits: 5, Per: layer.PerTensor},
		{Keys: 4, Values: 4, CachePer: layer.PerHead}} {
		m := build(t, ref.New(), modeltest.Tiny("diff", 50, 64))
		if err := m.SetLowbit(low); err != nil {
			t.Fatal(err)
		}
		walks := randomWalks(rand.New(rand.NewPCG(7, 7)), 5, 3, 4, 5)
		for i := range walks {
			walks[i].Grow = i % 4
			if walks[i].Grow > 0 {
				walks[i].From = len(walks[i].IDs) - i%2
			}
		}
		want := aloneTokens(t, m, walks)
		for _, slots := range []int{1, 2, 5, 9} {
			for _, whole := range []bool{true, false} {
				if !whole && low.Whole() {
					continue
				}
				got := sharedTokens(t, m, walks, slots, whole)
				for k, id := range want {
					if g, ok := got[k]; !ok || g != id {
						t.Errorf("%+v, whole %v, %d slots: token %d of walk %d is %d (shown: %v), want %d", low, whole,
							slots, k.t, k.walk, g, ok, id)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%+v, whole %v, %d slots: %d rows, want %d", low, whole, slots, len(got), len(want))
				}
			}
		}
		m.Free()
	}
}

// Nothing to run is no error; an end that was asked for stops a run in progress and leaves the scorer usable.
func TestSharedStops(t *testing.T) {
	m := build(t, ref.New(), modeltest.Tiny("diff", 50, 64))
	s := NewShared(m)
	defer s.Free()
	shown := 0
	count := func(int, int, []float32) (int32, bool) { shown++; return 3, true }
	if err := s.Run(t.Context(), nil, 3, count); err != nil || shown != 0 {
		t.Errorf("nothing: %v, %d rows", err, shown)
	}
	walk := []Walk{{IDs: []int32{1, 2, 3}, From: 1, Grow: 20}}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Run(ctx, walk, 1, func(_, at int, _ []float32) (int32, bool) {
		if at == 6 {
			cancel()
		}
		shown++
		return 3, true
	})
	if !errors.Is(err, context.Canceled) || shown > 8 {
		t.Errorf("%v after %d rows", err, shown)
	}
	// From token 1 of 3, and up to 20 that follow with the row after them.
	for more, want := range map[bool]int{true: 23, false: 3} {
		shown = 0
		err := s.Run(t.Context(), walk, 1, func(_, _ int, _ []float32) (int32, bool) { shown++; return 3, more })
		if err != nil || shown != want {
			t.Errorf("more %v: %d rows, want %d, %v", more, shown, want, err)
		}
	}
	backing := []int32{1, 2, 3, 4, 5, 6}
	for _, s.Whole = range []bool{false, true} { // what grows is not written behind the caller's ids
		err := s.Run(t.Context(), []Walk{{IDs: backing[:3], From: 1, Grow: 2}, {IDs: backing[:4], From: 2, Grow: 1}}, 2,
			func(int, int, []float32) (int32, bool) { return 9, true })
		if err != nil || !slices.Equal(backing, []int32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("whole %v: the caller's ids are %v, %v", s.Whole, backing, err)
		}
	}
}
