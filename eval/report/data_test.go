package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/layer"
	"antiphase/metrics"
)

// pageOf is a page of models A, B, …, each with its own detail of one task.
func pageOf(kind, group string, details ...any) *Page {
	var cells []*eval.Cell
	for i, d := range details {
		name := string(rune('A' + i))
		cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, 0, made(kind, group, "m", "measure", 4, 1, d)))
	}
	return &Page{Evaluation: eval.Assemble(cells)}
}

// rowsOf are the data of a section's figures and tables by title, each row with slashes between its cells.
func rowsOf(t *testing.T, s section, err error) map[string]string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	add := func(name string, rows [][]string) {
		var lines []string
		for _, r := range rows {
			lines = append(lines, strings.Join(r, "/"))
		}
		if _, twice := out[name]; twice {
			t.Errorf("two are called %q", name)
		}
		out[name] = strings.Join(lines, "\n")
	}
	for _, f := range s.Figures {
		add(f.Title+"|"+f.Note, f.rows)
	}
	for _, g := range s.Tables {
		add("table "+g.ID, g.Rows)
	}
	return out
}

// expect compares some of a section's data.
func expect(t *testing.T, got map[string]string, want map[string][]string) {
	t.Helper()
	for name, rows := range want {
		if text, ok := got[name]; !ok {
			var names []string
			for n := range got {
				names = append(names, n)
			}
			slices.Sort(names)
			t.Errorf("nothing is called %q; there are\n%s", name, strings.Join(names, "\n"))
		} else if text != strings.Join(rows, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, strings.Join(rows, "\n"))
		}
	}
}

func meanOf(v, err float64) eval.Mean { return eval.Mean{Value: v, StdErr: err, N: 10} }

// Curves by position, by examples, by bits and by layer have the values of the details, in order, with their errors.
func TestCurveData(t *testing.T) {
	at := func(p int, v float64) task.AtPosition { return task.AtPosition{Position: p, Loss: meanOf(v, 0.5)} }
	s, err := positionSection(pageOf("lm", "",
		task.LMDetail{Pieces: 3, Left: 2, ByPosition: []task.AtPosition{at(1, 4), at(8, 2)}},
		task.LMDetail{ByPosition: []task.AtPosition{at(1, 9)}}))
	expect(t, rowsOf(t, s, err),
		map[string][]string{"lm|3 texts that are at least as long as the curve; 2 are shorter and left out": {
			"series/tokens of context/nats per token/stderr", "A/1/4/0.5", "A/8/2/0.5"}})
	if len(s.Figures) != 2 || s.Figures[1].rows[1][1] != "60" || s.Figures[1].rows[12][2] != "2.141" {
		t.Errorf("%d figures", len(s.Figures))
	}
	s, err = iclSection(pageOf("icl_trec", "icl",
		task.ICLDetail{Shots: []int{0, 8, 99}, Acc: []eval.Mean{meanOf(0.25, 0.1), meanOf(0.5, 0.2)}, Chance: 0.125}))
	expect(t, rowsOf(t, s, err), map[string][]string{"icl_trec|": {"series/examples/accuracy/stderr", "A/1/0.25/0.1",
		"A/8/0.5/0.2", "chance/1/0.125/", "chance/8/0.125/"}})
	s, err = orderSection(pageOf("icl_order_trec", "icl_order",
		task.OrderDetail{Acc: map[string][]float64{"random": {0.5, 0.25}, "alternating": {0.75}}}))
	expect(t, rowsOf(t, s, err), map[string][]string{"icl_order_trec|": {"model/order/seed/accuracy",
		"A/alternating/0/0.75", "A/random/0/0.5", "A/random/1/0.25"}})
	kl := meanOf(0.03, 0.01)
	s, err = lowbitSection(pageOf("lowbit", "",
		task.LowbitDetail{Task: "hellaswag", Metric: "acc_norm", Shots: 2, StandIn: true, Exact: meanOf(0.75, 0.125),
			Rows: []task.LowbitRow{
				{Of: "logits", Per: "usual", Bits: 8, Score: meanOf(0.5, 0.25)},
				{Of: "logits", Per: "usual", Bits: 4, Score: meanOf(0.25, 0.0625), KL: &kl},
				{Of: "cache", Per: "row", Bits: 4, Score: meanOf(0.125, 0.5)}}}))
	const about = "acc_norm of hellaswag, 2-shot; 16 stands for exact; generated questions"
	expect(t, rowsOf(t, s, err), map[string][]string{
		"Attention logits|" + about: {"series/bits/score/stderr", "A/4/0.25/0.0625", "A/8/0.5/0.25",
			"A/16/0.75/0.125"},
		"Keys and values, a scale per row|" + about: {"series/bits/score/stderr", "A/4/0.125/0.5", "A/16/0.75/0.125"},
		"Attention logits: divergence|KL of the next-token distribution to exact, nats per token": {
			"series/bits/KL/stderr", "A/4/0.03/0.01"},
		"Attention logits, the paper|zero-shot HellaSwag by acc_norm; which logits share a scale is not said": {
			"series/bits/accuracy/stderr", "Transformer/4/0.339/", "Transformer/6/0.589/", "Transformer/8/0.627/",
			"Transformer/16/0.634/", "DIFF/4/0.588/", "DIFF/6/0.66/", "DIFF/8/0.663/",
			"DIFF/16/0.662/"}})
	s, err = geometrySection(pageOf("geometry", "",
		task.GeometryDetail{Layers: []task.GeometryLayer{{Maps: []task.GeometryMap{{Name: "A1", Rank: 9},
			{Name: "A", Rank: 3, Gap: 0.5, Sparsity: 0.25, Negative: 0.125}}, HiddenRank: 4, HiddenGap: 0.75},
			{HiddenRank: 5}}}))
	rows := rowsOf(t, s, err)
	for name, want := range map[string]string{"Effective rank of maps|": "A/1/3/\nA/2/0/",
		"Spectral gap of maps|": "A/1/0.5/\nA/2/0/", "Effective rank of representations|": "A/1/4/\nA/2/5/",
		"Spectral gap of representations|": "A/1/0.75/\nA/2/0/", "Sparsity of maps (Hoyer)|": "A/1/0.25/\nA/2/0/",
		"Share of negative mass|": "A/1/0.125/\nA/2/0/"} {
		if !strings.HasSuffix(rows[name], want) {
			t.Errorf("%s: %s", name, rows[name])
		}
	}
	s, err = gradientsSection(pageOf("gradients", "",
		task.GradientsDetail{All: []task.GroupNorm{{Name: "q", RMS: 0.5}, {Name: "o", RMS: 0.25}},
			Layers: [][]task.GroupNorm{{{Name: "q", RMS: 1}}, {{Name: "q", RMS: 2}}}},
		task.GradientsDetail{All: []task.GroupNorm{{Name: "q1", RMS: 0.125}, {Name: "o", RMS: 4}},
			Layers: [][]task.GroupNorm{{{Name: "q1", RMS: 3}, {Name: "q2", RMS: 5}}}}))
	expect(t, rowsOf(t, s, err), map[string][]string{"table gradients-gradients": {"model/q/o/q1", "A/0.5/0.25/–",
		"B/–/4/0.125"}, "Gradients of q|RMS by layer": {"series/layer/RMS/stderr", "A/1/1/", "A/2/2/", "B q1/1/3/",
		"B q2/1/5/"}})
}

