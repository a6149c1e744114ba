package eval

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
)

// Rules accept both ends of their ranges and nothing beyond, of numbers of either type and of each entry of a list.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		v    any
		want string // of the error; empty: accepted
	}{
		{Rule{}, 3, ""}, {AtLeast(2), 2, ""}, {AtLeast(2), 1, "k is 1, must be 2 or more"}, {AtLeast(0.5), 0.5, ""},
		{AtLeast(0.5), 0.49, "k is 0.49, must be 0.5 or more"},
		{AtLeast(0), math.NaN(), "k is NaN, must be 0 or more"}, {Between(1, 3), 1, ""}, {Between(1, 3), 3, ""},
		{Between(1, 3), 0, "k is 0, must be 1 to 3"}, {Between(1, 3), 4, "k is 4, must be 1 to 3"},
		{Between(1, 3), []int{1, 3}, ""}, {Between(1, 3), []int{2, 4, 0}, "k has 4, must be 1 to 3"},
		{Between(0, 1), []float64{0, 1.5}, "k has 1.5, must be 0 to 1"}, {Between(1, 3), []int{}, ""},
		{Between(2, 3).OrZero(), 0, ""}, {Between(2, 3).OrZero(), 2.0, ""},
		{Between(2, 3).OrZero(), 1, "k is 1, must be 0 or 2 to 3"}, {OneOf("a", "b", "c"), "c", ""},
		{OneOf("a", "b"), "a", ""},
		{OneOf("a", "b", "c"), "d", `k is "d", must be a, b or c`},
		{OneOf("a", "b"), []string{"a", ""}, `k has "", must be a or b`},
		{Parsed(func(s string) error { return map[bool]error{true: errors.New("no")}[s == "x"] }), "y", ""},
		{Parsed(func(s string) error { return map[bool]error{true: errors.New("no")}[s == "x"] }), []string{"y", "x"},
			`k has "x", no`},
	} {
		err := c.rule.check("k", c.v)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("%v: %v, want %q", c.v, err, c.want)
		}
	}
}

// A statistic of all decisions is that of the decisions; its error is the spread over resamples, none where all agree.
func TestOfDecisions(t *testing.T) {
	r := &Result{}
	for i := range 200 {
		a := Answer{ID: fmt.Sprint(i)}
		if err := a.SetDetail(Decision{Gold: i % 2, Said: (i / 4) % 2}); err != nil {
			t.Fatal(err)
		}
		r.Answers = append(r.Answers, a)
	}
	share := func(gold, said []int) float64 {
		n := 0
		for i := range gold {
			if gold[i] == said[i] {
				n++
			}
		}
		return float64(n) / float64(len(gold))
	}
	m, err := OfDecisions(r, share)
	if err != nil || m.Value != 0.5 || m.N != 200 || !near(m.StdErr, math.Sqrt(0.25/200), 0.006) { // the binomial error
		t.Errorf("%+v, %v", m, err)
	}
	if again, _ := OfDecisions(r, share); again != m {
		t.Errorf("%+v, then %+v", m, again)
	}
	for k := range 50 { // rounding must not make the square of an error negative
		c := 200 / float64(k+1)
		if m, err := OfDecisions(r, func(gold, _ []int) float64 { return c }); err != nil || !near(m.StdErr, 0, 1e-5) ||
			m.Value != c {
			t.Errorf("a constant %g: %+v, %v", c, m, err)
		}
	}
	r.Answers[7].Detail = []byte("x")
	if _, err := OfDecisions(r, share); err == nil || !strings.Contains(err.Error(), "sample 7") {
		t.Errorf("a broken detail: %v", err)
	}
}

