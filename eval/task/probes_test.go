package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// nextLogits are the logits of a text under some interventions.
func nextLogits(t *testing.T, s *eval.Subject, b *model.Batch, list ...layer.Intervention) []float32 {
	t.Helper()
	out := make([]float32, b.T*s.Model.Config.Vocab)
	if err := errors.Join(s.Intervene(list...), s.Model.Logits(b, out), s.Intervene()); err != nil {
		t.Fatal(err)
	}
	return out
}

// The divergence of a variant is KL(plain ‖ variant) over the positions of the text, their number being its weight.
func TestDivergenceOfAVariant(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	v, err := layer.ParseIntervention("knockout@L1")
	if err != nil {
		t.Fatal(err)
	}
	list, err := interventionVariants([]string{"knockout@L1"})
	if err != nil {
		t.Fatal(err)
	}
	d := &divergence{texts: []string{"not this one", "a text that is long enough", "short"}, length: 20, list: list}
	got, err := d.ask(t.Context(), s, []int{1, 2})
	if err != nil || len(got) != 2 {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, n := range []int{20, 6} { // the first token and the bytes
		b := read(s, d.texts[i+1], 20)
		p, q := nextLogits(t, s, b), nextLogits(t, s, b, v)
		want, vocab := 0.0, s.Model.Config.Vocab
		for at := range n {
			var zp, zq, sum float64
			for k := range vocab {
				zp, zq = zp+math.Exp(float64(p[at*vocab+k])), zq+math.Exp(float64(q[at*vocab+k]))
			}
			for k := range vocab {
				x, y := math.Exp(float64(p[at*vocab+k]))/zp, math.Exp(float64(q[at*vocab+k]))/zq
				sum += x * math.Log(x/y)
			}
			want += sum / float64(n)
		}
		if x := got[i].Values["kl knockout@L1"]; b.T != n || !near(x, want, 1e-9+1e-6*want) ||
			got[i].Weight("kl knockout@L1") != float64(n) || want <= 0 {
			t.Errorf("text %d: %g over %g, want %g over %d", i+1, x, got[i].Weight("kl knockout@L1"), want, n)
		}
	}
	if !slices.Equal(d.ids(), []string{"kl 0", "kl 1", "kl 2"}) {
		t.Errorf("%q", d.ids())
	}
}

// The change by head is that of an intervention on this head of this layer, in loss per token.
func TestEachHeadByItself(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	const text = "each head by itself"
	e, err := newEachHead("knockout", []string{"another", text})
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.ask(t.Context(), s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.change(got)
	if err != nil || len(list) != s.Model.Config.Layers || len(list[0]) != s.Model.Config.Heads {
		t.Fatalf("%v, %v", list, err)
	}
	ids := s.Encode(text)
	loss := func(list ...layer.Intervention) float64 {
		n, vocab := len(ids)-1, s.Model.Config.Vocab
		x := nextLogits(t, s, &model.Batch{B: 1, T: n, IDs: ids[:n]}, list...)
		sum := 0.0
		for t := range n {
			row := x[t*vocab : (t+1)*vocab]
			sum += logSum(row) - float64(row[ids[t+1]])
		}
		return sum / float64(n)
	}
	plain := loss()
	for l, row := range list {
		for h, x := range row {
			want := loss(layer.Intervention{Knockout: true, Layers: []int{l}, Heads: []int{h}}) - plain
			if !near(x, want, 1e-6) || want == 0 {
				t.Errorf("layer %d, head %d: %g, want %g", l, h, x, want)
			}
		}
	}
}

// allMaps keeps what the geometry is computed from: both maps and the applied one of every head, and hidden states.
type allMaps struct {
	t      *testing.T
	dev    device.Device
	maps   [][][][][]float64 // [layer][kind][head][query][key]
	hidden [][][]float64     // [layer][token]
}

func (p *allMaps) Attention(v layer.View) {
	one := func(m int) (out [][][]float64) {
		r := v.RowReader(v.Shape.T)
		defer r.Free()
		for h := range v.Shape.Heads {
			var head [][]float64
			for t := range v.Shape.T {
				row := make([]float64, v.Shape.T)
				if m == 2 {
					copy(row, r.Scores(h, 0, t))
				} else {
					copy(row, r.Map(h, m, 0, t, false))
				}
				head = append(head, row)
			}
			out = append(out, head)
		}
		return out
	}
	kinds := [][][][]float64{one(0)}
	if v.Maps == 2 {
		kinds = append(kinds, one(1), one(2))
	}
	p.maps = append(p.maps, kinds)
}

func (p *allMaps) Hidden(_ int, x tensor.Tensor) {
	all := make([]float64, x.Len())
	device.ReadFloats(p.dev, all, x)
	var rows [][]float64
	for t := range x.Rows {
		rows = append(rows, all[t*x.Cols:(t+1)*x.Cols])
	}
	p.hidden = append(p.hidden, rows)
}

// The geometry of a model is the mean over heads of each kind of map, in the order of its names, and that of the hidden
// states after each layer.
func TestGeometryOfAModel(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 64)
		b := read(s, "the geometry of maps", 12)
		want, got := &allMaps{t: t, dev: s.Model.Device()}, &geometryProbe{ctx: t.Context(), dev: s.Model.Device()}
		if err := errors.Join(s.Model.Inspect(b, want), s.Model.Inspect(b, got)); err != nil {
			t.Fatal(err)
		}
		names := []string{"A"}
		if a.Maps == 2 {
			names = []string{"A1", "A2", "A1 − λA2"}
		}
		for l, g := range got.layers {
			for k, name := range names {
				var mean GeometryMap
				for _, head := range want.maps[l][k] {
					mean.add(mapGeometry(head), 1/float64(len(want.maps[l][k])))
				}
				m := g.Maps[k]
				if m.Name != name || len(g.Maps) != len(names) || !near(m.Gap, mean.Gap, 1e-9) ||
					!near(m.Rank, mean.Rank, 1e-9) || !near(m.Sparsity, mean.Sparsity, 1e-9) ||
					m.NearZero != mean.NearZero || !near(m.Negative, mean.Negative, 1e-9) {
					t.Errorf("%s, layer %d: %s is %+v, want %+v", a.Name, l, name, m, mean)
				}
			}
			sigma := spectrum(want.hidden[l])
			if !near(g.HiddenGap, 1-sigma[1]/sigma[0], 1e-9) || !near(g.HiddenRank, effectiveRank(sigma), 1e-9) ||
				!near(g.Collapse, collapse(want.hidden[l]), 1e-12) {
				t.Errorf("%s, layer %d: %+v", a.Name, l, g)
			}
		}
	}
}

