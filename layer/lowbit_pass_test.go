package layer_test

import (
	"math"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
)

// Attention on the host, with as many bits as make no difference, is the device's, with every head norm and gains that
// are not 1; with few bits it is not, and without bits it is the device's again.
func TestManyBitsAreExact(t *testing.T) {
	b := &model.Batch{B: 2, T: 7, IDs: []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7},
		Targets: []int32{1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9}}
	for _, a := range layer.Archs() {
		for _, norm := range []layer.HeadNormMode{layer.HeadNormOff, layer.HeadNormPlain, layer.HeadNormAffine} {
			c := modeltest.Tiny(a.Name, 20, 16)
			c.HeadNorm = norm
			m := modeltest.New(t, ref.New(), c, layer.Memory{}, 5)
			for _, p := range m.Params.List {
				if p.Kind == layer.Gain {
					x := make([]float32, p.Rows*p.Cols)
					for i := range x {
						x[i] = 1 + float32(i%5)/4
					}
					m.Params.Set(m.Device(), p, x)
				}
			}
			losses := func(q layer.Lowbit) []float32 {
				out := make([]float32, len(b.IDs))
				if err := m.SetLowbit(q); err != nil || m.ByHost() != (q != layer.Lowbit{}) {
					t.Fatalf("by the host: %v; %v", m.ByHost(), err)
				}
				if err := m.Score(b); err != nil {
					t.Fatal(err)
				}
				m.Losses(out)
				return out
			}
			exact := losses(layer.Lowbit{})
			apart := func(got []float32) (most float64) {
				for i := range got {
					most = math.Max(most, math.Abs(float64(got[i]-exact[i])))
				}
				return most
			}
			for _, per := range []layer.Granularity{layer.PerTensor, layer.PerHead, layer.PerRow} {
				many := layer.Lowbit{Logits: 16, Per: per, Keys: 16, Values: 16, CachePer: per}
				if d := apart(losses(many)); !(d < 1e-3) {
					t.Errorf("%s, norm %q, 16 bits per %s: losses differ by %g", a.Name, norm, per, d)
				}
				for name, few := range map[string]layer.Lowbit{"logits": {Logits: 2, Per: per},
					"keys": {Keys: 2, CachePer: per}, "values": {Values: 2, CachePer: per}} {
					if d := apart(losses(few)); !(d > 1e-4) {
						t.Errorf("%s, norm %q, 2 bits of %s per %s: losses differ by %g", a.Name, norm, name, per, d)
					}
				}
			}
			if d := apart(losses(layer.Lowbit{})); d != 0 {
				t.Errorf("%s, norm %q: exact attention afterwards differs by %g", a.Name, norm, d)
			}
		}
	}
}