// Names and groups of tasks, each task once, in the order named.
func TestSelect(t *testing.T) {
	all := []Task{{Name: "a", Group: "g"}, {Name: "b"}, {Name: "c", Group: "g"}, {Name: "d", Slow: true},
		{Name: "e", Group: "h", Slow: true}}
	for names, want := range map[string]string{"a": "a", "b a": "b a", "g": "a c", "c g": "c a", "all": "a b c",
		"all d": "a b c d", "d all": "d a b c", "h": "e", "a a": "a"} {
		got, err := Select(all, strings.Fields(names))
		var list []string
		for _, x := range got {
			list = append(list, x.Name)
		}
		if err != nil || strings.Join(list, " ") != want {
			t.Errorf("%s: %v, %v; want %s", names, list, err, want)
		}
	}
	for _, names := range [][]string{nil, {"a", "x"}, {""}} {
		if _, err := Select(all, names); err == nil || !strings.Contains(err.Error(), "there are g, b, d, h") {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// A job's samples are numbered, and other texts or other cuts make another one.
func TestNewJob(t *testing.T) {
	j := NewJob([]string{"a", "b", "c"}, 5)
	if !slices.Equal(j.IDs, []string{"0", "1", "2"}) || j.Chunk != 5 {
		t.Errorf("%+v", j)
	}
	seen := map[any]bool{}
	for _, texts := range [][]string{nil, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "b", ""}, {"", "ab"}} {
		h := NewJob(texts, 1).Config["text_hash"]
		if seen[h] || h != NewJob(texts, 2).Config["text_hash"] {
			t.Errorf("%q has the hash of other texts, or two", texts)
		}
		seen[h] = true
	}
	var a Answer
	a.Put("x", 6, 4)
	a.Put("y", 3, 0)
	a.Put("z", 3, -1)
	if a.Values["x"] != 1.5 || a.Weight("x") != 4 || a.Weight("none") != 1 || len(a.Values) != 1 ||
		len(a.Weights) != 1 {
		t.Errorf("%+v", a)
	}
	f := Chance(0.25, "p", "q")
	f.Set("p", "copy", 0.5)
	if !reflect.DeepEqual(f, Floors{"p": {"chance": 0.25, "copy": 0.5}, "q": {"chance": 0.25}}) {
		t.Errorf("%v", f)
	}
	base := Task{Name: "t"}.With(map[string]string{"a": "1", "b": "2"})
	more := base.With(map[string]string{"b": "3"})
	if base.preset["b"] != "2" || more.preset["b"] != "3" || more.preset["a"] != "1" {
		t.Errorf("%v, %v", base.preset, more.preset)
	}
	for d, text := range directions {
		b, err := d.MarshalText()
		var back Better
		if err2 := back.UnmarshalText(b); err != nil || err2 != nil || back != d || string(b) != text {
			t.Errorf("%v is written %q and read %v", d, b, back)
		}
	}
	if new(Better).UnmarshalText([]byte("up")) == nil {
		t.Error("up is a direction")
	}
	if err := new(Answer).SetDetail(math.Inf(1)); !errors.Is(err, ErrDiverged) {
		t.Errorf("a detail that is not finite: %v", err)
	}
}

const seedItems = 30 // questions of threeSeeds

// threeSeeds is an evaluation of the group a, whose three models differ by a shift, and of the model b. The last model
// of the group has a metric of its own.
func threeSeeds() *Evaluation {
	of := func(name, group string, shift float64) Judged {
		r := Result{Question: "q", Task: "t", Kind: "t"}
		for i := range seedItems {
			r.Answers = append(r.Answers, Answer{ID: fmt.Sprint(i),
				Values: map[string]float64{"m": float64(i%5) + shift}})
		}
		r.Add("m", "m", Higher, MeanOf(r.Answers, "m"))
		return Judged{Model: Model{Name: name, Group: group, Hash: name}, Results: []Result{r}}
	}
	e := &Evaluation{Models: []Judged{of("a1", "a", 0), of("b", "", 10), of("a2", "a", 1), of("a3", "a", 5)}}
	e.Models[3].Results[0].Add("only", "", Lower, Mean{Value: 7, N: 3})
	return e
}

// A group's value is the mean over its models, with an error and an interval that seeds and items both widen; what only
// some of its models have is theirs.
func TestSideOfSeveral(t *testing.T) {
	e := threeSeeds()
	sides := e.Sides()
	if len(sides) != 2 || sides[0].Name != "a" || len(sides[0].Models) != 3 || sides[1].Name != "b" {
		t.Fatalf("%+v", sides)
	}
	m, ok := sides[0].Metric("q", "m")
	if !ok || !near(m.Value, 4, 1e-12) { // 2 and shifts of 0, 1 and 5
		t.Fatalf("%+v", m)
	}
	// Items add the same to every model, so that nothing is left over: seeds have s²/3 with s² = 7, items s²/30 with s²
	// = 60/29.
	seeds, each := 7./3, (60./29)/seedItems
	if want := math.Sqrt(seeds + each); !near(m.StdErr, want, 1e-9) {
		t.Errorf("error %g, want %g", m.StdErr, want)
	}
	h := math.Sqrt(math.Pow(StudentQuantile(0.975, 2), 2)*seeds + math.Pow(StudentQuantile(0.975, seedItems-1), 2)*each)
	if !near(m.High-m.Value, h, 1e-9) || !near(m.Value-m.Low, h, 1e-9) {
		t.Errorf("interval %g to %g, want ± %g", m.Low, m.High, h)
	}
	if m, ok := sides[0].Metric("q", "only"); !ok || m.Value != 7 {
		t.Errorf("of one model: %+v, %v", m, ok)
	}
	if m, ok := sides[1].Metric("q", "m"); !ok || m.Value != 12 {
		t.Errorf("a single model: %+v", m)
	}
	if _, ok := sides[0].Metric("q", "none"); ok {
		t.Error("a metric that nobody has")
	}
	if _, ok := sides[0].Metric("other", "m"); ok {
		t.Error("a question that nobody was asked")
	}
	qs := e.Questions()
	if len(qs) != 1 || len(qs[0].Metrics) != 2 || len(e.Models[0].Results[0].Metrics) != 1 || len(e.Of("t")) != 1 ||
		len(e.Of("x")) != 0 {
		t.Errorf("%d questions", len(qs))
	}
}

// Sides are compared in one order, on what both have; the file of an evaluation holds the comparisons.
func TestBetweenSides(t *testing.T) {
	e := threeSeeds()
	e.compare(1)
	p, ok := e.Between("q", "m", "a", "b")
	if !ok || !near(p.Diff, 8, 1e-12) || p.Seeds != [2]int{3, 1} || p.N != seedItems {
		t.Errorf("%+v, %v", p, ok)
	}
	if p.PHolm != p.P || p.P == 0 { // the only one of its family
		t.Errorf("p = %g became %g", p.P, p.PHolm)
	}
	for _, other := range [][4]string{{"q", "m", "b", "a"}, {"q", "only", "a", "b"}, {"x", "m", "a", "b"},
		{"q", "m", "a", "c"}, {"q", "m", "c", "b"}} {
		if _, ok := e.Between(other[0], other[1], other[2], other[3]); ok {
			t.Errorf("%v were compared", other)
		}
	}
	var file bytes.Buffer
	if err := e.JSON(&file); err != nil {
		t.Fatal(err)
	}
	back, err := ReadEvaluation(&file)
	if err != nil || len(back.Models) != 4 || !reflect.DeepEqual(back.Paired, e.Paired) ||
		back.Models[3].Results[0].Metrics[1].Better != Lower {
		t.Errorf("read back: %v", err)
	}
	for _, text := range []string{"", "{}", "{", `{"models":[]}`} {
		if _, err := ReadEvaluation(strings.NewReader(text)); err == nil {
			t.Errorf("%q is an evaluation", text)
		}
	}
}

// greedyText is what a plain loop over a model's logits writes.
func greedyText(t *testing.T, s *Subject, r Generation) string {
	t.Helper()
	context, vocab := s.Model.Config.Context, s.Model.Config.Vocab
	ids := s.Encode(r.Prompt)
	n := min(r.MaxTokens, context-1)
	ids = ids[max(0, len(ids)+n-context):]
	var text []byte
	for range n {
		logits := make([]float32, len(ids)*vocab)
		if err := s.Model.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, logits); err != nil {
			t.Fatal(err)
		}
		row := logits[(len(ids)-1)*vocab:]
		id := int32(slices.Index(row, slices.Max(row)))
		if slices.Contains(s.EOS, id) {
			break
		}
		ids = append(ids, id)
		if !s.Tokenizer.Special(id) {
			text = append(text, s.Tokenizer.TokenBytes(id)...)
		}
	}
	out := strings.ToValidUTF8(string([]rune(string(text))), "\ufffd")
	for _, stop := range r.Until {
		out, _, _ = strings.Cut(out, stop)
	}
	return out
}

// Text from a model whose sequences are computed whole is what a plain loop over its logits writes: up to a stop, an
// end or the bound, with the end of a long prompt.
func TestGenerateWhole(t *testing.T) {
	s := subject(t, ref.New(), "diff", 40)
	if err := s.SetLowbit(layer.Lowbit{Logits: 6, Per: layer.PerTensor}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	texts := checkGreedy(t, s, []Generation{{Prompt: "Once", MaxTokens: 9}, {Prompt: "Twice upon", MaxTokens: 1},
		{Prompt: strings.Repeat("long ", 20), MaxTokens: 5}, {Prompt: "x", MaxTokens: 100}})
	runes := []rune(texts[0])
	checkGreedy(t, s, []Generation{{Prompt: "Once", MaxTokens: 9, Until: []string{"never", string(runes[3:4])}}})
	id := s.Tokenizer.EncodeOrdinary(nil, texts[0])
	s.EOS = []int32{id[len(id)-1]}
	checkGreedy(t, s, []Generation{{Prompt: "Once", MaxTokens: 9}, {Prompt: "Thrice", MaxTokens: 4}})
}

// Exact values of a curve at, between and outside its points; quantiles interpolate.
func TestQuantileAndCheck(t *testing.T) {
	for _, c := range []struct {
		list []float64
		q    float64
		want float64
	}{{[]float64{3}, 0, 3}, {[]float64{3}, 1, 3}, {[]float64{3}, 0.5, 3}, {[]float64{1, 3}, 0, 1},
		{[]float64{1, 3}, 1, 3}, {[]float64{1, 3}, 0.25, 1.5}, {[]float64{1, 2, 4, 8}, 0.5, 3},
		{[]float64{1, 2, 4, 8}, 1, 8}, {[]float64{1, 2, 4, 8}, 0.9, 6.8}} {
		if got := Quantile(c.list, c.q); !near(got, c.want, 1e-12) {
			t.Errorf("%g of %v: %g, want %g", c.q, c.list, got, c.want)
		}
	}
	good := ScalingCurve{Name: "x", Points: []ScalingPoint{{X: 1, Loss: 2}}}
	for want, r := range map[string]ScalingResult{"": {Curves: []ScalingCurve{good}}, "no curves": {},
		"x: it has no points": {Curves: []ScalingCurve{good, {Name: "x"}}},
		"y: it has no points": {Curves: []ScalingCurve{{Name: "y", Points: []ScalingPoint{{X: 0}}}}}} {
		if err := r.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	var empty Ratio
	if m := empty.Mean(); m != (Mean{}) {
		t.Errorf("of nothing: %+v", m)
	}
	empty.Add(3, 0)
	if m := empty.Mean(); m.Value != 0 || m.N != 1 {
		t.Errorf("of no weight: %+v", m)
	}
	if m := (Mean{Value: 2, StdErr: 1, N: 3}).Scaled(-2); m != (Mean{Value: -4, StdErr: 2, N: 3}) {
		t.Errorf("scaled: %+v", m)
	}
	if m := (Mean{Value: math.Log(2), StdErr: 0.5, N: 3}).Exp(); !near(m.Value, 2, 1e-12) || !near(m.StdErr, 1, 1e-12) {
		t.Errorf("exp: %+v", m)
	}
}
