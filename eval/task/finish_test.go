package task

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/model"
)

// detailed is a result whose answers have these details.
func detailed[T any](t *testing.T, list []T, values ...map[string]float64) *eval.Result {
	t.Helper()
	r := &eval.Result{}
	for i, d := range list {
		a := eval.Answer{ID: fmt.Sprint(i)}
		if i < len(values) {
			a.Values = values[i]
		}
		if err := a.SetDetail(d); err != nil {
			t.Fatal(err)
		}
		r.Answers = append(r.Answers, a)
	}
	return r
}

func metricIs(t *testing.T, r *eval.Result, name string, value float64, n int) {
	t.Helper()
	if m, ok := r.Metric(name); !ok || !near(m.Value, value, 1e-12) || m.N != n {
		t.Errorf("%s is %+v, want %g of %d", name, m.Mean, value, n)
	}
}

// By hand: two lengths, two depths with two prompts and one; a layer of one head and one of two. Depths are means over
// their own prompts, heads over all prompts of a length, right and wrong over those; metrics are of the last length.
func TestFinishAttention(t *testing.T) {
	head := func(answer, before, after, value float64) HeadGaze {
		return HeadGaze{Magnitude: Segments{Answer: answer, Before: before, After: after},
			Value: Segments{Answer: value}}
	}
	gaze := func(x float64, lambda ...float64) Gaze { // over all heads: answer 2x, before x/3, after x, value 4x/3
		return Gaze{Heads: [][]HeadGaze{{head(x, x, 0, x)}, {head(2*x, 0, x, 3*x), head(3*x, 0, 2*x, 0)}},
			Lambda: lambda}
	}
	cases := []needleCase{{length: 0, depth: 0}, {length: 1, depth: 0}, {length: 1, depth: 0}, {length: 1, depth: 1}}
	right := []map[string]float64{{"bound": 1}, {"bound": 1}, {"bound": 0}, {"bound": 0.5}}
	r := detailed(t, []Gaze{gaze(7, 0.5, 0.25), gaze(1, 0.5, 0.75), gaze(3, 1, 0.5), gaze(6, 1, 1)}, right...)
	if err := finishAttention(r, cases,
		AttentionDetail{Lengths: []int{100, 200}, Depths: []float64{0, 1}}); err != nil {
		t.Fatal(err)
	}
	d := detail[AttentionDetail](t, r)
	if len(d.Results) != 2 || len(d.Lambda) != 2 || !near(d.Lambda[0], 0.75, 1e-12) ||
		!near(d.Lambda[1], 0.625, 1e-12) {
		t.Fatalf("%+v", d)
	}
	short, long := d.Results[0], d.Results[1]
	if !near(short.ByDepth[0].Magnitude.Answer, 14, 1e-12) || short.ByDepth[1].Magnitude.Answer != 0 ||
		short.Right.N != 1 || short.Wrong != nil || short.Maps != 1 {
		t.Errorf("%+v", short)
	}
	for i, want := range []float64{4, 12} { // 2·(1+3)/2 and 2·6
		if !near(long.ByDepth[i].Magnitude.Answer, want, 1e-12) {
			t.Errorf("depth %d: %g, want %g", i, long.ByDepth[i].Magnitude.Answer, want)
		}
	}
	for l, heads := range [][]float64{{10. / 3}, {20. / 3, 10}} { // x is 10/3 on average
		for h, want := range heads {
			if !near(long.ByHead[l][h].Magnitude.Answer, want, 1e-12) {
				t.Errorf("layer %d, head %d: %g, want %g", l, h, long.ByHead[l][h].Magnitude.Answer, want)
			}
		}
	}
	metricIs(t, r, "answer_right", 2, 1)
	metricIs(t, r, "noise_right", 4./3, 1)
	metricIs(t, r, "value_answer_right", 4./3, 1)
	metricIs(t, r, "answer_wrong", 9, 2)
	metricIs(t, r, "noise_wrong", 6, 2)
	metricIs(t, r, "value_answer_wrong", 6, 2)
	if len(r.Metrics) != 6 {
		t.Errorf("%d metrics", len(r.Metrics))
	}
	two := detailed(t, []Gaze{gaze(1)}, right[0])
	two.Add("a2_answer", "", eval.Neither, eval.Mean{})
	if err := finishAttention(two, cases[:1], AttentionDetail{Lengths: []int{9}, Depths: []float64{0}}); err != nil ||
		detail[AttentionDetail](t, two).Results[0].Maps != 2 {
		t.Errorf("two maps: %v", err)
	}
	other := detailed(t, []Gaze{gaze(1), {Heads: [][]HeadGaze{{{}, {}}}}}, right[:2]...)
	if finishAttention(other, []needleCase{{}, {}}, AttentionDetail{Lengths: []int{9}, Depths: []float64{0}}) == nil {
		t.Error("prompts of models with other heads were averaged")
	}
}

