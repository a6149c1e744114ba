package task

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/eval"
)

// A job of two parts sends each question to its own part, under its own number, and asks no part for nothing.
func TestBothParts(t *testing.T) {
	part := func(name string) func(context.Context, *eval.Subject, []int) ([]eval.Answer, error) {
		return func(_ context.Context, _ *eval.Subject, which []int) (out []eval.Answer, err error) {
			if len(which) == 0 {
				t.Errorf("%s is asked for nothing", name)
			}
			for _, w := range which {
				out = append(out, eval.Answer{ID: fmt.Sprint(name, w)})
			}
			return out, nil
		}
	}
	ask := both(3, part("a"), part("b"))
	for from := range 6 {
		for to := from + 1; to <= 6; to++ {
			var which []int
			var want, got []string
			for w := from; w < to; w++ {
				which, want = append(which, w), append(want, []string{"a0", "a1", "a2", "b0", "b1", "b2"}[w])
			}
			answers, err := ask(t.Context(), (*eval.Subject)(nil), which)
			for _, a := range answers {
				got = append(got, a.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: %v, want %v", which, got, want)
			}
		}
	}
}

// Precisions are named by their scale where it is not the usual one, or one of several; each has its row.
func TestPrecisions(t *testing.T) {
	for per, want := range map[string]string{"usual": "[exact keys@8 keys@4 both@8 both@4]",
		"head": "[exact keys/head@8 keys/head@4 both/head@8 both/head@4]"} {
		list, rows := precisions(&eval.Plan{Values: map[string]any{"of": []string{"keys", "both"}, "per": []string{per},
			"bits": []int{8, 4}}})
		var names []string
		for _, v := range list {
			names = append(names, v.name)
		}
		if fmt.Sprint(names) != want || len(rows) != 4 || rows[1].Of != "keys" || rows[1].Per != per ||
			rows[1].Bits != 4 || rows[2].Of != "both" {
			t.Errorf("%v, want %s: %+v", names, want, rows)
		}
	}
	list, _ := precisions(&eval.Plan{Values: map[string]any{"of": []string{"keys"}, "per": []string{"usual", "row"},
		"bits": []int{8}}})
	if list[1].name != "keys/usual@8" || list[2].name != "keys/row@8" {
		t.Errorf("%q and %q", list[1].name, list[2].name)
	}
}

// A head is chosen by layer, by number, by both or by neither; a token is in the unit that holds it.
func TestHeadsAndUnits(t *testing.T) {
	for layer := -1; layer < 3; layer++ {
		for head := -1; head < 3; head++ {
			n := 0
			for l := range 3 {
				for h := range 3 {
					if (headChoice{layer, head}).allows(l, h) {
						n++
						if layer >= 0 && l != layer || head >= 0 && h != head {
							t.Errorf("%d, %d is chosen for %d, %d", l, h, layer, head)
						}
					}
				}
			}
			if want := []int{1, 3}[int(truth(layer < 0))] * []int{1, 3}[int(truth(head < 0))]; n != want {
				t.Errorf("layer %d, head %d: %d heads, want %d", layer, head, n, want)
			}
		}
	}
	units := [][2]int{{0, 1}, {1, 4}, {4, 6}}
	for token, want := range []int{0, 1, 1, 1, 2, 2, 3, 3} {
		if got := unitOf(units, token); got != want {
			t.Errorf("token %d is in unit %d, want %d", token, got, want)
		}
	}
}

// The log of a sum has no overflow, and rows of logits add up on any number of cores.
func TestLogSums(t *testing.T) {
	for _, x := range [][]float32{{1000, 0, -1000}, {0, 1000, -1000}, {-1000, 0, 1000}} {
		if got := logSum(x); !near(got, 1000, 1e-9) {
			t.Errorf("%v: %g", x, got)
		}
	}
	g := rand.New(rand.NewPCG(1, 1))
	for rows := range 9 {
		p, q := make([]float32, 5*rows), make([]float32, 5*rows)
		want := 0.0
		for i := range p {
			p[i], q[i] = g.Float32(), g.Float32()
		}
		for r := range rows {
			want += klRow(p[5*r:5*r+5], q[5*r:5*r+5])
		}
		if got := klSum(p, q, 5); got != want {
			t.Errorf("%d rows: %g, want %g", rows, got, want)
		}
	}
}

// Spectra of nothing, of one direction and of unequal sides; entries at a hundredth of the largest are not near zero.
func TestGeometryEdges(t *testing.T) {
	for _, c := range []struct {
		rows [][]float64
		want []float64
	}{
		{[][]float64{{0, 0}, {0, 0}}, []float64{0, 0}}, {[][]float64{{3}}, []float64{3}},
		{[][]float64{{3}, {4}}, []float64{5}},
		{[][]float64{{1, 2}, {2, 4}, {3, 6}}, []float64{math.Sqrt(70), 0}},
		{[][]float64{{0, 1, 0}, {0, 0, 2}}, []float64{2, 1}},
		{[][]float64{{3, 0, 0, 0}, {0, 0, 0, 1}, {0, 2, 0, 0}, {0, 0, 0, 0}}, []float64{3, 2, 1, 0}},
	} {
		got := spectrum(c.rows)
		if len(got) != len(c.want) || slices.ContainsFunc(got, math.IsNaN) {
			t.Errorf("%v: %v", c.rows, got)
			continue
		}
		for i := range got {
			if !near(got[i], c.want[i], 1e-12) || (got[i] == 0) != (c.want[i] == 0) {
				t.Errorf("%v: %v, want %v", c.rows, got, c.want)
			}
		}
	}
	if spectralGap([]float64{3}) != 1 || spectralGap([]float64{0, 0}) != 1 || effectiveRank([]float64{0, 0}) != 0 ||
		collapse([][]float64{{0}, {0}}) != 0 {
		t.Errorf("%g, %g, %g, %g", spectralGap([]float64{3}), spectralGap([]float64{0, 0}),
			effectiveRank([]float64{0, 0}), collapse([][]float64{{0}, {0}}))
	}
	g := mapGeometry([][]float64{{100, 0, 0}, {1, 100, 0}, {0, 0, 0}}) // 1 is a hundredth; the last row has no largest
	if g.NearZero != 0 || math.IsNaN(g.Sparsity) || g.Negative != 0 {
		t.Errorf("%+v", g)
	}
	if g := mapGeometry([][]float64{{0, 0}, {0, 0}}); math.IsNaN(g.Negative + g.Sparsity + g.NearZero +
		g.Rank + g.Gap) {
		t.Errorf("%+v", g)
	}
	for _, c := range []struct {
		length, context int
		ok              bool
	}{{1024, 4096, true}, {1025, 4096, false}, {0, 1024, true}, {0, 1025, false}, {5000, 1024, true},
		{5000, 1025, false}, {128, 1 << 20, true}} {
		p := &eval.Plan{Context: c.context, Values: map[string]any{"length": c.length}}
		if err := validGeometry(p); (err == nil) != c.ok {
			t.Errorf("length %d in a context of %d: %v", c.length, c.context, err)
		}
	}
	for length, want := range map[string]int{"0": 96, "200": 96, "97": 96, "96": 96, "64": 64} {
		j := prepared(t, lookup(t, "geometry"),
			eval.Options{Limit: 1, Set: map[string]string{"geometry.length": length}}, 96)
		if got := sequenceLength(j.Plan); got != want {
			t.Errorf("length %s in a context of 96 is %d", length, got)
		}
	}
}

// No more than the hundred largest are kept, equal ones too; bins that cannot be are passed over; a sequence is enough.
func TestExtremesEdges(t *testing.T) {
	var e extremes
	for i := range 300 {
		e.add(float64(i / 2))
		if len(e.top) != min(i+1, keepTop) || !slices.IsSorted(e.top) {
			t.Fatalf("%d of %d kept", len(e.top), i+1)
		}
	}
	if x := e.result(); x.Top1 != 149 || x.Top2 != 149 || x.Top3 != 148 || x.Top10 != 145 || x.Top100 != 100 ||
		math.Abs(x.Median-74.5) > 1.5 {
		t.Errorf("%+v", x)
	}
	var m extremes
	m.merge(magnitude{Bins: []int{-1, 3, bins, 4, oneBin, 2, 7}, Top: []float64{1}})
	if m.n != 2 || m.result().Top1 != 1 || m.result().Top2 != 0 {
		t.Errorf("%d, %+v", m.n, m.result())
	}
	for tokens, ok := range map[int]bool{63: false, 64: true, 65: true} {
		p := &eval.Plan{Context: 128, Values: map[string]any{"tokens": tokens, "length": 64}}
		if err := validOutliers(p); (err == nil) != ok {
			t.Errorf("%d tokens of sequences of 64: %v", tokens, err)
		}
	}
}

// The largest magnification is of any layer, and there is one if any layer has a norm.
func TestContextGain(t *testing.T) {
	for _, gains := range [][]float64{{5, 0}, {0, 5}, {5, 3}, {3, 5}, {2, 5, 3}} {
		var layers []contextSums
		for _, g := range gains {
			layers = append(layers, contextSums{Value: 1, Sum: []float64{1}, N: []float64{1}, Least: 1,
				Largest: 1, Gain: g})
		}
		r := detailed(t, [][]contextSums{layers})
		if err := finishContext(r, []int{2}); err != nil || !detail[ContextDetail](t, r).Norm {
			t.Errorf("%v: %v", gains, err)
		}
		metricIs(t, r, "head_norm_gain", 5, 1)
	}
}
