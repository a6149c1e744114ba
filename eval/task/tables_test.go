package task

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/tokenizer"
)

// scored is a result of answers with these values of bound; constrained has ten times them, free a hundred times.
func scored(bound ...float64) *eval.Result {
	r := &eval.Result{}
	for i, x := range bound {
		r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(i),
			Values: map[string]float64{"bound": x, "constrained": 10 * x, "free": 100 * x}})
	}
	return r
}

// By hand: two cells and three lengths, each with its own score, the first with two samples. Figures are
// [cell][length], of needles [depth][length]; metrics by cell and by length are means over the other.
func TestScoresByCellAndLength(t *testing.T) {
	var hidden []hiddenCase
	var needles []needleCase
	for _, c := range [][2]int{{0, 0}, {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		hidden = append(hidden, hiddenCase{cell: c[0], length: c[1]})
		needles = append(needles, needleCase{depth: c[0], length: c[1]})
	}
	values := []float64{1, 3, 4, 5, 6, 7, 8}
	want := [][]float64{{2, 4, 5}, {6, 7, 8}}
	same := func(name string, got map[string][][]eval.Mean) {
		for score, factor := range map[string]float64{"bound": 1, "constrained": 10, "free": 100} {
			for i := range want {
				for k, x := range want[i] {
					n := 1
					if i+k == 0 {
						n = 2
					}
					if m := got[score][i][k]; m.Value != factor*x || m.N != n || len(got[score]) != 2 ||
						len(got[score][i]) != 3 {
						t.Errorf("%s: %s in row %d, length %d is %+v, want %g of %d", name, score, i, k, m, factor*x, n)
					}
				}
			}
		}
	}
	r := scored(values...)
	if err := finishHidden(r, hidden,
		HiddenDetail{Lengths: []int{100, 200, 300}, Cells: []string{"hops=0", "hops=1"}}); err != nil {
		t.Fatal(err)
	}
	same("hidden", detail[HiddenDetail](t, r).Scores)
	metricIs(t, r, "bound hops=0", 13./4, 4)
	metricIs(t, r, "bound hops=1", 7, 3)
	metricIs(t, r, "bound@100", 10./3, 3)
	metricIs(t, r, "bound@200", 11./2, 2)
	metricIs(t, r, "bound@300", 13./2, 2)
	r = scored(values...)
	if err := finishNeedle(r, needles,
		NeedleGrid{Needles: 4, Queries: 2, Lengths: []int{100, 200, 300}, Depths: []float64{0, 1}}); err != nil {
		t.Fatal(err)
	}
	g := detail[NeedleGrid](t, r)
	same("needle", g.Cells)
	for score, factor := range map[string]float64{"bound": 1, "constrained": 10, "free": 100} {
		for k, x := range []float64{10. / 3, 11. / 2, 13. / 2} {
			if !near(g.ByLength[score][k].Value, factor*x, 1e-9) {
				t.Errorf("%s at length %d: %+v", score, k, g.ByLength[score][k])
			}
		}
	}
	metricIs(t, r, "bound@200", 11./2, 2)
	if len(r.Metrics) != 3 || g.Needles != 4 || g.Queries != 2 {
		t.Errorf("%d metrics, %+v", len(r.Metrics), g)
	}
	one := scored(1)
	if err := finishHidden(one, hidden[:1], HiddenDetail{Lengths: []int{100}}); err != nil || len(one.Metrics) != 0 {
		t.Errorf("a single length has %d metrics of its own, %v", len(one.Metrics), err)
	}
}

// Right items are asked for one after the other, each after those before it, among all that are left, in an order that
// tells nothing.
func TestChoicesAmongHidden(t *testing.T) {
	c := hiddenCase{prompt: "They are", right: []string{"mi", "ba"}, others: []string{"zu", "fo"}}
	want := []eval.Choice{{Prompt: "They are", Options: []string{" ba", " fo", " mi", " zu"}},
		{Prompt: "They are mi,", Options: []string{" ba", " fo", " zu"}}}
	if got := c.choices(); fmt.Sprint(got) != fmt.Sprint(want) || c.completion() != " mi, ba." {
		t.Errorf("%q, want %q; %q", got, want, c.completion())
	}
	// It picks the first option: ba, then ba.
	got, err := askHidden(t.Context(), &pen{text: " mi and fo"}, []hiddenCase{{}, c, c}, []int{1, 2})
	if err != nil || got[1].Values["constrained"] != 1 || got[1].Values["free"] != 0.5 ||
		got[1].Values["bound"] != 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
	n := data.Needle{Prompt: "Which? The magic code is Oslo", Cities: []string{"Oslo", "Lima"},
		Answers: []string{"48", "33"}, OtherCities: []string{"Rome"}, OtherNumbers: []string{"10"}}
	heard := &asked{LM: &pen{}}
	picks, err := answerAmong(t.Context(), heard, wordings["own"], []data.Needle{n, n})
	options := "\x00 10.\x00 33.\x00 48."
	if prompts := []string{n.Prompt + options, n.Prompt + " 48. The magic code is Lima" + options}; err != nil ||
		!slices.Equal(heard.prompts[2:], prompts) || picks[1] != (picked{" 10. 10.", 0}) {
		t.Errorf("%q, %+v, %v", heard.prompts, picks, err)
	}
}

// Questions of many-shot learning with other examples are one question as far as errors go, and every number of
// examples has its floor.
func TestICLClusters(t *testing.T) {
	opt := eval.Options{Data: iclFiles(t), Seed: 1, Set: map[string]string{"icl.items": "3", "icl.shots": "2,4"}}
	r := answer(t, lookup(t, "icl_banking77"), opt, &pen{}, 500)
	for i, a := range r.Answers {
		if a.Cluster != fmt.Sprint(i%3) || a.ID != fmt.Sprintf("shots=%d %d", []int{2, 4}[i/3], i%3) {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	for _, name := range []string{"acc", "acc_2shot", "acc_4shot"} {
		if m, ok := r.Metric(name); !ok || m.Floors["chance"] != 0.5 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if len(r.Answers) != 6 || r.Metrics[0].N != 6 || r.Metrics[0].StdErr != eval.MeanOf(r.Answers[:3], "acc").StdErr {
		t.Errorf("%+v", r.Metrics[0])
	}
}

// Every order has the same examples, none the order of another, and all questions of an order the same; alternating
// ones go through the classes in turn; another seed has other orders.
func TestOrdersOfExamples(t *testing.T) {
	heads := func(seed uint64) map[string][]string {
		opt := eval.Options{Data: iclFiles(t), Seed: seed,
			Set: map[string]string{"icl_order.items": "2", "icl_order.seeds": "4", "icl_order.shots": "6"}}
		j := prepared(t, lookup(t, "icl_order_banking77"), opt, 500)
		out := map[string][]string{}
		for i, g := range j.Gold {
			head := g.Context[:strings.LastIndex(g.Context, "\n==\n")]
			kind := strings.Fields(j.IDs[i])[0]
			if i%2 == 1 && out[kind][len(out[kind])-1] != head {
				t.Errorf("%s has other examples than the question before it", j.IDs[i])
			}
			if i%2 == 0 {
				out[kind] = append(out[kind], head)
			}
		}
		return out
	}
	one, two := heads(1), heads(2)
	for kind, list := range one {
		var sets []string
		for i, head := range list {
			examples := strings.Split(head, "\n==\n")
			if slices.Contains(list[:i], head) || slices.Contains(two[kind], head) {
				t.Errorf("%s: order %d is there twice", kind, i)
			}
			for k := 2; k < len(examples) && kind == "alternating"; k++ {
				if label := func(s string) string { return s[len(s)-1:] }; label(examples[k]) != label(examples[k-2]) ||
					label(examples[k]) == label(examples[k-1]) {
					t.Errorf("order %d does not alternate: %q", i, examples)
				}
			}
			slices.Sort(examples)
			sets = append(sets, strings.Join(examples, "|"))
		}
		if sets = slices.Compact(sets); len(list) != 4 || len(sets) != 1 {
			t.Errorf("%s: %d orders of %d sets", kind, len(list), len(sets))
		}
	}
}

// The area of all kinds of noise is the mean of theirs; curves name their unit.
func TestNoiseArea(t *testing.T) {
	opt := eval.Options{Seed: 2, Shots: -1,
		Set: map[string]string{"noise.kinds": "drop,irrelevant,adversarial", "noise.samples": "40",
			"noise.with": "needles=1;queries=1;lengths=200", "noise.passages": "1,3", "noise.words": "0.3"}}
	r := answer(t, lookup(t, "noise"), opt, &passageReader{first: true}, 2048)
	d := detail[NoiseDetail](t, r)
	mean := 0.0
	for i, c := range d.Curves {
		m, ok := r.Metric("area_" + c.Kind)
		if !ok || m.Mean != c.Area || c.Label != []string{"words dropped", "irrelevant passages",
			"misleading passages"}[i] || c.Unit != []string{"share of words", "passages", "passages"}[i] {
			t.Errorf("%+v: %+v", c, m)
		}
		mean += m.Value / 3
	}
	if m, _ := r.Metric("area"); !near(m.Value, mean, 1e-12) || mean >= 1 || d.Task != "needle" ||
		d.Metric != "bound" || !d.StandIn {
		t.Errorf("%+v, want %g; %+v", m, mean, d)
	}
	kind := func(name string) *noiseKind {
		return &noiseKinds[slices.IndexFunc(noiseKinds, func(k noiseKind) bool { return k.name == name })]
	}
	for _, c := range []struct{ kind, text, want string }{
		{"drop", "one two\nthree 4 five\nwhy now?", "\n4 \nwhy now?"}, {"drop", "only words here", "here"},
		{"swap", "one two\nthree 4 five\nwhy now?", "two one\nthree 4 five\nwhy now?"},
		{"swap", "one two\nthree\nwhy?", "two one\nthree\nwhy?"},
	} {
		if got := noisyWords(c.text, kind(c.kind), 1, 1); got != c.want {
			t.Errorf("%s of all words of %q: %q, want %q", c.kind, c.text, got, c.want)
		}
	}
}

// Held-out documents of a token set are those of its held-out part, read with the tokenizer that lies beside it.
func TestSetDocumentsAreHeldOut(t *testing.T) {
	dir := t.TempDir()
	src, err := data.Open("synthetic:seed=7,docs=40,len=200")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for d, err := range src.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, d.Text)
	}
	tok, err := tokenizer.Train(t.Context(), slices.Values(texts),
		tokenizer.TrainOptions{Pattern: tokenizer.PatternGPT2, Vocab: 300})
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(dir, "data")
	if _, err := data.Build(context.Background(), set, []data.Source{src}, tok,
		data.BuildOptions{HeldOut: 0.2}); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	parts, err := data.OpenSet(set, true)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	split, err := parts.Split(data.Valid)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := setDocuments(t.Context(), &eval.Plan{Tokens: tokenizer.Bytes()}, set) // the model's own is another one
	if err != nil || int64(len(docs)) != split.Docs() || len(docs) == 0 || len(docs) > 20 {
		t.Fatalf("%d documents of %d, %v", len(docs), split.Docs(), err)
	}
	for i, d := range docs {
		if !slices.Contains(texts, d) {
			t.Errorf("document %d is none of the source: %q", i, d)
		}
	}
}

// The scale of a preset is that of its tasks' questions: settings as published, or those for a small context.
func TestPresetsAreApplied(t *testing.T) {
	for _, c := range []struct{ preset, keys, want string }{
		{"table2", "needles queries samples lengths wording",
			"1 1 20 [0] own|2 2 20 [0] own|4 2 20 [0] own|6 2 20 [0] own"},
		{"table3", "lengths samples wording", "[0] 10 own"}, {"figure1", "samples", "10|20"},
		{"table4", "items", "100|100|100|100"}, {"table5", "tokens", "16384"},
		{"figure4", "length", "0"}, {"figure5", "lengths needles queries samples", "[640 768 896 1024] 4 1 10"},
		{"figure6", "items", "20|20|20|20"},
		{"figure7", "items seeds", "20 5"},
		{"figure8", "task of bits samples texts", "hellaswag [logits] [8 6 4] 40 0"},
		{"figure11", "items seeds", "20 5|20 5|20 5"}, {"v2_outliers", "tokens", "4096"},
		{"v2_lowbit", "task with of per bits",
			"lm pieces=8;length=128 [logits keys values both] [tensor head row] [6 4]"},
		{"v2_throughput", "lengths", "[0]"}, {"table7", "lengths", "[512 1024]"},
	} {
		p, err := FindPreset(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := p.Tasks(true, 1024)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range tasks {
			config := prepared(t, &tasks[i], eval.Options{Shots: -1, Limit: 1}, 1024).Config
			var values []string
			for _, key := range strings.Fields(c.keys) {
				values = append(values, fmt.Sprint(config[key]))
			}
			got = append(got, strings.Join(values, " "))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %s, want %s", c.preset, strings.Join(got, "|"), c.want)
		}
	}
}
