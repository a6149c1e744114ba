package layer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
)

// Gradients by map, by the layout that the contract of differential attention states: query heads 2h and 2h+1 are the
// two maps of head h, key heads 2g and 2g+1 those of group g; values follow. Each group gets rows of one value.
func TestGradientsByMap(t *testing.T) {
	const dim, d = 16, 4 // 4 heads in 2 groups
	for arch, rows := range map[string][]string{
		"transformer":  {"q", "q", "q", "q", "k", "k", "v", "v"},
		"diff":         {"q1", "q2", "q1", "q2", "q1", "q2", "q1", "q2", "k1", "k2", "k1", "k2", "v", "v", "v", "v"},
		"diff2":        {"q1", "q2", "q1", "q2", "q1", "q2", "q1", "q2", "k", "k", "v", "v"},
		"diff2 across": {"q1", "q1", "q1", "q1", "q2", "q2", "q2", "q2", "k", "k", "v", "v"},
		"gda":          {"q1", "q1", "q2", "q1", "q1", "q2", "k1", "k2", "k1", "k2", "v", "v", "v", "v"},
	} {
		dev := ref.New()
		name, pairing, _ := strings.Cut(arch, " ")
		c := modeltest.Tiny(name, 20, 16)
		c.Pairing = layer.Pairing(pairing)
		m := modeltest.New(t, dev, c, layer.Memory{Train: true}, 1)
		value := map[string]float64{"q": 1, "q1": 1, "q2": 2, "k": 3, "k1": 3, "k2": 4, "v": 5}
		p := m.Params.Lookup("layers.1.attn.qkv.weight")
		if p.Rows != len(rows)*d || p.Cols != dim {
			t.Fatalf("%s: %d × %d, want %d × %d", arch, p.Rows, p.Cols, len(rows)*d, dim)
		}
		m.Params.ZeroGrad(dev)
		g := make([]float64, p.Rows*p.Cols)
		count := map[string]int{}
		for i := range g {
			name := rows[i/dim/d]
			g[i] = value[name]
			count[name]++
		}
		device.WriteFloats(dev, p.G, g)
		for _, l := range []int{1, -1} {
			n := m.NewGradientNorms(m.GradientGroups(l))
			seen := 0
			for i, x := range n.Read(nil) {
				name := n.Groups[i].Name
				v, ok := value[name]
				if want := v * math.Sqrt(float64(count[name])); ok && !(math.Abs(x-want) <= 1e-5) || !ok && x != 0 {
					t.Errorf("%s, layer %d: %s has the norm %g, want %g", arch, l, name, x, want)
				}
				if ok {
					seen++
				}
				if l == 1 && ok && n.Groups[i].Count != count[name] {
					t.Errorf("%s: %s has %d parameters, want %d", arch, name, n.Groups[i].Count, count[name])
				}
			}
			if seen != len(count) {
				t.Errorf("%s, layer %d: %d kinds of %d", arch, l, seen, len(count))
			}
			n.Free()
		}
		m.Free()
	}
}

// together is a device that takes rows of one sequence together, from two rows up.
type together struct{ device.Device }

func (together) ChunkRows() int { return 2 }

// decoded runs ids through a cache whose pages are in reverse order, some rows at a time, and gives all logits.
func decoded(t *testing.T, m *model.Model, ids []int32, steps ...int) (out []float32) {
	t.Helper()
	c := m.NewCache(8, 3, 2, 6)
	defer c.Free()
	for i := range 6 {
		c.Assign(1, i, int32(7-i))
	}
	at := 0
	for _, n := range steps {
		var r model.Rows
		for i := range n {
			r.IDs, r.Slots = append(r.IDs, ids[at+i]), append(r.Slots, 1)
			r.Pos, r.Want = append(r.Pos, int32(at+i)), append(r.Want, int32(i))
		}
		y := make([]float32, n*m.Config.Vocab)
		if err := c.Step(r, y); err != nil {
			t.Fatal(err)
		}
		out, at = append(out, y...), at+n
	}
	return out
}