// attentionDetails are those of a model with λ at two lengths, and of one without.
func attentionDetails() (d, plain task.AttentionDetail) {
	seg := func(x float64) task.Segments {
		return task.Segments{BOS: x, Before: 0.25 * x, Answer: 0.5 * x, After: 0.125 * x, Query: 0.0625 * x}
	}
	gaze := func(x float64) task.HeadGaze {
		return task.HeadGaze{Magnitude: seg(x), Signed: seg(2 * x), A1: seg(3 * x), A2: seg(4 * x), Value: seg(5 * x)}
	}
	d = task.AttentionDetail{Lengths: []int{64, 128}, Depths: []float64{0.5}, Lambda: []float64{0.3, 0.75},
		Results: []task.AttentionResult{{Maps: 2, ByDepth: []task.HeadGaze{gaze(9)}},
			{Maps: 2, ByDepth: []task.HeadGaze{gaze(0.1)},
				ByHead: [][]task.HeadGaze{{gaze(0.1), gaze(0.3)}, {gaze(0.5)}},
				Right:  &task.Outcome{N: 3, Gaze: gaze(0.1)}, Wrong: &task.Outcome{N: 1, Gaze: gaze(0.2)}}}}
	plain = d
	plain.Lambda = nil
	plain.Results = []task.AttentionResult{d.Results[1]}
	plain.Results[0].Maps, plain.Results[0].Wrong = 1, nil
	return d, plain
}

