package model_test

import (
	"math"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
)

// lowbitModel is a small random model with groups, and ids for it.
func lowbitModel(t *testing.T, arch string) (*model.Model, []int32) {
	t.Helper()
	return modeltest.New(t, ref.New(), modeltest.Tiny(arch, 50, 24), layer.Memory{}, 5), randomIDs(20, 50)
}

func lowbitLogits(t *testing.T, m *model.Model, q layer.Lowbit, ids []int32) []float32 {
	t.Helper()
	if err := m.SetLowbit(q); err != nil {
		t.Fatal(err)
	}
	y := make([]float32, len(ids)*50)
	if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, y); err != nil {
		t.Fatal(err)
	}
	return y
}

func distance(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}

// Fewer bits are further from exact, sixteen are near, and the zero value is exact again.
func TestLowbit(t *testing.T) {
	for _, a := range layer.Archs() {
		m, ids := lowbitModel(t, a.Name)
		exact := lowbitLogits(t, m, layer.Lowbit{}, ids)
		for _, of := range []func(bits int) layer.Lowbit{
			func(bits int) layer.Lowbit { return layer.Lowbit{Logits: bits, Per: layer.PerTensor} },
			func(bits int) layer.Lowbit { return layer.Lowbit{Logits: bits, Per: layer.PerHead} },
			func(bits int) layer.Lowbit { return layer.Lowbit{Logits: bits, Per: layer.PerRow} },
			func(bits int) layer.Lowbit { return layer.Lowbit{Keys: bits, Values: bits} },
			func(bits int) layer.Lowbit { return layer.Lowbit{Keys: bits, CachePer: layer.PerHead} },
			func(bits int) layer.Lowbit { return layer.Lowbit{Values: bits, CachePer: layer.PerTensor} },
		} {
			last := 0.0
			for _, bits := range []int{16, 8, 3} {
				d := distance(exact, lowbitLogits(t, m, of(bits), ids))
				if !(d > last) || bits == 16 && !(d <= 1e-3) {
					t.Errorf("%s %+v: %g from exact, %g with more bits", a.Name, of(bits), d, last)
				}
				last = d
			}
		}
		if d := distance(exact, lowbitLogits(t, m, layer.Lowbit{}, ids)); d != 0 {
			t.Errorf("%s: exact again is %g off", a.Name, d)
		}
	}
}

// Through a cache the numbers are those of the whole sequence, where no scale spans rows.
func TestLowbitCached(t *testing.T) {
	for _, a := range layer.Archs() {
		m, ids := lowbitModel(t, a.Name)
		for _, q := range []layer.Lowbit{{Logits: 4, Per: layer.PerRow}, {Keys: 4, Values: 4},
			{Logits: 5, Per: layer.PerRow, Keys: 6}, {Values: 3}} {
			want := lowbitLogits(t, m, q, ids)
			c := m.NewCache(16, 4, 2, 8)
			for i := range 8 {
				c.Assign(0, i, int32(2*i+1))
				c.Assign(1, i, int32(2*i))
			}
			got := make([]float32, 50)
			for at := 0; at < len(ids); at += 5 { // chunks of a prompt, in the second slot
				r := model.Rows{}
				for i := at; i < at+5; i++ {
					r.IDs, r.Slots, r.Pos = append(r.IDs, ids[i]), append(r.Slots, 1), append(r.Pos, int32(i))
				}
				r.Want = []int32{4}
				if err := c.Step(r, got); err != nil {
					t.Fatal(err)
				}
				if d := distance(got, want[(at+4)*50:(at+5)*50]); !(d <= 1e-4) {
					t.Errorf("%s %+v: row %d differs by %g", a.Name, q, at+4, d)
				}
			}
			c.Free()
		}
	}
}

func TestLowbitRefuses(t *testing.T) {
	m, _ := lowbitModel(t, "diff")
	for _, q := range []layer.Lowbit{{Logits: 1, Per: layer.PerRow}, {Keys: 17}, {Values: 1},
		{Keys: 8, CachePer: "column"}, {Logits: 8, Per: "column"}} {
		if m.SetLowbit(q) == nil {
			t.Errorf("%+v: no error", q)
		}
	}
}

// A cleared layer's memory is taken by the next: the depth of the network must not show.
func TestInspectMemory(t *testing.T) {
	high := func(layers int) int {
		c, err := model.Config{Arch: "diff", Vocab: 50, Context: 512, Layers: layers, Dim: 32, Heads: 2,
			HeadDim: 8}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.New(ref.New(), c, layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		m.Init(1)
		ids := make([]int32, 512)
		if err := m.Inspect(&model.Batch{B: 1, T: 512, IDs: ids}, nil); err != nil {
			t.Fatal(err)
		}
		return m.ActivationBytes()
	}
	if one, four := high(1), high(4); four > one {
		t.Errorf("%d bytes of activations with one layer, %d with four", one, four)
	}
}
