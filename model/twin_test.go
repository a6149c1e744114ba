package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
)

// TestTwin: a twin has the model's numbers, and passes of either between the blocks of the other change no bit,
// interventions included.
func TestTwin(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	defer d.Close()
	for name, c := range configs(t) {
		m := scorer(t, d, c)
		twin := Twin(m)
		b, other := batch(rand.New(rand.NewPCG(1, 2)), c, 1, 13), batch(rand.New(rand.NewPCG(3, 4)), c, 2, 15)
		hidden := func(m *Model, b *Batch, rest func()) []float32 {
			dst := make([]float32, b.B*b.T*c.Dim)
			if err := m.Hidden(b, rest, dst); err != nil {
				t.Fatal(err)
			}
			return dst
		}
		none := func() {}
		want, wantOther := hidden(m, b, none), hidden(m, other, none)
		if !slices.Equal(hidden(twin, b, none), want) {
			t.Errorf("%s: the twin has other numbers", name)
		}
		rests := 0
		got := hidden(twin, b, func() {
			if rests++; !slices.Equal(hidden(m, other, none), wantOther) {
				t.Errorf("%s: the model has other numbers within a pass of its twin", name)
			}
		})
		if !slices.Equal(got, want) || rests != c.Layers {
			t.Errorf("%s: a pass of the model within one of its twin changed it (%d rests)", name, rests)
		}
		if err := twin.Intervene(layer.Intervention{Heads: []int{0}, Knockout: true}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(hidden(m, b, none), want) || slices.Equal(hidden(twin, b, none), want) {
			t.Errorf("%s: an intervention in the twin", name)
		}
		twin.Free()
		if !slices.Equal(hidden(m, b, none), want) {
			t.Errorf("%s: the twin took weights with it", name)
		}
		m.Free()
	}
}