// What the answer's token looks at: shares of the longest prompts, by depth, layer and head; noise is the context
// around it.
func TestAttentionData(t *testing.T) {
	d, plain := attentionDetails()
	p := pageOf("attention", "", d, plain)
	s, err := attentionSection(p)
	var names []string
	for _, f := range s.Figures {
		names = append(names, f.Title+" "+f.Note)
	}
	want := []string{"A by magnitude", "A weighted by values", "A with sign", "A A1 alone", "A A2 alone",
		"A share on the answer by layer and head, by magnitude, mean over depths",
		"B by magnitude", "B weighted by values",
		"B share on the answer by layer and head, by magnitude, mean over depths",
		"By layer share of attention on the answer in percent, by magnitude",
		"λ by layer mean over tokens and heads"}
	if err != nil || len(names) != len(want)+2 || !slices.Equal(names[:len(want)], want) {
		t.Fatalf("%q (%v)", names, err)
	}
	const head = "model/how/depth/bos/before/answer/after/query"
	expect(t, rowsOf(t, s, err), map[string][]string{
		"A|by magnitude":       {head, "A/by magnitude/0.5/0.1/0.025/0.05/0.0125/0.00625"},
		"A|with sign":          {head, "A/with sign/0.5/0.2/0.05/0.1/0.025/0.0125"},
		"A|A1 alone":           {head, "A/A1 alone/0.5/0.3/0.075/0.15/0.0375/0.01875"},
		"A|A2 alone":           {head, "A/A2 alone/0.5/0.4/0.1/0.2/0.05/0.025"},
		"A|weighted by values": {head, "A/weighted by values/0.5/0.5/0.125/0.25/0.0625/0.03125"},
		"A|share on the answer by layer and head, by magnitude, mean over depths": {
			"layer/head/bos/before/answer/after/query", "1/1/0.1/0.025/0.05/0.0125/0.00625",
			"1/2/0.3/0.075/0.15/0.0375/0.01875", "2/1/0.5/0.125/0.25/0.0625/0.03125"},
		"By layer|share of attention on the answer in percent, by magnitude": {"series/layer/percent/stderr",
			"A/1/10/", "A/2/25/", "B/1/10/", "B/2/25/"},
		"λ by layer|mean over tokens and heads": {"model/layer/lambda",
			"A/1/0.3", "A/2/0.75"},
		"table attention-outcome-attention": {
			"model/number beside its key/prompts/answer/noise/answer, A1/answer, A2/answer, ‖a·v‖/noise, ‖a·v‖",
			"A/right/3/5.0/3.8/15.0/20.0/25.0/18.8", "A/wrong/1/10.0/7.5/30.0/40.0/50.0/37.5",
			"B/right/3/5.0/3.8/15.0/–/25.0/18.8"}})
	if len(s.Key) != 5 || s.Key[2].Name != "the answer" {
		t.Errorf("%+v", s.Key)
	}
}

// λ of a model is the mean over layers with its range; a model without λ has none.
func TestLambdaRows(t *testing.T) {
	d, plain := attentionDetails()
	p := pageOf("attention", "", d, plain)
	rows := lambdaRows(p.Evaluation, p.Evaluation.Questions()[0], p.Evaluation.Sides())
	if len(rows) != 1 || rows[0].cells[0].text != "0.525 (0.30 to 0.75)" || rows[0].cells[1].text != "" {
		t.Errorf("%+v", rows)
	}
	one := pageOf("attention", "", plain)
	if rows := lambdaRows(one.Evaluation, one.Evaluation.Questions()[0], one.Evaluation.Sides()); rows != nil {
		t.Errorf("λ of a model without: %+v", rows)
	}
	if got := layer.LambdaSchedule(0); got < 0.199 || got > 0.201 { // 0.8 − 0.6
		t.Errorf("λ_init of the first layer: %g", got)
	}
}

