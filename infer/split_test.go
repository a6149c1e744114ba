package infer

import (
	"fmt"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
)

// together generates on a model that n ranks hold together: the first has the engine, the others do what it tells.
func together(t *testing.T, c model.Config, n int, open func() device.Device, opt Options,
	reqs []Request) (out []answer) {
	t.Helper()
	words := make([]chan []int32, n)
	for r := range words {
		words[r] = make(chan []int32, 1)
	}
	tell := func(w []int32) error {
		for _, ch := range words[1:] {
			ch <- slices.Clone(w)
		}
		return nil
	}
	err := disttest.NewWorld(n, disttest.Options{}).Run(func(comm dist.Comm) error {
		d := open()
		m, err := model.New(d, c, layer.Memory{Split: layer.NewSplit(comm)})
		if err != nil {
			return err
		}
		m.Init(7)
		defer m.Free()
		if comm.Rank() > 0 {
			for w := range words[comm.Rank()] {
				if err := m.Obey(w); err != nil {
					return err
				}
			}
			return nil
		}
		defer func() {
			for _, ch := range words[1:] {
				close(ch)
			}
		}()
		m.Lead(tell)
		e, err := New(m, nil, opt)
		if err != nil {
			return err
		}
		out = generate(t, e, reqs...)
		e.Close()
		if err := m.Score(&model.Batch{B: 1, T: 1, IDs: []int32{0}, Targets: []int32{0}}); err == nil {
			return fmt.Errorf("a pass that the other ranks have not heard of was begun")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Ranks that hold a model together generate the tokens of one process, whatever the architecture: greedy and drawn,
// many sequences in few slots, prompts cut into chunks.
func TestSplitGeneratesTheSame(t *testing.T) {
	devices := map[string]func() device.Device{"ref": func() device.Device { return ref.New() },
		"cpu": func() device.Device {
			d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
			t.Cleanup(func() { d.Close() })
			return d
		}}
	for name, open := range devices {
		for _, a := range layer.Archs() {
			c, err := model.Config{Arch: a.Name, Vocab: 52, Context: 64, Layers: 2, Dim: 32, Heads: 4, KVHeads: 4,
				HeadDim: 4, FFN: 48}.Complete()
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{Slots: 3, PageSize: 4, PrefillChunk: 5, Commit: true}
			whole := engine(t, build(t, open(), c), nil, opt)
			want := generate(t, whole, mixed()...)
			for _, n := range []int{2, 4} {
				if err := c.CheckSplit(n); err != nil {
					t.Fatalf("%s: %v", a.Name, err)
				}
				got := together(t, c, n, open, opt, mixed())
				for i := range want {
					if !slices.Equal(got[i].IDs, want[i].IDs) || got[i].Reason != want[i].Reason {
						t.Errorf("%s, %s, %d ranks, request %d: %v (%s), one process %v (%s)", name, a.Name, n, i,
							got[i].IDs, got[i].Reason, want[i].IDs, want[i].Reason)
					}
				}
			}
		}
	}
}

// Words that no rank sends are refused.
func TestObeyRefuses(t *testing.T) {
	m := tiny(t, ref.New(), "diff")
	for _, w := range [][]int32{nil, {0}, {0, 1, 2}, {1, 0}, {2, 5}, {2, 0, 1, 1}, {3, 0}, {9, 9, 9}} {
		if m.Obey(w) == nil {
			t.Errorf("%v was obeyed", w)
		}
	}
	if err := m.Obey([]int32{0, 4, 4, 2, 2}); err != nil {
		t.Fatal(err)
	}
	for _, w := range [][]int32{{2, 0, 0, 0, 1, 1}, {2, 0, 0, 99, 0, 0}, {2, 0, 3, 1, 0, 0}, {2, 1, 0, 0, 0, 0}} {
		if m.Obey(w) == nil {
			t.Errorf("%v was obeyed", w)
		}
	}
	if err := m.Obey([]int32{1, 0}); err != nil || m.Obey([]int32{1, 0}) == nil {
		t.Errorf("a cache was freed twice: %v", err)
	}
}
