package eval

import (
	"strings"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// The changed models exist, differ from their origin where they should, and keep its size.
func TestAblations(t *testing.T) {
	base := model.Config{Arch: "transformer", Vocab: 260, Context: 64, Layers: 2, Dim: 128, Heads: 4, KVHeads: 4,
		HeadDim: 32, FFN: 344}
	pairs := map[string]model.Config{"diff": base, "diff2": base}
	for arch, c := range pairs {
		c.Arch = arch
		if arch == "diff" {
			c.Heads, c.KVHeads = 2, 2
		} else {
			c.FFN -= 40 // as recipes do: a third of the second queries' width, rounded
		}
		pairs[arch] = c
	}
	for arch, rows := range map[string]int{"diff": 7, "diff2": 6} {
		list, err := Ablations(arch)
		if err != nil || len(list) != rows {
			t.Fatalf("%s: %d rows, %v", arch, len(list), err)
		}
		testAblations(t, list, base, pairs[arch])
	}
	if _, err := Ablations("transformer"); err == nil {
		t.Error("the baseline has ablations")
	}
}

func testAblations(t *testing.T, list []Ablation, base, challenger model.Config) {
	first := 0
	seen := map[model.Config]bool{}
	for _, a := range list {
		c := base
		if a.Challenger {
			c = challenger
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
		n := model.Table(c).Count()
		if first == 0 {
			first = n
		}
		if n < first*985/1000 || n > first*1015/1000 {
			t.Errorf("%s has %d parameters, the first %d", a.Name, n, first)
		}
		if strings.Contains(a.Name, "no-norm") && c.HeadNorm != layer.HeadNormOff {
			t.Errorf("%s has the norm %q", a.Name, c.HeadNorm)
		}
		if strings.HasSuffix(a.Name, "1.5h") && (c.Heads != 6 || c.KVHeads != 2) {
			t.Errorf("%s has %d heads in %d groups", a.Name, c.Heads, c.KVHeads)
		}
	}
}
