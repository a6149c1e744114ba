package layer

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Every intervention is read back as it is written; texts count from 1.
func TestInterventionText(t *testing.T) {
	half, big, tiny := 0.5, -250000.0, 1e-9
	for _, lambda := range []*float64{nil, &half, &big, &tiny} {
		for _, second := range []Second{SecondAsIs, SecondShuffled, SecondAveraged} {
			for _, seed := range []uint64{0, 7, math.MaxUint64} {
				for _, knockout := range []bool{false, true} {
					for _, layers := range [][]int{nil, {0}, {2, 11}} {
						for _, heads := range [][]int{nil, {0}, {3, 1}} {
							want := Intervention{Layers: layers, Heads: heads, Lambda: lambda, Second: second,
								Knockout: knockout}
							if second != SecondAsIs {
								want.Seed = seed
							}
							got, err := ParseIntervention(want.String())
							if err != nil || !reflect.DeepEqual(got, want) {
								t.Fatalf("%s: %+v, %v", want, got, err)
							}
						}
					}
				}
			}
		}
	}
	for text, want := range map[string]Intervention{
		"nothing": {}, "knockout@L2": {Knockout: true, Layers: []int{1}},
		"lambda=0.5@L1.3@H2":            {Lambda: &half, Layers: []int{0, 2}, Heads: []int{1}},
		"second=shuffled:7+knockout@H1": {Second: SecondShuffled, Seed: 7, Knockout: true, Heads: []int{0}},
		"second=averaged@H4@L1":         {Second: SecondAveraged, Heads: []int{3}, Layers: []int{0}},
	} {
		if got, err := ParseIntervention(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "lambda", "lambda=", "lambda=x", "knockout=1", "nothing=1", "second=shuffled:",
		"second=shuffled:-1", "second=shuffled:x", "what", "knockout@", "knockout@L",
		"knockout@X1", "knockout@L0", "knockout@L-1", "knockout@L1.", "knockout@L1..2", "knockout@Lx", "knockout@1",
		"knockout+", "knockout@L1@", "knockout@L1@L2", "knockout@H1@L2@H2", "lambda=0+lambda=1",
		"second=averaged+second=shuffled",
		"second=", "second=:7", "knockout@L99999999999999999999", "knockout@L9223372036854775808"} {
		if got, err := ParseIntervention(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// Both sides of every bound of an intervention.
func TestInterventionBounds(t *testing.T) {
	f := func(x float64) *float64 { return &x }
	plain := archs[slices.IndexFunc(archs, func(a *Arch) bool { return a.Maps == 1 })]
	for _, c := range []struct {
		v    Intervention
		arch *Arch
		good bool
	}{
		{Intervention{Layers: []int{0, 2}, Heads: []int{0, 3}, Knockout: true}, plain, true},
		{Intervention{Layers: []int{3}}, plain, false}, {Intervention{Layers: []int{0, -1}}, plain, false},
		{Intervention{Heads: []int{0, 4}}, plain, false}, {Intervention{Heads: []int{-1}}, plain, false},
		{Intervention{Lambda: f(0)}, plain, false}, {Intervention{Second: SecondAveraged}, plain, false},
		{Intervention{}, plain, true},
		{Intervention{Lambda: f(0)}, &diffArch, true}, {Intervention{Lambda: f(-999999)}, &diffArch, true},
		{Intervention{Lambda: f(999999)}, &diffArch, true},
		{Intervention{Lambda: f(1e6)}, &diffArch, false}, {Intervention{Lambda: f(-1e6)}, &diffArch, false},
		{Intervention{Lambda: f(math.NaN())}, &diffArch, false},
		{Intervention{Second: SecondShuffled}, &diffArch, true}, {Intervention{Second: "other"}, &diffArch, false},
	} {
		if err := CheckIntervention(c.v, c.arch, 3, 4); (err == nil) != c.good {
			t.Errorf("%+v of %s: %v", c.v, c.arch.Name, err)
		}
	}
}

// A second map that is shuffled keeps its values, in an order that depends on all of seed, layer, head and position;
// one that is averaged keeps its sum; that of other heads is as it was.
func TestRemap(t *testing.T) {
	row := func() []float64 {
		x := make([]float64, 40)
		for i := range x {
			x[i] = float64(i + 1)
		}
		return x
	}
	run := func(seed uint64, layer, head, pos int) []float64 {
		es := make(edits, 3)
		for h := range es {
			es[h] = edit{lambda: 1, second: SecondShuffled, seed: seed}
		}
		x := row()
		es.remap(x, layer, head, pos)
		return x
	}
	seen := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		for layer := range 2 {
			for head := range 2 {
				for pos := 39; pos < 41; pos++ {
					x := run(seed, layer, head, pos)
					if !slices.Equal(x, run(seed, layer, head, pos)) {
						t.Error("two orders for one place")
					}
					seen[fmt.Sprint(x)] = true
					slices.Sort(x)
					if !slices.Equal(x, row()) {
						t.Errorf("values %v", x)
					}
				}
			}
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d orders of 16 places", len(seen))
	}
	es := edits{{lambda: 1}, {lambda: 1, second: SecondAveraged}}
	x := row()
	if es.remap(x, 0, 0, 39); !slices.Equal(x, row()) {
		t.Errorf("a head without edits: %v", x)
	}
	if es.remap(x, 0, 1, 39); x[0] != 20.5 || x[39] != 20.5 {
		t.Errorf("averaged: %v", x)
	}
	edits(nil).remap(x, 0, 5, 0)
	es = edits{{lambda: 1}, {second: SecondAveraged}, {lambda: 2, second: SecondShuffled},
		{lambda: 2, second: SecondShuffled, knockout: true}, {lambda: 0.5}, {lambda: -1, second: SecondAveraged}}
	if got := es.recomputed(); !slices.Equal(got, []int{2, 5}) {
		t.Errorf("recomputed %v", got)
	}
}

// λ times the factor of each head: one for all tokens or one per token and head, with factors alike or not.
func TestScaledLambda(t *testing.T) {
	d := ref.New()
	for _, factors := range [][]float64{{1, 1}, {0.5, 0.5}, {1, 3}, {0, -2}} {
		var es edits
		for _, f := range factors {
			es = append(es, edit{lambda: f})
		}
		for _, lam := range [][]float64{{0.8}, {1, 2, 3, 4, 5, 6}} {
			x := device.Empty(d, d.Types().Stat, max(1, len(lam)/2), min(2, len(lam)))
			device.WriteFloats(d, x, lam)
			p := &Pass{Dev: d, Arena: tensor.NewArena(d)}
			got := readAll(d, es.scaled(p, x, 3))
			for i := range 6 { // row i/2, head i%2
				at := func(list []float64) float64 {
					if len(list) == 1 {
						return list[0]
					}
					return list[i]
				}
				if want := at(lam) * factors[i%2]; at(got) != want {
					t.Errorf("λ %v times %v: %v", lam, factors, got)
					break
				}
			}
			if after := readAll(d, x); !slices.Equal(after, lam) {
				t.Errorf("λ itself became %v", after)
			}
		}
	}
}

// Both sides of every bound of low-bit attention, and when its results depend on the rows of a pass.
func TestLowbitOfBothSides(t *testing.T) {
	for _, c := range []struct {
		q     Lowbit
		good  bool
		whole bool
	}{
		{Lowbit{}, true, false}, {Lowbit{Logits: 2, Per: PerRow}, true, false},
		{Lowbit{Logits: 16, Per: PerHead}, true, true}, {Lowbit{Logits: 8, Per: PerTensor}, true, true},
		{Lowbit{Logits: 1, Per: PerRow}, false, false}, {Lowbit{Logits: 17, Per: PerRow}, false, false},
		{Lowbit{Logits: -1, Per: PerRow}, false, false}, {Lowbit{Logits: 8}, false, true},
		{Lowbit{Keys: 2}, true, false}, {Lowbit{Values: 16}, true, false}, {Lowbit{Keys: 1}, false, false},
		{Lowbit{Values: 17}, false, false},
		{Lowbit{Keys: 4, CachePer: PerRow}, true, false}, {Lowbit{Values: 4, CachePer: PerHead}, true, true},
		{Lowbit{Keys: 4, CachePer: PerTensor}, true, true},
		{Lowbit{CachePer: PerTensor}, true, false}, {Lowbit{Keys: 4, CachePer: "x"}, false, true},
		{Lowbit{Per: "x"}, true, false},
	} {
		if err := c.q.Check(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.q, err)
		}
		if got := c.q.Whole(); c.good && got != c.whole {
			t.Errorf("%+v depends on the rows of a pass: %v", c.q, got)
		}
	}
}

// The sequences of a pass: B of T rows, or runs of equal slots.
func TestSequenceRows(t *testing.T) {
	d := ref.New()
	if got := sequenceRows(&Pass{Dev: d, B: 3, T: 2}); !slices.Equal(got, [][2]int{{0, 2}, {2, 4}, {4, 6}}) {
		t.Errorf("three of two: %v", got)
	}
	for _, c := range []struct {
		slots []int32
		want  [][2]int
	}{{[]int32{4}, [][2]int{{0, 1}}}, {[]int32{1, 1, 0, 2, 2, 2}, [][2]int{{0, 2}, {2, 3}, {3, 6}}},
		{[]int32{0, 1, 0}, [][2]int{{0, 1}, {1, 2}, {2, 3}}}} {
		s := device.Empty(d, tensor.I32, 1, len(c.slots))
		device.WriteI32(d, s, c.slots)
		if got := sequenceRows(&Pass{Dev: d, B: len(c.slots), T: 1, Slot: s}); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.slots, got, c.want)
		}
	}
}
