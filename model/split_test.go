package model

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
)

// held is what a model's ranks hold after a pass: losses, logits and every gradient, by name.
type held struct {
	losses, logits []float32
	lambdas        []float64
	grads          map[string][]float32
	params         []*layer.Param
}

// pass runs two micro-batches forward and backward as one rank of a split model, on the oracle.
func pass(c Config, b *Batch, s *layer.Split) (*held, error) {
	d := ref.New()
	defer d.Close()
	m, err := New(d, c, layer.Memory{Train: true, Split: s})
	if err != nil {
		return nil, err
	}
	defer m.Free()
	m.Init(7)
	h := &held{losses: make([]float32, b.B*b.T), logits: make([]float32, b.B*b.T*c.Vocab),
		grads: map[string][]float32{}, params: m.Params.List}
	var feed Feed
	defer feed.Free()
	if err := m.Put(&feed, b, b.B/2); err != nil {
		return nil, err
	}
	m.Gradient(&feed, 0.5, nil)
	m.Losses(h.losses)
	h.lambdas, _, _ = m.LambdaRange(nil)
	for _, p := range m.Params.List {
		g := make([]float32, p.Rows*p.Cols)
		device.ReadFloats(d, g, p.G)
		h.grads[p.Name] = g
	}
	if err := m.Logits(b, h.logits); err != nil {
		return nil, err
	}
	return h, s.Err()
}

// far is the largest difference, beside 1.
func far[E float32 | float64](a, b []E) float64 {
	worst := 0.0
	for i := range a {
		worst = math.Max(worst, math.Abs(float64(a[i]-b[i]))/math.Max(1, math.Abs(float64(b[i]))))
	}
	if len(a) != len(b) {
		return math.Inf(1)
	}
	return worst
}

// A model that ranks split computes what the whole one does: losses, logits, λ, and each rank its part of every
// gradient.
func TestSplitEqualsWhole(t *testing.T) {
	for name, c := range configs(t) {
		c.Vocab = 20
		b := batch(rand.New(rand.NewPCG(3, 4)), c, 4, 6)
		want, err := pass(c, b, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, n := range []int{2, 4} {
			if c.CheckSplit(n) != nil {
				continue
			}
			var mu sync.Mutex
			err := disttest.NewWorld(n, disttest.Options{}).Run(func(team dist.Comm) error {
				got, err := pass(c, b, layer.NewSplit(team))
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				const close = 2e-6 // results are read as float32
				if x := far(got.losses, want.losses); x > close {
					t.Errorf("%s, %d ranks: losses differ by %g", name, n, x)
				}
				if x := far(got.logits, want.logits); x > close {
					t.Errorf("%s, %d ranks: logits differ by %g", name, n, x)
				}
				if x := far(got.lambdas, want.lambdas); x > close {
					t.Errorf("%s, %d ranks: λ differs by %g", name, n, x)
				}
				for _, p := range got.params {
					if x := far(got.grads[p.Name], p.Take(want.grads[p.Name])); x > close {
						t.Errorf("%s, rank %d of %d: gradient of %s differs by %g", name, team.Rank(), n, p.Name, x)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s, %d ranks: %v", name, n, err)
			}
		}
	}
}

// What cannot be split is refused with what could be: the two maps of a differential head stay on one rank.
func TestSplitRefuses(t *testing.T) {
	base := Config{Arch: "diff", Vocab: 24, Context: 16, Layers: 1, Dim: 12, Heads: 3, HeadDim: 4, FFN: 24}
	for _, x := range []struct {
		change func(c *Config)
		parts  int
		want   []string
	}{
		{func(*Config) {}, 2, []string{"tp=2", "pairs", "heads", "3", "[1 3]"}},
		{func(c *Config) { c.Arch, c.Heads = "transformer", 6 }, 4, []string{"tp=4", "heads = 6", "[1 2 3 6]"}},
		{func(c *Config) { c.Heads, c.KVHeads = 6, 2 }, 3, []string{"tp=3", "kv_heads = 2", "[1 2]"}},
		{func(c *Config) { c.FFN = 25 }, 3, []string{"tp=3", "ffn = 25", "27"}},
		{func(c *Config) { c.Vocab = 25 }, 3, []string{"tp=3", "vocab = 25", "27"}},
		{func(c *Config) { c.Arch, c.Heads, c.KVHeads, c.Pairing = "diff2", 4, 2, layer.PairingAcross }, 2,
			[]string{"across", "tp=1"}},
	} {
		c := base
		x.change(&c)
		c, err := c.Complete()
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckSplit(x.parts)
		for _, w := range x.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%+v in %d parts: %v; want %q in it", c, x.parts, err, w)
			}
		}
	}
}