// By hand: two sequences of one layer. Grids are relative to each sequence's own values, bounds are 1/√n at the middle
// of a range, and extremes are those of any sequence.
func TestFinishContext(t *testing.T) {
	list := [][]contextSums{
		{{Value: 2, Sum: []float64{4, 12}, N: []float64{2, 4}, Least: 1, Largest: 5, Gain: 3}},
		{{Value: 4, Sum: []float64{4, 8}, N: []float64{2, 4}, Least: 1, Largest: 6, Gain: 2}},
	}
	r := detailed(t, list)
	if err := finishContext(r, []int{2, 6}); err != nil {
		t.Fatal(err)
	}
	d := detail[ContextDetail](t, r)
	// Position 1 alone, and positions 2 to 5, in the middle 3.5.
	if !near(d.Bound[0], 1/math.Sqrt(1), 1e-12) || !near(d.Bound[1], 1/math.Sqrt(3.5), 1e-12) {
		t.Errorf("bounds %v", d.Bound)
	}
	x := d.Layers[0]
	if x.Value != 3 || !near(x.Context, 28./12, 1e-12) || x.Least != 0.25 || x.Largest != 2.5 ||
		x.Gain != 3 || !d.Norm {
		t.Errorf("%+v", x)
	}
	if !near(d.Grid[0][0], (4./2+4./4)/4, 1e-12) || !near(d.Grid[0][1], (12./2+8./4)/8, 1e-12) {
		t.Errorf("%v", d.Grid)
	}
	metricIs(t, r, "rms_layer_1", 28./12/3, 2)
	metricIs(t, r, "head_norm_gain", 3, 2)
	p := contextProbe{layers: []contextSums{list[0][0], list[1][0]}}
	v := p.values() // (16/6/2 + 12/6/4)/2
	if !near(v["rms"], (16./12+12./24)/2, 1e-12) || v["least"] != 0.25 || v["largest"] != 2.5 {
		t.Errorf("%v", v)
	}
	plain := detailed(t, [][]contextSums{{{Value: 1, Sum: []float64{1, 0}, N: []float64{1, 0}}}})
	if err := finishContext(plain, []int{2, 6}); err != nil || detail[ContextDetail](t, plain).Norm ||
		detail[ContextDetail](t, plain).Grid[0][1] != 0 {
		t.Errorf("without a norm: %v", err)
	}
	if _, ok := plain.Metric("head_norm_gain"); ok {
		t.Error("a model without a norm has a gain")
	}
	if finishContext(detailed(t, [][]contextSums{list[0], append(list[0], list[0]...)}), []int{2, 6}) == nil {
		t.Error("sequences of models with other layers were averaged")
	}
}

// By hand: an answer is the mean over layers, of maps the last kind; the table is the mean over sequences.
func TestFinishGeometry(t *testing.T) {
	maps := func(x float64) []GeometryMap {
		return []GeometryMap{{Name: "A1", Gap: 99}, {Name: "A2", Gap: 98},
			{Name: appliedMap, Gap: x, Rank: 2 * x, Sparsity: 3 * x, NearZero: 4 * x, Negative: 5 * x}}
	}
	layers := []GeometryLayer{{Maps: maps(1), HiddenGap: 1, HiddenRank: 2, Collapse: 3},
		{Maps: maps(3), HiddenGap: 3, HiddenRank: 6, Collapse: 9}}
	a, err := (&geometryProbe{layers: layers}).answer()
	want := map[string]float64{"hidden_gap": 2, "hidden_rank": 4, "collapse": 6, "map_gap": 2, "map_rank": 4,
		"sparsity": 6, "near_zero": 8, "negative": 10}
	if err != nil || fmt.Sprint(a.Values) != fmt.Sprint(want) {
		t.Errorf("%v, %v", a.Values, err)
	}
	r := detailed(t, [][]GeometryLayer{layers,
		{{Maps: maps(5), HiddenGap: 5, HiddenRank: 4, Collapse: 1}, {Maps: maps(7)}}})
	if err := finishGeometry(r, 16); err != nil {
		t.Fatal(err)
	}
	d := detail[GeometryDetail](t, r)
	first, last := d.Layers[0].Applied(), d.Layers[1].Applied()
	if d.Length != 16 || d.Layers[0].HiddenGap != 3 || d.Layers[0].HiddenRank != 3 || d.Layers[0].Collapse != 2 ||
		d.Layers[1].HiddenGap != 1.5 ||
		first != (GeometryMap{appliedMap, 3, 6, 9, 12, 15}) || last.Gap != 5 || d.Layers[0].Maps[0].Gap != 99 ||
		d.Layers[0].Maps[1].Name != "A2" {
		t.Errorf("%+v", d)
	}
}

