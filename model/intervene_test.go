package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// factor is a factor on λ.
func factor(f float64) *float64 { return &f }

// intervened are the logits of a whole sequence under interventions.
func intervened(t *testing.T, m *model.Model, ids []int32, list ...layer.Intervention) []float32 {
	t.Helper()
	if err := m.Intervene(list...); err != nil {
		t.Fatal(err)
	}
	y := make([]float32, len(ids)*m.Config.Vocab)
	if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, y); err != nil {
		t.Fatal(err)
	}
	return y
}

// Several interventions of one head act together: factors of λ multiply, the last replacement of the second map counts,
// and a head that one of them knocks out is out.
func TestInterventionsCombine(t *testing.T) {
	m, ids := interveneModel(t, ref.New(), "diff")
	lambda := func(f float64, heads ...int) layer.Intervention {
		return layer.Intervention{Lambda: factor(f), Heads: heads}
	}
	second := func(s layer.Second, seed uint64) layer.Intervention { return layer.Intervention{Second: s, Seed: seed} }
	knock := layer.Intervention{Knockout: true, Heads: []int{0}}
	others := []int{0}
	for h := 2; h < m.Config.Heads; h++ {
		others = append(others, h)
	}
	for name, c := range map[string]struct{ many, one []layer.Intervention }{
		"factors": {[]layer.Intervention{lambda(0.5), lambda(0.5)}, []layer.Intervention{lambda(0.25)}},
		"factors of heads": {[]layer.Intervention{lambda(0.5), lambda(4, 1)},
			[]layer.Intervention{lambda(2, 1), lambda(0.5, others...)}},
		"maps": {[]layer.Intervention{second(layer.SecondAveraged, 0), second(layer.SecondShuffled, 3)},
			[]layer.Intervention{second(layer.SecondShuffled, 3)}},
		"knocked out": {[]layer.Intervention{knock, lambda(0.5)}, []layer.Intervention{lambda(0.5), knock}},
	} {
		if got, want := intervened(t, m, ids, c.many...), intervened(t, m, ids, c.one...); !slices.Equal(got, want) {
			t.Errorf("%s: %v is not %v", name, c.many, c.one)
		}
	}
	if slices.Equal(intervened(t, m, ids, lambda(0.5)), intervened(t, m, ids, lambda(0.25))) {
		t.Error("a factor of λ changes nothing")
	}
}

// What changes nothing gives the plain bits, on the devices that users have too, and so does a model after its
// intervention.
func TestInterventionUnchanged(t *testing.T) {
	for _, d := range []device.Device{ref.New(), cpu.New(cpu.Options{Threads: 2})} {
		for _, a := range layer.Archs() {
			m, ids := interveneModel(t, d, a.Name)
			plain := intervened(t, m, ids)
			nothing := []layer.Intervention{{}}
			if a.Maps == 2 {
				nothing = append(nothing, layer.Intervention{Lambda: factor(1)},
					layer.Intervention{Lambda: factor(1), Layers: []int{1}, Heads: []int{0}})
			}
			for _, v := range nothing {
				if got := intervened(t, m, ids, v); !slices.Equal(got, plain) {
					t.Errorf("%s on %s: %v changes the logits", a.Name, d.Name(), v)
				}
			}
			if got := intervened(t, m, ids, layer.Intervention{Knockout: true, Heads: []int{1}}); slices.Equal(got,
				plain) {
				t.Errorf("%s on %s: a knocked-out head changes nothing", a.Name, d.Name())
			}
			if got := intervened(t, m, ids); !slices.Equal(got, plain) {
				t.Errorf("%s on %s: the logits after the intervention differ from those before it", a.Name, d.Name())
			}
		}
	}
}

func interveneModel(t *testing.T, d device.Device, arch string) (*model.Model, []int32) {
	return pairedModel(t, d, arch, layer.PairingGroup)
}

func pairedModel(t *testing.T, d device.Device, arch string, pairing layer.Pairing) (*model.Model, []int32) {
	t.Helper()
	c := model.Config{Arch: arch, Vocab: 50, Context: 24, Layers: 2, Dim: 32, Heads: 4, KVHeads: 2, HeadDim: 8,
		Pairing: pairing}
	return modeltest.New(t, d, c, layer.Memory{}, 5), randomIDs(20, 50)
}

func randomIDs(n, vocab int) []int32 {
	ids := make([]int32, n)
	g := rand.New(rand.NewPCG(1, 1))
	for i := range ids {
		ids[i] = int32(g.IntN(vocab))
	}
	return ids
}

// every is interventions that change something, for an architecture.
func every(a *layer.Arch) []layer.Intervention {
	list := []layer.Intervention{{Knockout: true}, {Knockout: true, Layers: []int{1}, Heads: []int{0, 3}}}
	if a.Maps == 2 {
		list = append(list,
			layer.Intervention{Lambda: factor(0)},
			layer.Intervention{Lambda: factor(1.5), Layers: []int{0}, Heads: []int{2}},
			layer.Intervention{Second: layer.SecondShuffled, Seed: 3},
			layer.Intervention{Second: layer.SecondAveraged, Heads: []int{1}},
			layer.Intervention{Second: layer.SecondAveraged, Lambda: factor(0.5), Layers: []int{1}})
	}
	return list
}

