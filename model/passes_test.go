package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// Every pass refuses a batch that does not fit, one without the targets that it scores, and any batch where the model
// leads others; its probe is gone afterwards.
func TestEveryPassChecksItsBatch(t *testing.T) {
	c := configs(t)["diff/base"]
	m := newModel(t, ref.New(), c)
	defer m.Free()
	n := 4 * c.Vocab
	probe := &nothing{}
	passes := map[string]func(b *Batch) error{
		"Inspect":  func(b *Batch) error { return m.Inspect(b, probe) },
		"Hidden":   func(b *Batch) error { return m.Hidden(b, func() {}, make([]float32, 4*c.Dim)) },
		"Look":     func(b *Batch) error { return m.Look(b, probe, nil, nil) },
		"Logits":   func(b *Batch) error { return m.Logits(b, make([]float32, n)) },
		"Score":    func(b *Batch) error { return m.Score(b) },
		"Backprop": func(b *Batch) error { return m.Backprop(b, 1) },
	}
	good := func() *Batch { return &Batch{B: 1, T: 4, IDs: []int32{1, 2, 3, 4}, Targets: []int32{2, 3, 4, 5}} }
	for name, pass := range passes {
		if err := pass(good()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, change := range map[string]func(b *Batch){
			"an id outside": func(b *Batch) { b.IDs[3] = int32(c.Vocab) }, "a shape": func(b *Batch) { b.T = 3 },
			"a target": func(b *Batch) { b.Targets[0] = -2 },
		} {
			b := good()
			if change(b); pass(b) == nil {
				t.Errorf("%s takes %s", name, what)
			}
		}
		b := good()
		b.Targets = nil
		scores := name == "Score" || name == "Backprop"
		if err := pass(b); (err != nil) != scores || scores && !strings.Contains(err.Error(), "no targets") {
			t.Errorf("%s without targets: %v", name, err)
		}
		if m.pass.Probe != nil {
			t.Errorf("%s leaves its probe", name)
		}
	}
	m.Lead(func([]int32) error { return nil })
	for name, pass := range passes {
		if err := pass(good()); !errors.Is(err, ErrParts) {
			t.Errorf("%s of a leading rank: %v", name, err)
		}
	}
	if err := Twin(m).Score(good()); !errors.Is(err, ErrParts) {
		t.Errorf("a twin of a leading rank: %v", err)
	}
	for _, bad := range []func(c *Config){func(c *Config) { c.Layers = 0 }, func(c *Config) { c.Arch = "none" },
		func(c *Config) { c.RopeScaling = &RopeScaling{Type: "x"} }} {
		x := c
		bad(&x)
		if _, err := New(ref.New(), x, layer.Memory{}); err == nil || !strings.HasPrefix(err.Error(), "model: ") {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if a, b := m.PromptRows(), newModel(t, together{ref.New()}, c).PromptRows(); a != 512 || b != 8192 {
		t.Errorf("prompts of %d and %d rows", a, b)
	}
}

// The parts of a gradient are announced once each, last part first, whether ranks split the model or not, and only
// during the last micro-batch.
func TestPartsAreAnnounced(t *testing.T) {
	c := configs(t)["diff2/base"]
	m := newModel(t, ref.New(), c)
	defer m.Free()
	var f Feed
	defer f.Free()
	if err := m.Put(&f, &Batch{B: 2, T: 2, IDs: []int32{1, 2, 3, 4}, Targets: []int32{2, 3, 4, 5}}, 1); err != nil {
		t.Fatal(err)
	}
	next := m.Parts() - 1
	early := map[*layer.Param][]float64{}
	m.Gradient(&f, 1, func(part int) {
		if part != next {
			t.Errorf("part %d, want %d", part, next)
		}
		next--
		for _, p := range m.Part(part) {
			early[p] = gradient(p)
		}
	})
	if next != -1 {
		t.Errorf("%d parts were not announced", next+1)
	}
	for _, p := range m.Params.List {
		if !slices.Equal(early[p], gradient(p)) {
			t.Errorf("the gradient of %s was announced before it was complete", p.Name)
		}
	}
}

// The parts of a network: the embedding, then attention and MLP of each block, each with the norm before it, then the
// rest.
func TestParts(t *testing.T) {
	for name, c := range configs(t) {
		m := newModel(t, ref.New(), c)
		part := func(p *layer.Param) int {
			var l int
			if n, _ := fmt.Sscanf(p.Name, "layers.%d.", &l); n == 1 {
				if strings.Contains(p.Name, ".norm2.") || strings.Contains(p.Name, ".mlp.") {
					return 2*l + 2
				}
				return 2*l + 1
			}
			return map[string]int{"embed.weight": 0, "norm.weight": 2*c.Layers + 1,
				"head.weight": 2*c.Layers + 1}[p.Name]
		}
		var all []*layer.Param
		for i := range m.Parts() {
			for _, p := range m.Part(i) {
				if part(p) != i {
					t.Errorf("%s: %s is in part %d, want %d", name, p.Name, i, part(p))
				}
				all = append(all, p)
			}
		}
		if !slices.Equal(all, m.Params.List) {
			t.Errorf("%s: the parts have %d of %d parameters", name, len(all), len(m.Params.List))
		}
		m.Free()
	}
}

// YaRN where its ramp has no width: dimensions before it are kept, those after it divided, as in the published code,
// which widens it by a thousandth.
func TestYarnWithoutRamp(t *testing.T) {
	whole := false
	c := Config{HeadDim: 8, RopeTheta: 10000, Context: 64,
		RopeScaling: &RopeScaling{Type: "yarn", Factor: 4, OriginalContext: 64, BetaFast: 2, BetaSlow: 2,
			Truncate: &whole}}
	got, _, err := c.Frequencies()
	if err != nil {
		t.Fatal(err)
	}
	at := 8 * math.Log(64/(2*2*math.Pi)) / (2 * math.Log(10000)) // 0.7
	for i, f := range got {
		want := math.Pow(10000, -float64(i)/4)
		if float64(i) > at+0.001 {
			want /= 4
		}
		if !(math.Abs(f/want-1) <= 1e-9) {
			t.Errorf("frequency %d is %g, want %g", i, f, want)
		}
	}
}