// Training: loss and gradient norms by step, and the table of steadiness.
func TestTrainingData(t *testing.T) {
	valid := 3.5
	p := &Page{Training: []Training{{Model: "A",
		Curve: []CurvePoint{{Step: 1, Loss: 5, Grad: 2}, {Step: 2, Loss: 4, Valid: &valid, Grad: 0},
			{Step: 3, Loss: 3, Grad: 1}}, Steady: &metrics.Steadiness{Steps: 3, LossSpikes: 1, GradSpikes: 2,
			Middle: 0.5, Late: 0.25, LateNoise: 0.125, Largest: 2}},
		{Model: "B", Curve: []CurvePoint{{Step: 4, Loss: 2}}}}}
	s, err := trainingSection(p)
	expect(t, rowsOf(t, s, err), map[string][]string{
		"Loss by training step|": {"series/training step/nats per token/stderr", "A/2/3.5/", "B/4/2/"}})
	s, err = steadySection(p)
	expect(t, rowsOf(t, s, err), map[string][]string{
		"Gradient norm by training step|the largest of each stretch; the first steps may lie above the frame": {
			"series/training step/gradient norm/stderr", "A/1/2/", "A/3/1/"},
		"table steadiness": {"model/steps/loss spikes/gradient spikes/middle/late/noise, late/largest",
			"A/3/1/2/0.5/0.25/0.12/2"}})
	p.Training[0].AddGroups(1, metrics.Groups{{Name: "q1", Norm: 0.5}, {Name: "o", Norm: 2}})
	p.Training[0].AddGroups(3, metrics.Groups{{Name: "o", Norm: 3}, {Name: "q1", Norm: 0.25}})
	s, err = gradientsSection(p)
	expect(t, rowsOf(t, s, err), map[string][]string{
		"Gradients of queries while training|norm before clipping; the other kinds are in the CSV": {
			"series/training step/norm/stderr", "A q1/1/0.5/", "A q1/3/0.25/", "A o/1/2/", "A o/3/3/"}})
	var points [][2]float64
	for i := range 10 {
		points = append(points, [2]float64{float64(i), float64(10 * i)})
	}
	if got := thin(points, 4); fmt.Sprint(got) != "[[0.5 5] [3 30] [5.5 55] [8 80]]" {
		t.Errorf("%v", got)
	}
	if got := after(points, 7); len(got) != 3 || got[0][0] != 7 {
		t.Errorf("%v", got)
	}
	high, low := 90.0, 2.5 // early held-out losses lie above the frame too
	p.Training = []Training{{Model: "A",
		Curve: []CurvePoint{{Step: 1, Loss: 95, Valid: &high}, {Step: 20, Loss: 2, Valid: &low},
			{Step: 100, Loss: 1.5, Valid: &low}}}}
	if s, err := trainingSection(p); err != nil || !strings.Contains(string(s.Figures[0].SVG), `y="27.5">2.5<`) {
		t.Errorf("the frame has the first losses: %v, %s", err, s.Figures[0].SVG)
	}
	for in, want := range map[string]string{"a\x00b\x1fc\x7fd": "a\uFFFDb\uFFFDc\uFFFDd",
		"a\n\tb~\u0080é": "a\n\tb~\u0080é", "<&>": "&lt;&amp;&gt;"} {
		if got := escaped(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Samples stand side by side, each prompt with its own text, escaped.
func TestSampleBlocks(t *testing.T) {
	s, err := samplesSection(pageOf("samples", "",
		[]task.Sample{{Prompt: "p<0", Text: "t&0"}, {Prompt: "p1", Text: "t1"}},
		[]task.Sample{{Prompt: "q0", Text: "u0"}}))
	if err != nil || len(s.Blocks) != 2 {
		t.Fatalf("%d blocks, %v", len(s.Blocks), err)
	}
	const one = `<div><p class="who s%d ink">%s</p><pre><span class="prompt">%s</span>%s</pre></div>`
	want := []string{`<div class="two sample">` + fmt.Sprintf(one, 0, "A", "p&lt;0", "t&amp;0") +
		fmt.Sprintf(one, 1, "B", "q0", "u0") + `</div>`, `<div class="two sample">` +
		fmt.Sprintf(one, 0, "A", "p1", "t1") + `</div>`}
	for i, b := range s.Blocks {
		if string(b) != want[i] {
			t.Errorf("%s, want %s", b, want[i])
		}
	}
}

// A bundle of seeds is a mean with the band of all seeds, as far as every seed reaches; every point of every seed is in
// the data.
func TestBundleData(t *testing.T) {
	floor := 0.25
	b := &Bundle{ID: "x", Title: "X", Y: "y", Share: true, Floor: &floor,
		Sides: []BundleSide{{Name: "a", Place: 1,
			Lines: [][][2]float64{{{100, 0.5}, {200, 0.75}, {300, 1}}, {{110, 0.25}, {210, 0.25}}}}}}
	f := b.figure()
	var rows []string
	for _, r := range f.rows {
		rows = append(rows, strings.Join(r, "/"))
	}
	if want := []string{"side/seed/training tokens/y", "a/1/100/0.5", "a/1/200/0.75", "a/1/300/1", "a/2/110/0.25",
		"a/2/210/0.25"}; !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
	mean, band := meanLine(b.Sides[0].Lines)
	if fmt.Sprint(mean, band) != "[[100 0.375] [200 0.5]] [[100 0.25 0.5] [200 0.25 0.75]]" {
		t.Errorf("%v, %v", mean, band)
	}
	svg := string(f.SVG)
	for _, want := range []string{`class="s1 line"`, `class="s1 band"`, `class="reference"`, ">a 0.5</text>",
		">floor</text>", ">1.0</text>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the drawing lacks %s: %s", want, svg)
		}
	}
	if m, band := meanLine(nil); m != nil || band != nil {
		t.Error("a mean of nothing")
	}
	b.Share, b.Floor = false, nil
	b.Sides[0].Lines = [][][2]float64{{{1, 50}, {100, 3}, {200, 2}}}
	var ticks []string
	for _, m := range regexp.MustCompile(`class="tick end"[^>]*>([^<]*)<`).FindAllStringSubmatch(string(b.figure().SVG),
		-1) {
		ticks = append(ticks, m[1])
	}
	if !slices.Equal(ticks, []string{"2.0", "2.5", "3.0"}) { // not up to 50, which the first tenth has
		t.Errorf("ticks %q", ticks)
	}
}
