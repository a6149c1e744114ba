package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
)

// items makes n texts of each label.
func labelled(n int, labels ...string) []iclItem {
	var out []iclItem
	for _, l := range labels {
		for i := range n {
			out = append(out, iclItem{fmt.Sprint(l, i), l})
		}
	}
	return out
}

// Each round holds each class once; nothing is lost.
func TestRounds(t *testing.T) {
	labels := []string{"a", "b", "c"}
	items := append(labelled(5, labels...), labelled(7, "a")[5:]...) // two more of a
	got := rounds(rand.New(rand.NewPCG(1, 1)), items, labels)
	if len(got) != 17 {
		t.Fatalf("%d of 17", len(got))
	}
	orders := map[string]bool{}
	for r := range 5 {
		var round []string
		for _, x := range got[3*r : 3*r+3] {
			round = append(round, x.label)
		}
		orders[strings.Join(round, "")] = true
		slices.Sort(round)
		if !slices.Equal(round, labels) {
			t.Errorf("round %d has %v", r, round)
		}
	}
	if len(orders) == 1 {
		t.Error("every round has the same order")
	}
}

func TestAlternate(t *testing.T) {
	shots := labelled(3, "a", "b")
	a := alternate(rand.New(rand.NewPCG(1, 1)), shots, []string{"a", "b"})
	for i := 2; i < len(a); i++ {
		if a[i].label != a[i-2].label || a[i].label == a[i-1].label {
			t.Fatalf("%v does not alternate", a)
		}
	}
	b := alternate(rand.New(rand.NewPCG(9, 1)), shots, []string{"a", "b"})
	slices.SortFunc(b, func(x, y iclItem) int { return strings.Compare(x.text, y.text) })
	if !slices.Equal(b, shots) {
		t.Errorf("other examples: %v", b)
	}
}

// iclFiles is a set of two classes whose texts have 8 bytes.
func iclFiles(t *testing.T) string {
	dir := t.TempDir()
	var train, test []string
	for i := range 40 {
		train = append(train, fmt.Sprintf(`{"text": "train %02d", "label": "class_%d"}`, i, i%2))
		test = append(test, fmt.Sprintf(`{"text": "asked %02d", "label": "class_%d"}`, i, i%2))
	}
	writeSet(t, dir, "icl/banking77_train", train...)
	writeSet(t, dir, "icl/banking77_test", test...)
	return dir
}

// Shots double from one of each class to what fits, prompts grow at their end, and the form is the protocol's.
func TestICLPrompts(t *testing.T) {
	opt := eval.Options{Data: iclFiles(t), Set: map[string]string{"icl.items": "3"}}
	s := subject(t, ref.New(), "diff", 500) // of bytes
	opt.Measure([]eval.Target{modelOf("m", s, 500)})
	j, err := opt.Prepare(context.Background(), lookup(t, "icl_banking77"))
	if err != nil {
		t.Fatal(err)
	}
	// What fits besides a question and its label.
	example := len("query: train 00\nintent: class 0\n==\n") + 1 // one token is put before every text that is counted
	fit := (500 - len("query: asked 00\nintent: class 0\n") - 2) / example
	example--
	want := []int{2, 4, 8, fit}
	if got := j.Config["shot_counts"].([]int); !slices.Equal(got, want) {
		t.Fatalf("shots %v, want %v", got, want)
	}
	for i, n := range want {
		first := j.Gold[3*i]
		if got := strings.Count(first.Context, "\n==\n"); got != n || len(first.Context)+len(first.Text) > 500 {
			t.Errorf("%d shots: %d in %q", n, got, first.Context)
		}
		if i > 0 && !strings.HasPrefix(first.Context,
			strings.TrimSuffix(j.Gold[0].Context, j.Gold[0].Context[2*example:])) {
			t.Errorf("%d shots do not begin with those of %d", n, want[0])
		}
		if !strings.HasSuffix(first.Context, "\nintent:") || !strings.HasPrefix(first.Text, " class ") {
			t.Errorf("prompt %q, answer %q", first.Context, first.Text)
		}
	}
}

// A prompt has as many examples as its id says, in whatever order the numbers were asked for.
func TestICLShotsInAnyOrder(t *testing.T) {
	for _, shots := range []string{"2,4,7", "7,2,4", "7,4,2"} {
		opt := eval.Options{Data: iclFiles(t), Set: map[string]string{"icl.items": "2", "icl.shots": shots}}
		j := prepared(t, lookup(t, "icl_banking77"), opt, 500)
		var ids []string
		for i, g := range j.Gold {
			ids = append(ids, j.IDs[i])
			if n := strings.Count(g.Context, "\n==\n"); !strings.HasPrefix(j.IDs[i], fmt.Sprintf("shots=%d ", n)) {
				t.Errorf("%s: %q has %d examples", shots, j.IDs[i], n)
			}
		}
		if want := "[shots=2 0 shots=2 1 shots=4 0 shots=4 1 shots=7 0 shots=7 1]"; fmt.Sprint(ids) != want {
			t.Errorf("%s: %v, want %s", shots, ids, want)
		}
	}
}

