package infer

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// scored runs walks and compares every row with that of the whole sequence alone.
func scored(t *testing.T, s *Shared, ctx context.Context, slots int, walks ...Walk) error {
	t.Helper()
	vocab := s.m.Config.Vocab
	whole := make([][]float32, len(walks))
	for i, w := range walks {
		whole[i] = make([]float32, len(w.IDs)*vocab)
		if err := s.m.Logits(&model.Batch{B: 1, T: len(w.IDs), IDs: w.IDs}, whole[i]); err != nil {
			t.Fatal(err)
		}
	}
	return s.Run(ctx, walks, slots, func(i, at int, logits []float32) (int32, bool) {
		id := walks[i].IDs[at]
		want, got := logSoftmax(whole[i][(at-1)*vocab:at*vocab], id), logSoftmax(logits, id)
		if !(math.Abs(got-want) <= 2e-4) {
			t.Errorf("walk %d, token %d: %g, want %g", i, at, got, want)
		}
		return 0, false
	})
}

// tails are walks of a head and a few tokens of their own each.
func tails(head []int32, n, length int) (list []Walk) {
	for i := range n {
		ids := slices.Clone(head)
		for k := range length {
			ids = append(ids, int32((7*i+3*k+1)%50))
		}
		list = append(list, Walk{IDs: ids, From: len(head) + 1})
	}
	return list
}

func ramp(n, by int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*by + i*i) % 50)
	}
	return ids
}

// What the cache holds of an earlier call is used only where it is still true: the same head after the cache had to
// grow, a head that goes on, one that is shorter or parts from it, and after the weights have changed.
func TestSharedHeadStaysTrue(t *testing.T) {
	s := NewShared(build(t, newCPU(t), modeltest.Tiny("diff", 50, 300)))
	defer s.Free()
	head := ramp(160, 3)
	other := slices.Clone(head)
	other[70]++
	check := func(name string, slots int, walks []Walk) {
		t.Helper()
		if err := scored(t, s, t.Context(), slots, walks...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("at first", 2, tails(head[:64], 4, 3))
	check("more slots", 5, tails(head[:64], 5, 3))
	check("longer walks", 5, tails(head[:64], 4, 90))
	check("a longer head", 2, tails(head[:130], 4, 3))
	check("a shorter head", 2, tails(head[:40], 4, 3))
	check("the long one again", 2, tails(head, 4, 3))
	check("one that parts from it", 2, tails(other, 4, 3))
	check("a single walk", 2, tails(other[:100], 1, 5))
	p := s.m.Params.Lookup("embed.weight")
	x := make([]float32, p.Rows*p.Cols)
	device.ReadFloats(s.m.Device(), x, p.W)
	for i := range x {
		x[i] = -2 * x[i]
	}
	s.Free()
	s.m.Params.Set(s.m.Device(), p, x)
	check("other weights", 2, tails(other, 4, 3))
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// A head that was not computed to its end does not count as there.
func TestSharedHeadIsWhole(t *testing.T) {
	s := NewShared(build(t, newCPU(t), modeltest.Tiny("transformer", 50, 700)))
	defer s.Free()
	walks := tails(ramp(s.most()+64, 3), 2, 2) // in two steps, between which the call ends
	nothing := func(int, int, []float32) (int32, bool) { t.Error("a row is shown"); return 0, false }
	if err := s.Run(&ending{t.Context(), 1}, walks, 2, nothing); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := scored(t, s, t.Context(), 2, walks...); err != nil {
		t.Error(err)
	}
}

// The size of a cache by hand, what bounds its slots, and that a call with fewer does not shrink it.
func TestSharedSize(t *testing.T) {
	s := NewShared(build(t, ref.New(), modeltest.Tiny("diff", 50, 300)))
	defer s.Free()
	size := func(pages int) int { return pages * sharedPage * s.m.CacheBytes() }
	for _, c := range []struct {
		name                 string
		head, longest, slots int
		want, pages          int
	}{
		{"two slots of 40", 0, 40, 2, 2, 4}, {"a head of two pages", 64, 100, 3, 3, 2 + 3*2},
		{"less", 32, 40, 1, 1, 2 + 3*2},
		{"a head that grows takes twice the room", 128, 130, 2, 2, 8 + 2*1},
		{"at most the context", 256, 300, 1, 1, 10 + 2},
	} {
		if got := s.reserve(c.head, c.longest, c.slots); got != c.want || s.Bytes() != size(c.pages) {
			t.Errorf("%s: %d slots in %d bytes, want %d in %d", c.name, got, s.Bytes(), c.want, size(c.pages))
		}
	}
	const page = 1 << 20 // 512 pages in all
	for _, c := range []struct{ slots, room, own, want int }{
		{8, 0, 10, 8}, {60, 0, 10, 51}, {60, 12, 10, 50}, {60, 13, 10, 49}, {4, 0, 600, 1},
		{4, 600, 10, 1}, {0, 0, 1, 1},
	} {
		if got := sharedSlots(c.slots, c.room, c.own, page); got != c.want {
			t.Errorf("%+v: %d slots", c, got)
		}
	}
}

// widest records the largest number of rows embedded at once.
type widest struct {
	device.Device
	rows int
}

func (w *widest) Embed(x, table, ids tensor.Tensor) {
	w.rows = max(w.rows, ids.Cols)
	w.Device.Embed(x, table, ids)
}

// A step has as many rows as fit and no more, for a head, for walks and for whole sequences; only a whole sequence that
// is longer than a step has one to itself.
func TestSharedRowsOfAStep(t *testing.T) {
	dev := &widest{Device: newCPU(t)}
	s := NewShared(build(t, dev, modeltest.Tiny("transformer", 50, 1400)))
	defer s.Free()
	apart := func(n, length int) (list []Walk) { // nothing in common
		for i := range n {
			list = append(list, Walk{IDs: append([]int32{int32(i)}, ramp(length, i+2)...), From: length})
		}
		return list
	}
	most, slots := s.most(), 0
	for _, c := range []struct {
		name  string
		whole bool
		walks []Walk
		want  int
	}{
		{"a head", false, tails(ramp(2*most, 3), 2, 2), most}, {"walks", false, apart(4, most/2), most},
		{"a long walk", false, apart(1, most+most/2), most},
		{"whole sequences", true, apart(5, most/2-10), 2 * (most/2 - 10)},
		{"that just fit", true, apart(4, most/2), most},
		{"that just do not", true, apart(4, most/2+1), most/2 + 1},
		{"one that is longer", true, apart(2, most+7), most + 7},
	} {
		dev.rows, s.Whole = 0, c.whole
		if err := s.Run(t.Context(), c.walks, 4,
			func(int, int, []float32) (int32, bool) { return 0, false }); err != nil {
			t.Fatal(err)
		}
		if dev.rows != c.want {
			t.Errorf("%s: a step of %d rows, want %d", c.name, dev.rows, c.want)
		}
		slots = max(slots, s.cache.Slots)
	}
	if slots != 4 {
		t.Errorf("%d sequences may be in flight, want 4", slots)
	}
}
