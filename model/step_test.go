package model

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// filled is a cache of one model in which every slot has pages of its own.
func filled(m *Model, slots int) *Cache {
	c := m.NewCache(2*slots, 4, slots, 2)
	for i := range 2 * slots {
		c.Assign(i/2, i%2, int32(2*slots-1-i))
	}
	return c
}

// A step gives the logits and the best tokens of the rows that are wanted, in their order: all, some, none, one twice,
// in any order; whether it is small enough to be repeated or not.
func TestEveryWant(t *testing.T) {
	c := configs(t)["diff/base"]
	m := newModel(t, ref.New(), c)
	defer m.Free()
	lists := [][]int32{{}}
	for from := 0; len(lists[from]) < 3; from++ {
		for w := range int32(3) {
			lists = append(lists, append(slices.Clone(lists[from]), w))
		}
	}
	for _, slots := range []int{1, 3, 5} {
		k := filled(m, slots)
		run := func(want []int32) ([]float32, []int32) {
			t.Helper()
			logits, best := make([]float32, len(want)*c.Vocab), make([]int32, len(want))
			if err := k.Step(Rows{IDs: []int32{7, 3, 11}, Slots: []int32{0, 0, 0}, Pos: []int32{0, 1, 2}, Want: want},
				logits); err != nil {
				t.Fatal(err)
			}
			if err := k.ReadBest(best); err != nil {
				t.Fatal(err)
			}
			if k.ReadBest(make([]int32, len(want)+1)) == nil || k.ReadLogits(make([]float32, len(logits)+1)) == nil {
				t.Errorf("room for more than %v passes", want)
			}
			return logits, best
		}
		all, tokens := run([]int32{0, 1, 2})
		for _, want := range lists {
			got, best := run(want)
			for i, w := range want {
				if !slices.Equal(got[i*c.Vocab:(i+1)*c.Vocab], all[int(w)*c.Vocab:(int(w)+1)*c.Vocab]) ||
					best[i] != tokens[w] {
					t.Fatalf("%d slots, wanted %v: entry %d is not row %d", slots, want, i, w)
				}
			}
		}
		k.Free()
	}
}

// Steps of one row under interventions and few bits, which the host computes, give the logits of a pass over all rows.
func TestStepsByHost(t *testing.T) {
	half := 0.5
	ids := []int32{7, 3, 11, 2, 5}
	for name, change := range map[string]func(m *Model) error{
		"lambda": func(m *Model) error { return m.Intervene(layer.Intervention{Lambda: &half}) },
		"knockout": func(m *Model) error {
			return m.Intervene(layer.Intervention{Knockout: true,
				Heads: []int{1}})
		},
		"shuffled": func(m *Model) error {
			return m.Intervene(layer.Intervention{Second: layer.SecondShuffled,
				Seed: 4})
		},
		"bits": func(m *Model) error { return m.SetLowbit(layer.Lowbit{Logits: 4, Per: layer.PerRow, Values: 5}) },
	} {
		m := newModel(t, ref.New(), configs(t)["diff/base"])
		k, V := filled(m, 3), m.Config.Vocab
		plain, want, got := make([]float32, len(ids)*V), make([]float32, len(ids)*V), make([]float32, V)
		b := &Batch{B: 1, T: len(ids), IDs: ids}
		if err := errors.Join(m.Logits(b, plain), change(m), m.Logits(b, want)); err != nil {
			t.Fatal(err)
		}
		if far(plain, want) < 1e-4 {
			t.Errorf("%s changes nothing", name)
		}
		for pos, id := range ids {
			if err := k.Step(Rows{IDs: []int32{id}, Slots: []int32{2}, Pos: []int32{int32(pos)}, Want: []int32{0}},
				got); err != nil {
				t.Fatal(err)
			}
			if off := far(got, want[pos*V:(pos+1)*V]); !(off <= 1e-5) {
				t.Errorf("%s: step %d differs by %g", name, pos, off)
			}
		}
		k.Free()
		m.Free()
	}
}