func TestICLRefuses(t *testing.T) {
	opt := eval.Options{Data: iclFiles(t), Set: map[string]string{"icl.shots": "2,99"}}
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 125)})
	if _, err := opt.Prepare(context.Background(), lookup(t, "icl_banking77")); err == nil ||
		!strings.Contains(err.Error(), "99 is asked for, there is room for 1 to 12") {
		t.Errorf("%v", err)
	}
	opt.Set = nil
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 10)})
	if _, err := opt.Prepare(context.Background(), lookup(t, "icl_banking77")); err == nil ||
		!strings.Contains(err.Error(), "a question and one example have") {
		t.Errorf("%v", err)
	}
}

// By hand: two counts of shots with accuracies 1/2 and 1.
func TestFinishICL(t *testing.T) {
	r := &eval.Result{Config: map[string]any{"classes": 4}}
	var asked []iclAsked
	for i, acc := range []float64{0, 1, 1, 1} {
		r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(i), Values: map[string]float64{"acc": acc}})
		asked = append(asked, iclAsked{run: i / 2})
	}
	if err := finishICL(r, asked, []int{2, 4}); err != nil {
		t.Fatal(err)
	}
	d := detail[ICLDetail](t, r)
	if d.Acc[0].Value != 0.5 || d.Acc[0].N != 2 || d.Acc[1].Value != 1 || d.Chance != 0.25 {
		t.Errorf("%+v", d)
	}
	if m, ok := r.Metric("acc_4shot"); !ok || m.Value != 1 {
		t.Errorf("%+v", r.Metrics)
	}
}

// By hand: seeds score 1, 0 in random order and ½, ½ alternating.
func TestFinishOrder(t *testing.T) {
	r := &eval.Result{}
	var asked []iclAsked
	for i, acc := range []float64{1, 1, 0, 0, 1, 0, 0, 1} {
		r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(i), Values: map[string]float64{"acc": acc}})
		asked = append(asked, iclAsked{run: i / 2})
	}
	if err := finishOrder(r, asked, 4, 2, 1); err != nil {
		t.Fatal(err)
	}
	a, _ := r.Metric("spread_random")
	b, _ := r.Metric("spread_alternating")
	if a.Value != 1 || b.Value != 0 || a.StdErr != 0 || b.StdErr == 0 {
		t.Errorf("spreads %+v and %+v", a, b)
	}
	d := detail[OrderDetail](t, r)
	if !slices.Equal(d.Acc["random"], []float64{1, 0}) || !slices.Equal(d.Acc["alternating"], []float64{0.5, 0.5}) {
		t.Errorf("%+v", d)
	}
}

// A model of bytes gets through both tasks.
func TestICLWithModel(t *testing.T) {
	s := subject(t, ref.New(), "diff", 500)
	defer s.Close()
	for _, name := range []string{"icl_trec", "icl_order_trec"} {
		group := lookup(t, name).Group
		opt := eval.Options{Limit: 5, Set: map[string]string{group + ".items": "2"}}
		if group == "icl_order" {
			opt.Set["icl_order.seeds"] = "2"
		}
		r := answer(t, lookup(t, name), opt, s, 500)
		if m, _ := r.Metric("acc"); m.N != r.N || r.N > 5 {
			t.Errorf("%s: %+v of %d", name, m, r.N)
		}
	}
}

// No label is the beginning of another as the model is offered them: else the shorter could never be chosen.
func TestOptionsEnd(t *testing.T) {
	task := &iclTask{labels: []string{"cancel", "cancel reservation", "time", "timer"}}
	for i, a := range task.options() {
		for k, b := range task.options() {
			if i != k && strings.HasPrefix(b, a) {
				t.Errorf("%q begins %q", a, b)
			}
		}
	}
}

// As many examples fit as the longest question and the longest label leave room for, and their numbers double from one
// of each class: at every context, with texts of all lengths.
func TestICLFit(t *testing.T) {
	task := &iclTask{set: iclSet{x: "Q: ", y: "A:", between: "\n"},
		labels: []string{"a", "a long label", "bc", "d", "e"},
		test:   []iclItem{{"one", "a"}, {"the longest question", "bc"}, {"four", "a"}}}
	for i := range 20 {
		task.train = append(task.train, iclItem{strings.Repeat("x", i*7%5), task.labels[i%5]})
	}
	for context := range 500 {
		p := &eval.Plan{Context: context, Count: func(s string) int { return len(s) },
			Values: map[string]any{"shots": []int{0}}}
		room, fit := context-len("Q: the longest question\nA:"+" a long label\n"), 0
		for _, x := range task.train {
			if room -= len("Q: " + x.text + "\nA: " + x.label + "\n"); room < 0 {
				break
			}
			fit++
		}
		var want []int
		for n := 5; n < fit; n *= 2 {
			want = append(want, n)
		}
		if fit > 1 && fit < 5 {
			want = append(want, fit/2)
		}
		if fit > 0 {
			want = append(want, fit)
		}
		got, err := task.shotCounts(t.Context(), p)
		if !slices.Equal(got, want) || (err == nil) != (fit > 0) {
			t.Errorf("a context of %d has room for %d: %v, %v, want %v", context, fit, got, err, want)
		}
		for asked := 0; err == nil && asked <= 21; asked++ {
			p.Values["shots"] = []int{1, asked}
			if _, err := task.shotCounts(t.Context(), p); (err == nil) != (asked >= 1 && asked <= fit) {
				t.Errorf("%d asked for, %d fit: %v", asked, fit, err)
			}
		}
	}
}