// Rows against a cache have the logits of a whole pass: one by one, in parts, together, with few bits per row, and
// under interventions; for every architecture and variant.
func TestCachedRowsEqualThePass(t *testing.T) {
	ids := []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}
	half := 0.5
	for _, a := range layer.Archs() {
		configs := map[string]model.Config{"": modeltest.Tiny(a.Name, 20, 16)}
		if a.Variants {
			across, none := modeltest.Tiny(a.Name, 20, 16), modeltest.Tiny(a.Name, 20, 16)
			across.Pairing, none.LambdaForm = layer.PairingAcross, layer.LambdaNone
			configs["across"], configs["no λ"] = across, none
		}
		for variant, c := range configs {
			for _, dev := range []device.Device{ref.New(), together{ref.New()}} {
				m := modeltest.New(t, dev, c, layer.Memory{}, 5)
				ways := map[string]func() error{
					"plain": func() error { return m.Intervene() },
					"lowbit": func() error {
						return m.SetLowbit(layer.Lowbit{Logits: 5, Per: layer.PerRow, Keys: 4, Values: 3,
							CachePer: layer.PerRow})
					},
				}
				ways["knockout"] = func() error {
					return m.Intervene(layer.Intervention{Knockout: true,
						Heads: []int{1}})
				}
				if a.Maps == 2 {
					ways["averaged"] = func() error {
						return m.Intervene(layer.Intervention{Second: layer.SecondAveraged, Lambda: &half})
					}
				}
				for way, set := range ways {
					if err := set(); err != nil {
						t.Fatalf("%s %s, %s: %v", a.Name, variant, way, err)
					}
					want := make([]float32, len(ids)*c.Vocab)
					if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, want); err != nil {
						t.Fatal(err)
					}
					for _, steps := range [][]int{{11}, {4, 1, 6}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 9}} {
						for i, x := range decoded(t, m, ids, steps...) {
							if !(math.Abs(float64(x-want[i])) <= 1e-5) {
								t.Fatalf("%s %s, %s in steps of %v: logit %d of row %d is %g, want %g", a.Name, variant,
									way, steps, i%c.Vocab, i/c.Vocab, x, want[i])
							}
						}
					}
					if err := m.SetLowbit(layer.Lowbit{}); err != nil {
						t.Fatal(err)
					}
					if err := m.Intervene(); err != nil {
						t.Fatal(err)
					}
				}
				m.Free()
			}
		}
	}
}

// passed is what a training pass and decoding of the same tokens leave.
type passed struct {
	losses, logits []float32
	grads          map[string][]float64
	params         []*layer.Param
}

func pass(t *testing.T, c model.Config, s *layer.Split, how layer.Recompute) *passed {
	ids, targets := []int32{3, 1, 4, 1, 5, 9, 2, 6}, []int32{1, 4, 1, 5, 9, 2, 6, -1}
	m := modeltest.New(t, ref.New(), c, layer.Memory{Train: true, Split: s}, 5)
	m.Recompute(how)
	r := &passed{losses: make([]float32, 8), grads: map[string][]float64{}, params: m.Params.List}
	var f model.Feed
	defer f.Free()
	if err := m.Put(&f, &model.Batch{B: 2, T: 4, IDs: ids, Targets: targets}, 1); err != nil {
		t.Fatal(err)
	}
	m.Gradient(&f, 0.5, nil)
	m.Losses(r.losses)
	for _, p := range m.Params.List {
		g := make([]float64, p.Rows*p.Cols)
		device.ReadFloats(m.Device(), g, p.G)
		r.grads[p.Name] = g
	}
	r.logits = decoded(t, m, ids, 3, 1, 4)
	return r
}

// eachToPass calls f for every architecture, with biases and tied embeddings and without.
func eachToPass(f func(c model.Config)) {
	for _, a := range layer.Archs() {
		for _, bias := range []bool{false, true} {
			c := modeltest.Tiny(a.Name, 20, 16)
			c.Bias, c.FFN, c.TieEmbed = bias, 24, bias
			f(c)
		}
	}
}

// Recomputation changes neither losses nor gradients.
func TestRecomputingEveryLayer(t *testing.T) {
	eachToPass(func(c model.Config) {
		want := pass(t, c, nil, layer.RecomputeOff)
		for _, how := range layer.Recomputes {
			again := pass(t, c, nil, how)
			if !slices.Equal(again.losses, want.losses) {
				t.Errorf("%s, recomputing %s: other losses", c.Arch, how)
			}
			for name, g := range want.grads {
				if !slices.Equal(again.grads[name], g) {
					t.Errorf("%s, recomputing %s: another gradient of %s", c.Arch, how, name)
				}
			}
		}
	})
}

// Two ranks with half of each layer, recomputing attention, have the losses, the logits of decoding and the gradients
// of one that has all.
func TestHalvesOfEveryLayer(t *testing.T) {
	far := func(a, b []float64) (worst float64) {
		for i := range a {
			worst = max(worst, math.Abs(a[i]-b[i])/max(1, math.Abs(b[i])))
		}
		return worst
	}
	wide := func(x []float32) (out []float64) {
		for _, v := range x {
			out = append(out, float64(v))
		}
		return out
	}
	eachToPass(func(c model.Config) {
		want := pass(t, c, nil, layer.RecomputeOff)
		var mu sync.Mutex
		err := disttest.NewWorld(2, disttest.Options{}).Run(func(team dist.Comm) error {
			got := pass(t, c, layer.NewSplit(team), layer.RecomputeAttention)
			mu.Lock()
			defer mu.Unlock()
			if x := far(wide(got.losses), wide(want.losses)); x > 1e-6 {
				t.Errorf("%s: losses differ by %g", c.Arch, x)
			}
			if x := far(wide(got.logits), wide(want.logits)); x > 1e-5 {
				t.Errorf("%s: logits differ by %g", c.Arch, x)
			}
			for _, p := range got.params {
				whole := make([]float32, 0)
				for _, v := range want.grads[p.Name] {
					whole = append(whole, float32(v))
				}
				if x := far(got.grads[p.Name], wide(p.Take(whole))); x > 1e-5 {
					t.Errorf("%s: rank %d's gradient of %s differs by %g", c.Arch, team.Rank(), p.Name, x)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(fmt.Errorf("%s: %w", c.Arch, err))
		}
	})
}
