package hf

import (
	"math"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// TestLambdas: λ read off the weights is the λ that a pass computes, and where only a pass can know it, that is said.
func TestLambdas(t *testing.T) {
	constant := func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, 0.3 }
	for _, a := range layer.Archs() {
		arch := a.Name
		for _, change := range []func(*model.Config){nothing, constant} {
			m := trained(t, nano(t, arch, change))
			got, known, err := Lambdas(m.Config, valuesOf(m))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Score(&model.Batch{B: 1, T: 1, IDs: []int32{0}, Targets: []int32{0}}); err != nil {
				t.Fatal(err)
			}
			want := m.Lambdas(nil)
			if !known {
				if len(want) == 0 {
					t.Errorf("%s: λ is said to depend on the text, and there is none", arch)
				}
				continue
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d values of λ, want %d", arch, len(got), len(want))
			}
			for i := range got {
				if !(math.Abs(got[i]-want[i]) <= 1e-6) {
					t.Errorf("%s: layer %d: λ = %g, a pass says %g", arch, i, got[i], want[i])
				}
			}
		}
	}
}