// Decoding against a cache, in chunks, sees what a pass over the whole sequence sees.
func TestInterventionCached(t *testing.T) {
	for _, a := range layer.Archs() {
		m, ids := interveneModel(t, ref.New(), a.Name)
		for _, v := range every(a) {
			want := intervened(t, m, ids, v)
			c := m.NewCache(16, 4, 2, 8)
			for i := range 8 {
				c.Assign(0, i, int32(2*i+1))
				c.Assign(1, i, int32(2*i))
			}
			got := make([]float32, 50)
			for at := 0; at < len(ids); at += 5 {
				r := model.Rows{Want: []int32{4}}
				for i := at; i < at+5; i++ {
					r.IDs, r.Slots, r.Pos = append(r.IDs, ids[i]), append(r.Slots, 1), append(r.Pos, int32(i))
				}
				if err := c.Step(r, got); err != nil {
					t.Fatal(err)
				}
				if d := distance(got, want[(at+4)*50:(at+5)*50]); !(d <= 1e-4) {
					t.Errorf("%s %v: row %d differs by %g", a.Name, v, at+4, d)
				}
			}
			c.Free()
		}
	}
}

// recompute holds a layer's output to its own maps: HeadNorm((A1 − λA2)·V)·W_Oᵀ in float64, with the scores that the
// view shows.
type recompute struct {
	t    *testing.T
	m    *model.Model
	what string

	plain bool // without interventions: the context, before the norm, is that of the maps too
}

func (r *recompute) Attention(v layer.View) {
	T, s := v.Shape.T, v.Shape
	rows := v.RowReader(T)
	tiles := v.TileReader()
	defer rows.Free()
	defer tiles.Free()
	for h := range s.Heads {
		tiles.Scores(h, 0, func(t int, tile []float64, lam float64) {
			row := rows.Scores(h, 0, t)
			for i := range tile {
				if !(math.Abs(tile[i]-row[i]) <= 1e-12) {
					r.t.Fatalf("%s: tile and row of head %d differ", r.what, h)
				}
			}
		})
	}
	got, raw := make([]float64, T*s.Heads*s.DV), make([]float64, T*s.Heads*s.DV)
	device.ReadFloats(r.m.Device(), got, v.Out)
	device.ReadFloats(r.m.Device(), raw, v.Context)
	values := make([]float64, v.V.Len())
	device.ReadFloats(r.m.Device(), values, v.V)
	for h := range s.Heads {
		for t := range T {
			want, context := r.head(v, rows, values, h, t)
			for c := range want {
				if d := math.Abs(raw[(t*s.Heads+h)*s.DV+c] - context[c]); r.plain && d > 1e-9 {
					r.t.Fatalf("%s: the context of layer %d head %d row %d is %g away from its maps", r.what,
						v.Layer, h, t, d)
				}
				if d := math.Abs(got[(t*s.Heads+h)*s.DV+c] - want[c]); d > 1e-9 {
					r.t.Fatalf("%s: layer %d head %d row %d is %g away from its maps", r.what, v.Layer, h, t, d)
				}
			}
		}
	}
}

// head is HeadNorm(A1·V − λA2·V), each map with its own group's values, and the same before the norm; zero where no
// score is left. The gains are 1, as initialised.
func (r *recompute) head(v layer.View, rows *layer.RowReader, values []float64, h, row int) (out, raw []float64) {
	s := v.Shape
	sum := 0.0
	out = make([]float64, s.DV)
	if !slices.ContainsFunc(rows.Scores(h, 0, row), func(x float64) bool { return x != 0 }) {
		return out, out
	}
	for m := range v.Maps {
		w := 1.0
		if m == 1 {
			w = -rows.Lambda(row, h)
		}
		for t, a := range rows.Map(h, m, 0, row, false) {
			for c := range out {
				out[c] += w * a * values[(t*s.Groups+v.Group(h, m))*s.DV+c]
			}
		}
	}
	for _, x := range out {
		sum += x * x
	}
	cfg := r.m.Config
	raw = slices.Clone(out)
	if cfg.HeadNorm != layer.HeadNormOff {
		f := (1 - layer.LambdaSchedule(v.Layer)) / math.Sqrt(sum/float64(s.DV)+cfg.HeadNormEps)
		for c := range out {
			out[c] *= f
		}
	}
	return out, raw
}

func (r *recompute) Hidden(int, tensor.Tensor) {}

