package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// evaluations counts evaluations of λ.
type evaluations struct {
	device.Device
	n int
}

func (d *evaluations) Lambda(lam tensor.Tensor, v device.LambdaVecs, init float64) {
	d.n++
	d.Device.Lambda(lam, v, init)
}

// λ is evaluated by a cache's first step and by the first after passes have changed, with the weights of that time;
// other steps use it, whatever their size.
func TestLambdaOfSteps(t *testing.T) {
	d := &evaluations{Device: ref.New()}
	c := configs(t)["diff/base"]
	m := newModel(t, d, c)
	defer m.Free()
	logits := make([]float32, c.Vocab)
	step := func(k *Cache, rows int) int {
		t.Helper()
		d.n = 0
		if err := k.Step(Rows{IDs: []int32{7, 3}[:rows], Slots: []int32{0, 0}[:rows], Pos: []int32{0, 1}[:rows],
			Want: []int32{0}}, logits); err != nil {
			t.Fatal(err)
		}
		return d.n
	}
	k := filled(m, 1)
	defer k.Free()
	step(k, 2) // the arena grows
	for i, want := range []int{c.Layers, 0, 0, 0, c.Layers, 0} {
		if i == 0 || i == 4 {
			m.version++
		}
		if n := step(k, 1+i%2); n != want {
			t.Errorf("step %d evaluates λ %d times, want %d", i, n, want)
		}
	}
	before := logits[0]
	p := m.Params.Lookup("layers.0.attn.lambda_q1")
	m.Params.Set(d, p, slices.Repeat([]float32{0.7}, p.Cols))
	other := filled(m, 1)
	defer other.Free()
	if n := step(other, 2); n != c.Layers || logits[0] == before {
		t.Errorf("another cache evaluates λ %d times, want %d; its logits are of the old weights: %v", n, c.Layers,
			logits[0] == before)
	}
}

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