// Logits of many bits change nearly nothing, also in heads whose second map is replaced.
func TestManyBitsOfReplacedMaps(t *testing.T) {
	m := newModel(t, ref.New(), configs(t)["diff/norm-off"]) // a norm would hide a factor
	defer m.Free()
	b := &Batch{B: 1, T: 5, IDs: []int32{7, 3, 11, 2, 5}}
	for _, heads := range [][]int{nil, {0}, {1, 3}} {
		want, got := make([]float32, 5*m.Config.Vocab), make([]float32, 5*m.Config.Vocab)
		err := errors.Join(m.Intervene(layer.Intervention{Second: layer.SecondAveraged, Heads: heads}),
			m.Logits(b, want), m.SetLowbit(layer.Lowbit{Logits: 16, Per: layer.PerRow}), m.Logits(b, got),
			m.SetLowbit(layer.Lowbit{}))
		if off := far(got, want); err != nil || !(off <= 1e-3) || off == 0 {
			t.Errorf("heads %v: logits differ by %g, %v", heads, off, err)
		}
	}
}

// A look at a pass takes no more memory in a deep model, for more wanted rows, or again; a layer's attention shares the
// memory of its MLP, which is larger here.
func TestLookMemory(t *testing.T) {
	var inspected, looked int
	for _, x := range []struct{ layers, width, want int }{{2, 4, lookRows}, {3, 4, lookRows + 1}, {2, 8, lookRows},
		{9, 4, 3 * lookRows}} {
		c := configs(t)["diff/base"]
		c.Layers, c.HeadDim, c.FFN, c.Vocab = x.layers, x.width, 400, 6000
		m := newModel(t, ref.New(), c)
		b, want, rows := batch(rand.New(rand.NewPCG(1, 2)), c, 2, 8), make([]int, x.want), 0
		for range 2 {
			if err := m.Inspect(b, &nothing{}); err != nil {
				t.Fatal(err)
			}
		}
		one := m.ActivationBytes()
		for range 2 {
			if err := m.Look(b, nil, want, func(int, []float32) { rows++ }); err != nil {
				t.Fatal(err)
			}
		}
		if inspected == 0 {
			inspected, looked = one, m.ActivationBytes()
		}
		if got := m.ActivationBytes(); one != inspected || got != looked || looked == inspected || rows != 2*x.want {
			t.Errorf("%+v: %d bytes and %d for %d rows, at first %d and %d", x, one, got, rows, inspected, looked)
		}
		m.Free()
	}
}

// A prompt that is run in chunks, without a wanted row at first, takes no more memory in a deep model than in one of
// two layers.
func TestPromptMemory(t *testing.T) {
	var first int
	for _, layers := range []int{2, 3, 9} {
		c := configs(t)["diff2/base"]
		c.Layers = layers
		m := newModel(t, together{ref.New()}, c)
		k := filled(m, 1)
		ids, slots, pos := []int32{1, 2, 3, 4, 5, 6}, make([]int32, 6), []int32{0, 1, 2, 3, 4, 5}
		if err := k.Run(Rows{IDs: ids, Slots: slots, Pos: pos}); err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = m.ActivationBytes()
		}
		if got := m.ActivationBytes(); got != first {
			t.Errorf("%d layers: %d bytes, two take %d", layers, got, first)
		}
		k.Free()
		m.Free()
	}
}

// Words of a step whose numbers are wrong are refused, though as many follow as the numbers say; nothing of them is
// kept. A step without wanted rows is one.
func TestObeyChecksNumbers(t *testing.T) {
	m := newModel(t, ref.New(), configs(t)["diff/base"])
	defer m.Free()
	if err := m.Obey([]int32{wordCache, 6, 4, 3, 2}); err != nil { // a page table of 6 entries
		t.Fatal(err)
	}
	for _, x := range []struct {
		lo, hi, n, want int32
		good            bool
	}{
		{0, 6, 1, 1, true}, {0, 0, 1, 1, true}, {6, 6, 1, 1, true}, {0, 1, 2, 0, true}, {5, 6, 1, 0, true},
		{-1, 0, 1, 1, false}, {-2, -1, 1, 1, false}, {0, 7, 1, 1, false}, {7, 7, 1, 1, false}, {3, 2, 1, 1, false},
		{6, 0, 2, 1, false},
		{0, 6, -1, 1, false}, {0, 3, -1, 0, false}, {0, 2, 1, -1, false}, {0, 1, 1, -4, false}, {0, 0, 0, 0, false},
		{0, 0, 0, 1, false},
	} {
		words := []int32{wordStep, 0, x.lo, x.hi, x.n, x.want}
		for range x.hi - x.lo + 3*x.n + x.want {
			words = append(words, 0)
		}
		before := slices.Clone(m.told[0].pages)
		if err := m.Obey(words); (err == nil) != x.good {
			t.Errorf("%+v: %v", x, err)
		}
		if !slices.Equal(m.told[0].pages, before) {
			t.Errorf("%+v: pages %v", x, m.told[0].pages)
		}
	}
}