// By hand: norms are means over sequences, with their error; each layer's by its own place.
func TestFinishGradients(t *testing.T) {
	of := func(x float64) GradientsDetail {
		return GradientsDetail{All: []GroupNorm{{"q", x, x / 10}, {"k", 2 * x, x}},
			Layers: [][]GroupNorm{{{"q", x, x}}, {{"q", 3 * x, 5 * x}}}}
	}
	r := detailed(t, []GradientsDetail{of(1), of(2), of(6)})
	if err := finishGradients(r); err != nil {
		t.Fatal(err)
	}
	d := detail[GradientsDetail](t, r)
	if !near(d.All[0].Norm, 3, 1e-12) || !near(d.All[0].RMS, 0.3, 1e-12) || !near(d.All[1].Norm, 6, 1e-12) ||
		!near(d.Layers[1][0].Norm, 9, 1e-12) || !near(d.Layers[1][0].RMS, 15, 1e-12) || d.Layers[0][0].Name != "q" {
		t.Errorf("%+v", d)
	}
	metricIs(t, r, "norm_q", 3, 3)
	metricIs(t, r, "norm_k", 6, 3)
	if m, _ := r.Metric("norm_q"); !near(m.StdErr, math.Sqrt(7./3), 1e-12) { // variance 7 of 1, 2, 6
		t.Errorf("%+v", m)
	}
}

// The gradients are those of the mean loss of the next token: all groups together have the norm of the model's own
// gradient, and a group's RMS is its norm over the root of its number of parameters.
func TestGradientsAreTheModels(t *testing.T) {
	s := subject(t, ref.New(), "diff", 48)
	ids := s.Encode("gradients of a text")
	twin, err := trainable(s)
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Free()
	d, err := gradientsOf(twin, &model.Batch{B: 1, T: len(ids), IDs: slices.Clone(ids)})
	if err != nil {
		t.Fatal(err)
	}
	again, err := trainable(s)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Free()
	n := len(ids) - 1
	again.Params.ZeroGrad(again.Device())
	if err := again.Backprop(&model.Batch{B: 1, T: n, IDs: ids[:n], Targets: ids[1:]}, 1/float64(n)); err != nil {
		t.Fatal(err)
	}
	want, mlp, count := 0.0, 0.0, 0
	for _, p := range again.Params.List {
		g := make([]float64, p.G.Len())
		device.ReadFloats(again.Device(), g, p.G)
		for _, x := range g {
			want += x * x
			if strings.Contains(p.Name, "mlp") {
				mlp += x * x
			}
		}
		if strings.Contains(p.Name, "mlp") {
			count += p.Rows * p.Cols
		}
	}
	got := 0.0
	for _, g := range d.All {
		got += g.Norm * g.Norm
		if g.Name == "mlp" && (!near(g.Norm, math.Sqrt(mlp), 1e-6) ||
			!near(g.RMS, math.Sqrt(mlp/float64(count)), 1e-8)) {
			t.Errorf("%+v, want %g of %d parameters", g, math.Sqrt(mlp), count)
		}
	}
	if !near(got, want, 1e-6*want) || len(d.Layers) != s.Model.Config.Layers {
		t.Errorf("squares sum to %g, want %g", got, want)
	}
	if _, err := gradientsOf(twin, &model.Batch{B: 1, T: 1, IDs: ids[:1]}); err == nil {
		t.Error("a text of one token has something to predict")
	}
}

// One order is always right and the other half of the time: the spread is that of a share of 100, √(½·½/100).
func TestSpreadError(t *testing.T) {
	table := [][]float64{slices.Repeat([]float64{1}, 100), slices.Repeat([]float64{1, 0}, 50)}
	if got := spreadError(table, 3); !near(got, 0.05, 0.01) || got != spreadError(table, 3) {
		t.Errorf("%g, want about 0.05", got)
	}
	if got := orderMeans([][]float64{{1, 0, 0, 1}, {1, 1, 1, 0}}, []int{0, 0, 3, 3}); !slices.Equal(got,
		[]float64{1, 0.5}) {
		t.Errorf("%v", got)
	}
	// An order that a limit cut off does not count as one of zeros, and a single order has no spread.
	r := &eval.Result{}
	for i, acc := range []float64{1, 0, 1} {
		r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(i), Values: map[string]float64{"acc": acc}})
	}
	if err := finishOrder(r, []iclAsked{{run: 0}, {run: 1}, {run: 3}}, 4, 3, 1); err != nil {
		t.Fatal(err)
	}
	d := detail[OrderDetail](t, r)
	if !slices.Equal(d.Acc["random"], []float64{1, 0}) || d.Acc["alternating"] != nil || d.Shots != 4 ||
		len(r.Metrics) != 1 {
		t.Errorf("%+v, %+v", d, r.Metrics)
	}
	metricIs(t, r, "spread_random", 1, 2)
}

