package model

import (
	"fmt"
	"math"
	"testing"

	"antiphase/device/ref"
)

// TestLambdaRange: the smallest and the largest λ of a network, whichever layers have them. Layers are set so that
// neither is the first or the last, and λ is the paper's exp(q1·k1) − exp(q2·k2) + λ_init.
func TestLambdaRange(t *testing.T) {
	c := configs(t)["diff/base"]
	c.Layers = 4
	m := newModel(t, ref.New(), c)
	want := make([]float64, c.Layers)
	for l, x := range []float64{0.1, -0.9, 0.8, 0.2} { // q1·k1
		dim := 0
		for i, v := range []float64{x, 1, 0, 0} {
			name := fmt.Sprintf("layers.%d.attn.lambda_%s", l, []string{"q1", "k1", "q2", "k2"}[i])
			p := m.Params.Lookup(name)
			if p == nil {
				t.Fatalf("no parameter %s", name)
			}
			dim = p.Cols
			values := make([]float32, dim)
			values[dim-1] = float32(v)
			m.Params.Set(m.Device(), p, values)
		}
		want[l] = math.Exp(x) - 1 + 0.8 - 0.6*math.Exp(-0.3*float64(l))
	}
	if err := m.Score(&Batch{B: 1, T: 4, IDs: []int32{1, 2, 3, 4}, Targets: []int32{2, 3, 4, 5}}); err != nil {
		t.Fatal(err)
	}
	mean, lo, hi := m.LambdaRange(nil)
	for l, x := range want {
		if len(mean) != len(want) || !(math.Abs(mean[l]-x) <= 1e-6) {
			t.Fatalf("layers have %v, want %v", mean, want)
		}
	}
	if !(math.Abs(lo-want[1]) <= 1e-6) || !(math.Abs(hi-want[2]) <= 1e-6) {
		t.Errorf("from %g to %g, want %g to %g", lo, hi, want[1], want[2])
	}
	plain := newModel(t, ref.New(), configs(t)["transformer/base"])
	if mean, lo, hi := plain.LambdaRange(nil); len(mean) > 0 || !math.IsNaN(lo) || !math.IsNaN(hi) {
		t.Errorf("without λ: %v from %g to %g", mean, lo, hi)
	}
}
