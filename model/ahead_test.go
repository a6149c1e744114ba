package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// forward is a device that works ahead: a fetch gives what was there when it was started.
type forward struct {
	device.Device
	fetches, freed, room int
	advanced             int
	fault                error
}

func (d *forward) Advance(ids, pos, best tensor.Tensor) {
	device.CheckAdvance(ids, pos, best)
	d.advanced++
	x, p := make([]int32, ids.Cols), make([]int32, ids.Cols)
	device.ReadI32(d.Device, x, best)
	device.ReadI32(d.Device, p, pos)
	for i := range p {
		x[i], p[i] = max(x[i], 0), p[i]+1
	}
	device.WriteI32(d.Device, ids, x)
	device.WriteI32(d.Device, pos, p)
}

func (d *forward) NewFetch(bytes int) device.Fetch {
	d.fetches++
	d.room = bytes
	return &taken{d: d}
}

type taken struct {
	d    *forward
	copy []byte
}

func (f *taken) Start(src tensor.Tensor) {
	f.copy = make([]byte, 4*src.Cols)
	f.d.Read(f.copy, src)
}

func (f *taken) Wait(dst []byte) error {
	copy(dst, f.copy)
	return f.d.fault
}

func (f *taken) Free() { f.d.freed++ }

// twoSlots is a cache of two slots with a page each; grow assigns them another before the step of a position.
func twoSlots(m *Model) *Cache {
	k := m.NewCache(8, 3, 2, 4)
	for s := range 2 {
		k.Assign(s, 0, int32(s))
	}
	return k
}

func grow(k *Cache, pos int) {
	if pos%3 == 0 {
		for s := range 2 {
			k.Assign(s, pos/3, int32(7-2*(pos/3)+s))
		}
	}
}

// fed are the most likely tokens of steps that the host feeds with those of the step before.
func fed(t *testing.T, m *Model, ids []int32, steps int) (out [][]int32) {
	t.Helper()
	k, best := twoSlots(m), make([]int32, 2)
	defer k.Free()
	for pos := range int32(steps) {
		grow(k, int(pos))
		if err := k.Run(Rows{IDs: ids, Slots: []int32{0, 1}, Pos: []int32{pos, pos},
			Want: []int32{0, 1}}); err != nil {
			t.Fatal(err)
		}
		if err := k.ReadBest(best); err != nil {
			t.Fatal(err)
		}
		ids = slices.Clone(best)
		out = append(out, ids)
	}
	return out
}

// Steps that follow without the host having seen a token write what steps fed by the host write, for every
// architecture, on pages that are assigned while steps are in flight. Fetches arrive in the order of their steps.
func TestFollowEqualsSteps(t *testing.T) {
	for name, c := range configs(t) {
		d := &forward{Device: ref.New()}
		m := newModel(t, d, c)
		const steps = 8
		want, best := fed(t, m, []int32{4, 9}, steps), make([]int32, 2)
		k := twoSlots(m)
		if k.Ahead() != 2 {
			t.Fatalf("%s: %d rows ahead of 2 slots", name, k.Ahead())
		}
		grow(k, 0)
		if err := k.Run(Rows{IDs: []int32{4, 9}, Slots: []int32{0, 1}, Pos: []int32{0, 0},
			Want: []int32{0, 1}}); err != nil {
			t.Fatal(err)
		}
		k.FetchBest()
		for pos := 1; pos < steps; pos++ {
			grow(k, pos)
			k.Follow(2)
			k.FetchBest()
			if k.Fetching() != 2 {
				t.Errorf("%s: %d in flight, want 2", name, k.Fetching())
			}
			if err := k.WaitBest(best); err != nil || !slices.Equal(best, want[pos-1]) {
				t.Fatalf("%s: step %d gives %v, want %v (%v)", name, pos-1, best, want[pos-1], err)
			}
		}
		d.fault = errors.New("lost")
		if err := k.WaitBest(best); !errors.Is(err, d.fault) || !slices.Equal(best, want[steps-1]) ||
			k.Fetching() != 0 {
			t.Errorf("%s: the last step gives %v, want %v; %v", name, best, want[steps-1], err)
		}
		k.Free()
		if d.fetches != 2 || d.freed != 2 || d.room != 4*2 {
			t.Errorf("%s: %d fetches of %d bytes, %d freed", name, d.fetches, d.room, d.freed)
		}
		m.Free()
	}
}

// Nothing follows a step of other rows, one with rows that are not wanted, or nothing; a third fetch has no place; a
// device that does not work ahead takes no rows.
func TestFollowRefuses(t *testing.T) {
	c := configs(t)["diff/base"]
	plain := newModel(t, ref.New(), c)
	defer plain.Free()
	still := plain.NewCache(4, 4, 2, 2)
	defer still.Free()
	one := Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{0}, Want: []int32{0}}
	if err := still.Run(one); err != nil || still.Ahead() != 0 {
		t.Errorf("%d rows ahead on a synchronous device; %v", still.Ahead(), err)
	}
	m := newModel(t, &forward{Device: ref.New()}, c)
	defer m.Free()
	k := m.NewCache(4, 4, 2, 2)
	defer k.Free()
	panics := func(what string, f func()) {
		t.Helper()
		defer func() {
			if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "model: ") {
				t.Errorf("%s: %s", what, text)
			}
		}()
		f()
	}
	panics("following nothing", func() { k.Follow(0) })
	panics("following no step", func() { k.Follow(1) })
	panics("following on a synchronous device", func() { still.Follow(1) })
	run := func(r Rows) {
		t.Helper()
		if err := k.Run(r); err != nil {
			t.Fatal(err)
		}
	}
	run(Rows{IDs: []int32{1, 2}, Slots: []int32{0, 0}, Pos: []int32{0, 1}, Want: []int32{1}})
	panics("following a prompt", func() { k.Follow(1) })
	run(Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{2}, Want: []int32{0}})
	panics("following other rows", func() { k.Follow(2) })
	k.FetchBest()
	k.FetchBest()
	panics("a third fetch", func() { k.FetchBest() })
	run(Rows{IDs: []int32{1, 2}, Slots: []int32{0, 0}, Pos: []int32{3, 4}, Want: []int32{1}})
	panics("following the step before a prompt", func() { k.Follow(1) })
	many := m.NewCache(300, 1, 300, 1)
	if many.Ahead() != maxSteady {
		t.Errorf("%d rows ahead of 300 slots, want %d", many.Ahead(), maxSteady)
	}
	many.Free()
	c.Vocab = 20
	d := &forward{Device: ref.New()}
	part, err := New(d, c, layer.Memory{Split: layer.NewSplit(paper(2))})
	if err != nil {
		t.Fatal(err)
	}
	k = part.NewCache(4, 4, 2, 2)
	if err := k.Run(one); err != nil {
		t.Fatal(err)
	}
	if k.Ahead() != 0 || d.advanced != 0 {
		t.Errorf("%d rows ahead where a rank has a part of the vocabulary, %d steps advanced", k.Ahead(), d.advanced)
	}
}
