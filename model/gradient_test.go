package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device/ref"
)

// The groups of all layers together, and those of single layers with what is outside, are the whole gradient.
func TestGradientGroups(t *testing.T) {
	for name, c := range configs(t) {
		if c.Bias {
			continue // belongs to no group
		}
		m := newModel(t, ref.New(), c)
		b := batch(rand.New(rand.NewPCG(1, 2)), c, 2, 9)
		m.Params.ZeroGrad(m.Device())
		if err := m.Backprop(b, 1); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, p := range m.Params.List {
			for _, g := range gradient(p) {
				want += g * g
			}
		}
		square := func(l int) (sum float64) {
			n := m.NewGradientNorms(m.GradientGroups(l))
			defer n.Free()
			count := 0
			for i, x := range n.Read(nil) {
				count += n.Groups[i].Count
				if x <= 0 && n.Groups[i].Name != "lambda" {
					t.Errorf("%s: no gradient of %s", name, n.Groups[i].Name)
				}
				sum += x * x
			}
			if l < 0 && count != m.Params.Count() {
				t.Errorf("%s: %d parameters in groups, %d in the model", name, count, m.Params.Count())
			}
			return sum
		}
		if got := square(-1); !(math.Abs(got-want) <= 1e-6*want) {
			t.Errorf("%s: groups have %g of the squared norm, %g", name, got, want)
		}
		if in := square(0) + square(1); in >= want || in <= 0 {
			t.Errorf("%s: layers have %g of %g", name, in, want)
		}
	}
}