// Of every architecture, and of DIFF V2 with its pairs across groups.
func TestInterventionAgainstMaps(t *testing.T) {
	for _, a := range layer.Archs() {
		for _, pairing := range []layer.Pairing{layer.PairingGroup, layer.PairingAcross} {
			if pairing != layer.PairingGroup && !a.Variants {
				continue
			}
			m, ids := pairedModel(t, ref.New(), a.Name, pairing)
			for _, v := range append(every(a), layer.Intervention{}) {
				if err := m.Intervene(v); err != nil {
					t.Fatal(err)
				}
				r := &recompute{t: t, m: m, what: fmt.Sprint(a.Name, pairing, " ", v), plain: v.String() == "nothing"}
				if err := m.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// second reads rows of the second map and of λ.
type second struct {
	rows [][]float64
	lam  float64
}

func (s *second) Attention(v layer.View) {
	if v.Layer != 1 {
		return
	}
	r := v.RowReader(v.Shape.T)
	defer r.Free()
	for t := range v.Shape.T {
		s.rows = append(s.rows, slices.Clone(r.Map(1, 1, 0, t, false)[:t+1]))
	}
	s.lam = r.Lambda(v.Shape.T-1, 1)
}

func (s *second) Hidden(int, tensor.Tensor) {}

// What the words say: an averaged row is uniform, a shuffled one has the same entries in an order that the seed
// decides, λ is scaled.
func TestInterventionMeaning(t *testing.T) {
	for _, a := range layer.Archs() {
		if a.Maps < 2 {
			continue
		}
		arch := a.Name
		m, ids := interveneModel(t, ref.New(), arch)
		read := func(v layer.Intervention) second {
			var s second
			v.Layers = []int{1}
			if err := m.Intervene(v); err != nil {
				t.Fatal(err)
			}
			if err := m.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		plain := read(layer.Intervention{})
		half := read(layer.Intervention{Lambda: factor(0.5)})
		if d := half.lam - plain.lam/2; !(math.Abs(d) <= 1e-12) {
			t.Errorf("%s: half of λ = %g is %g", arch, plain.lam, half.lam)
		}
		mean := read(layer.Intervention{Second: layer.SecondAveraged})
		one, same, two := read(layer.Intervention{Second: layer.SecondShuffled, Seed: 1}),
			read(layer.Intervention{Second: layer.SecondShuffled, Seed: 1}),
			read(layer.Intervention{Second: layer.SecondShuffled, Seed: 2})
		last := len(ids) - 1
		if slices.Equal(one.rows[last], plain.rows[last]) || slices.Equal(one.rows[last], two.rows[last]) ||
			!slices.Equal(one.rows[last], same.rows[last]) {
			t.Errorf("%s: the order does not follow the seed", arch)
		}
		for i := range ids {
			if slices.Sort(one.rows[i]); !slices.Equal(one.rows[i], slices.Sorted(slices.Values(plain.rows[i]))) {
				t.Errorf("%s: row %d has other entries than before shuffling", arch, i)
			}
			for _, x := range mean.rows[i] {
				if !(math.Abs(x-1/float64(i+1)) <= 1e-12) {
					t.Errorf("%s: row %d has %g in an averaged map", arch, i, x)
				}
			}
		}
	}
}

func TestInterventionRefuses(t *testing.T) {
	plain, _ := interveneModel(t, ref.New(), "transformer")
	diff, _ := interveneModel(t, ref.New(), "diff")
	for _, v := range []layer.Intervention{{Lambda: factor(0)}, {Second: layer.SecondAveraged}} {
		if plain.Intervene(v) == nil {
			t.Errorf("%v: no error of a Transformer", v)
		}
	}
	for _, v := range []layer.Intervention{{Layers: []int{2}}, {Heads: []int{-1}}, {Heads: []int{4}},
		{Second: "swapped"}, {Lambda: factor(math.NaN())}} {
		if diff.Intervene(v) == nil {
			t.Errorf("%v: no error", v)
		}
	}
}

func TestParseIntervention(t *testing.T) {
	for _, s := range []string{"nothing", "lambda=0", "lambda=0.5+second=shuffled:7@L2", "second=averaged@L1.3@H2",
		"knockout@H4", "lambda=2@H1.2"} {
		v, err := layer.ParseIntervention(s)
		if err != nil || v.String() != s {
			t.Errorf("%q is read as %q, %v", s, v, err)
		}
	}
	for _, s := range []string{"", "lambda", "lambda=x", "second=shuffled:x", "knockout=1", "lambda=1@", "lambda=1@L0",
		"lambda=1@2", "knockout@L", "drop"} {
		if v, err := layer.ParseIntervention(s); err == nil {
			t.Errorf("%q is read as %q", s, v)
		}
	}
}

// The CPU device computes every intervention as the reference does: λ of a row and head where V1 has one for the layer,
// among others.
func TestInterventionOnCPU(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	t.Cleanup(func() { d.Close() })
	for _, a := range layer.Archs() {
		want, ids := interveneModel(t, ref.New(), a.Name)
		got, _ := interveneModel(t, d, a.Name)
		for _, v := range append(every(a), layer.Intervention{}) {
			if e := distance(intervened(t, got, ids, v), intervened(t, want, ids, v)); !(e <= 1e-3) {
				t.Errorf("%s %v: %g from the reference", a.Name, v, e)
			}
		}
	}
}
