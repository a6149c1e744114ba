package eval

import (
	"strings"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// The changed models exist, differ from their origin where they should, and keep its size.
func TestAblations(t *testing.T) {
	base := model.Config{Arch: "transformer", Vocab: 260, Context: 64, Layers: 2, Dim: 32, Heads: 4, KVHeads: 4, HeadDim: 8}
	diff := model.Config{Arch: "diff", Vocab: 260, Context: 64, Layers: 2, Dim: 32, Heads: 2, KVHeads: 2, HeadDim: 8}
	var sizes []int
	seen := map[model.Config]bool{}
	for _, a := range Ablations() {
		c := base
		if a.Challenger {
			c = diff
		}
		a.Change(&c)
		c, err := c.Complete()
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if seen[c] {
			t.Errorf("%s is a model that was there before", a.Name)
		}
		seen[c] = true
		sizes = append(sizes, model.Table(c).Count())
		if strings.Contains(a.Name, "no-norm") != (c.HeadNorm == layer.HeadNormOff && a.Challenger) {
			t.Errorf("%s has the norm %q", a.Name, c.HeadNorm)
		}
	}
	for i, n := range sizes {
		if len(sizes) != 7 || n < sizes[0]*99/100 || n > sizes[0]*101/100 {
			t.Errorf("row %d has %d parameters, the first %d", i, n, sizes[0])
		}
	}
}