// The extremes of a context are those of any head and position, and the gain of a norm is 1/√(RMS² + ε) at its
// smallest.
func TestContextExtremes(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	b := read(s, "extremes of contexts", 16)
	const eps = 1e-3
	p := &contextProbe{dev: s.Model.Device(), ends: []int{2, 40}, norm: true, eps: eps}
	all := &contexts{dev: s.Model.Device()}
	if err := errors.Join(s.Model.Inspect(b, p), s.Model.Inspect(b, all)); err != nil {
		t.Fatal(err)
	}
	for l, x := range p.layers {
		least, largest := slices.Min(all.rms[l]), slices.Max(all.rms[l])
		if !near(x.Least, least, 1e-12) || !near(x.Largest, largest, 1e-12) ||
			!near(x.Gain, 1/math.Sqrt(least*least+eps), 1e-9) || least >= largest {
			t.Errorf("layer %d: %+v, want %g to %g", l, x, least, largest)
		}
	}
}

// contexts keeps the RMS of every head and position.
type contexts struct {
	dev device.Device
	rms [][]float64
}

func (c *contexts) Hidden(int, tensor.Tensor) {}

func (c *contexts) Attention(v layer.View) {
	x := make([]float64, v.Context.Len())
	device.ReadFloats(c.dev, x, v.Context)
	var out []float64
	for part := range slices.Chunk(x, v.Shape.DV) {
		sum := 0.0
		for _, y := range part {
			sum += y * y
		}
		out = append(out, math.Sqrt(sum/float64(len(part))))
	}
	c.rms = append(c.rms, out)
}

// Names of precisions say what they are, and the score of another task keeps its direction.
func TestLowbitRows(t *testing.T) {
	set := map[string]string{"lowbit.task": "lm", "lowbit.with": "pieces=2;length=20", "lowbit.bits": "16,3",
		"lowbit.of": "keys,values", "lowbit.per": "usual,head", "lowbit.texts": "1", "lowbit.length": "20"}
	s := subject(t, ref.New(), "diff", 48)
	r := run(t, *lookup(t, "lowbit"), eval.Options{Seed: 3, Shots: -1, Set: set}, modelOf("m", s, 48))["m"]
	var rows, metrics []string
	for _, x := range detail[LowbitDetail](t, r).Rows {
		rows = append(rows, fmt.Sprintf("%s/%s@%d", x.Of, x.Per, x.Bits))
		m, ok := r.Metric(rows[len(rows)-1])
		kl, also := r.Metric("kl " + rows[len(rows)-1])
		if !ok || !also || m.Mean != x.Score || kl.Mean != *x.KL || m.Better != eval.Lower || kl.Better != eval.Lower {
			t.Errorf("%+v: %+v, %+v", x, m, kl)
		}
	}
	for _, m := range r.Metrics[:5] {
		metrics = append(metrics, m.Name+": "+m.Label)
	}
	if want := "keys/usual@16 keys/usual@3 keys/head@16 keys/head@3 values/usual@16 values/usual@3 values/head@16 " +
		"values/head@3"; strings.Join(
		rows, " ") != want {
		t.Errorf("%q", rows)
	}
	want := []string{"exact: score, exact", "keys/usual@16: score, keys of 16 bits",
		"kl keys/usual@16: KL to exact, keys of 16 bits", "keys/usual@3: score, keys of 3 bits",
		"kl keys/usual@3: KL to exact, keys of 3 bits"}
	if !slices.Equal(metrics, want) || r.Metrics[0].Better != eval.Lower {
		t.Errorf("%q", metrics)
	}
	if m, _ := r.Metric("values/head@3"); m.Label != "score, values of 3 bits per head" {
		t.Errorf("%q", m.Label)
	}
}