// Scores of variants by hand: means over the units of each answer, changes over the plain model's units, question by
// question; a variant that a model lacks has no score.
func TestVariantScores(t *testing.T) {
	x := &variants{n: 2, list: []variant{{name: "plain"}, {name: "b"}, {name: "none"}},
		label: func(v *variant) string { return "m " + v.name }}
	put := func(name string, value, n float64) (a eval.Answer) {
		a.Put("m "+name, value*n, n)
		return a
	}
	answers := []eval.Answer{put("plain", 1, 10), put("plain", 2, 30), put("b", 1.5, 10), put("b", 4, 10), {}, {}}
	for i := range answers {
		answers[i].ID = fmt.Sprint(i)
	}
	got := x.scores(answers)
	if len(got) != 2 || got[0].Variant != "plain" || got[0].Change.Value != 0 ||
		!near(got[0].Score.Value, 1.75, 1e-12) {
		t.Fatalf("%+v", got)
	}
	if b := got[1]; b.Variant != "b" || !near(b.Score.Value, 2.75, 1e-12) ||
		!near(b.Change.Value, (10*0.5+30*2)/40, 1e-12) || b.Change.N != 2 {
		t.Errorf("%+v", b)
	}
	heads := detailed(t, []headLoss{{[][]float64{{1, 2}, {3, 4}}}, {[][]float64{{3, 4}, {5, 12}}}})
	change, err := (&eachHead{}).change(heads.Answers)
	if err != nil || fmt.Sprint(change) != "[[2 3] [4 8]]" {
		t.Errorf("%v, %v", change, err)
	}
	if change, err := (&eachHead{}).change(nil); err != nil || change != nil {
		t.Errorf("of nothing: %v, %v", change, err)
	}
}

// Names of extremes and their order, over all sequences together.
func TestFinishOutliers(t *testing.T) {
	sums := func(from, to int) outlierSums {
		var a, b extremes
		for i := from; i <= to; i++ {
			a.add(float64(i))
			b.add(float64(10 * i))
		}
		return outlierSums{Tokens: to, Logits: a.kept(), Hidden: b.kept()}
	}
	r := detailed(t, []outlierSums{sums(1, 100), sums(101, 199)})
	if err := finishOutliers(r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"top1": 199, "top2": 198, "top3": 197, "top10": 190, "top100": 100} {
		metricIs(t, r, "logits_"+name, want, 299)
		metricIs(t, r, "hidden_"+name, 10*want, 299)
	}
	if m, _ := r.Metric("logits_median"); !near(m.Value, 100, 1) {
		t.Errorf("median %g, want 100", m.Value)
	}
	if d := detail[OutlierResult](t, r); d.Tokens != 299 || d.Hidden.Top10 != 1900 {
		t.Errorf("%+v", d)
	}
}

// How a share of bits is asked of the layers, by what is quantised and what shares a scale.
func TestLowbitOf(t *testing.T) {
	for _, c := range []struct{ of, per, want string }{
		{"logits", "usual", "{4 tensor 0 0 }"}, {"keys", "usual", "{0  4 0 row}"}, {"values", "usual", "{0  0 4 row}"},
		{"cache", "usual", "{0  4 4 row}"}, {"both", "usual", "{4 tensor 4 4 row}"},
		{"logits", "tensor", "{4 tensor 0 0 }"}, {"keys", "tensor", "{0  4 0 tensor}"},
		{"values", "tensor", "{0  0 4 tensor}"},
		{"cache", "tensor", "{0  4 4 tensor}"}, {"both", "tensor", "{4 tensor 4 4 tensor}"},
		{"logits", "head", "{4 head 0 0 }"}, {"keys", "head", "{0  4 0 head}"}, {"values", "head", "{0  0 4 head}"},
		{"cache", "head", "{0  4 4 head}"}, {"both", "head", "{4 head 4 4 head}"},
		{"logits", "row", "{4 row 0 0 }"}, {"keys", "row", "{0  4 0 row}"}, {"values", "row", "{0  0 4 row}"},
		{"cache", "row", "{0  4 4 row}"}, {"both", "row", "{4 row 4 4 row}"},
	} {
		if got := fmt.Sprint(lowbitOf(c.of, c.per, 4)); got != c.want {
			t.Errorf("%s per %s: %s, want %s", c.of, c.per, got, c.want)
		}
	}
}
