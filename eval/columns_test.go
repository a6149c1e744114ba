package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/device/ref"
	"antiphase/layer"
)

// Columns of a report: what distinguishes models, which labels count, in which order results stand, and which of two
// results of a question.
func TestAssembleColumns(t *testing.T) {
	cell := func(m Model, question string, place int, value float64, day int) *Cell {
		return &Cell{Head: Head{Model: m, Question: question, Task: question, Seed: uint64(day), Limit: day,
			Replicate: fmt.Sprint("r", day), Machine: "m", Commit: "c", Data: "d",
			Time: time.Date(2026, 3, day, 1, 2, 3, 0, time.UTC)},
			Result: &Result{Question: question, Task: question, Kind: question, Place: place,
				Metrics: []Metric{{Name: "x", Mean: Mean{Value: value}}}}}
	}
	base := Model{Name: "a", Group: "g", Hash: "0123456789", Context: 64, Precision: "fp32", Device: "cpu", Threads: 1,
		Run: "run", Tokens: 5}
	relabelled, int8, cuda, other := base, base, base, base
	relabelled.Name, relabelled.Group, relabelled.Threads, relabelled.Run, relabelled.Tokens = "b", "h", 9, "", 0
	int8.Precision, int8.Name, int8.Group = "int8", "b", "h"
	cuda.Device, cuda.Name, cuda.Group = "cuda", "b", "h"
	other.Hash, other.Name, other.Group = "89abcdef01", "b", ""
	e := Assemble([]*Cell{cell(base, "late", 7, 1, 9), cell(relabelled, "early", 2, 2, 4),
		cell(relabelled, "late", 7, 3, 5), cell(int8, "late", 7, 4, 6), cell(cuda, "late", 7, 5, 7),
		cell(other, "late", 7, 6, 8)})
	var got []string
	for _, m := range e.Models {
		line := m.Name + "|" + m.Group + "|"
		for _, r := range m.Results {
			line += fmt.Sprintf(" %s=%g of seed %d, %s", r.Question, r.Metrics[0].Value, r.Seed, r.Replicate)
		}
		got = append(got, line)
	}
	want := []string{
		"b fp32 cpu 01234567|h fp32 cpu 01234567| early=2 of seed 4, r4 late=1 of seed 9, r9",
		"b int8|h int8| late=4 of seed 6, r6",
		"b fp32 cuda|h fp32 cuda| late=5 of seed 7, r7",
		"b fp32 cpu 89abcdef|| late=6 of seed 8, r8",
	}
	if !slices.Equal(got, want) {
		t.Errorf("columns\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e.Models[0].Run != "run" || e.Models[0].Tokens != 5 {
		t.Errorf("labels that a later cell lacks are lost: %+v", e.Models[0].Model)
	}
	if e.Date != "2026-03-09" || e.Seed != 8 || e.Limit != 8 || e.Machine != "m" || e.Commit != "c" || e.Data != "d" {
		t.Errorf("%+v", e)
	}
	if r, ok := e.Models[0].Result("late"); !ok || r.Metrics[0].Value != 1 {
		t.Errorf("%+v", r)
	}
	if _, ok := e.Models[1].Result("early"); ok {
		t.Error("a result that the model does not have")
	}
	if _, ok := e.Models[1].Find("early"); ok {
		t.Error("a question that the model was not asked")
	}
	for range 2 { // in either order of models
		if q := e.Questions(); len(q) != 2 || q[0].Question != "early" || q[1].Question != "late" {
			t.Errorf("%d questions", len(q))
		}
		slices.Reverse(e.Models)
	}
}

// Means are of tasks asked with as many examples; stand-ins have a mean of their own; a single task has none.
func TestGroupMeansByKind(t *testing.T) {
	result := func(task, kind, group string, shots int, v float64) Result {
		return Result{Question: fmt.Sprint(task, shots), Task: task, Kind: kind, Group: group, Shots: shots,
			Metrics: []Metric{{Name: "acc", Mean: Mean{v, 0.3, 10}, Better: Higher}, {Name: "second"}}}
	}
	ev := &Evaluation{Models: []Judged{
		{Model: Model{Name: "a"}, Results: []Result{result("x", "x", "g", 0, 0.1), result("x", "x", "g", 5, 0.2),
			result("y", "y", "g", 5, 0.6), result("y", "y", "g", 0, 0.3), result("z", "z", "g", 5, 1),
			result("standin_p", "p", "g", 5, 0.4), result("standin_q", "q", "g", 5, 0.2),
			result("alone", "alone", "h", 5, 1), result("none", "none", "", 5, 1),
			result("none2", "none2", "", 5, 1)}},
		{Model: Model{Name: "b"}, Results: []Result{result("x", "x", "g", 5, 0.8), result("z", "z", "g", 5, 0.4)}},
	}}
	sides := ev.Sides()
	for i, want := range []string{
		"g [x y] 0.2 of 20 ± 0.2121; g [x y z] 0.6 of 30 ± 0.1732; g [standin_p standin_q] 0.3 of 20 ± 0.2121; ",
		"g [x z] 0.6 of 20 ± 0.2121; ",
	} {
		got := ""
		for _, g := range ev.GroupMeans(&sides[i]) {
			got += fmt.Sprintf("%s %v %.4g of %d ± %.4f; ", g.Group, g.Tasks, g.Metric.Value, g.Metric.N,
				g.Metric.StdErr)
			if g.Metric.Better != Higher || g.Metric.Name != "acc" {
				t.Errorf("%+v", g.Metric)
			}
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Questions are asked in chunks, 64 unless the task says, in order; progress is reported before each.
func TestAskInChunks(t *testing.T) {
	for _, x := range []struct {
		chunk int
		sizes []int
	}{{0, []int{64, 64, 2}}, {100, []int{100, 30}}} {
		var sizes []int
		var seen []Progress
		task := Task{Name: "t", Measures: []Measure{{Name: "v", Label: "values", Better: Lower}, {Name: "absent"}},
			Prepare: func(context.Context, *Plan) (*Job, error) {
				j := &Job{Chunk: x.chunk, Floors: Chance(0.25, "v")}
				for i := range 130 {
					j.IDs = append(j.IDs, fmt.Sprint(i))
				}
				j.Ask = func(_ context.Context, _ LM, which []int) (out []Answer, _ error) {
					sizes = append(sizes, len(which))
					for _, w := range which {
						out = append(out, Answer{Values: map[string]float64{"v": float64(w)}})
					}
					time.Sleep(time.Millisecond)
					return out, nil
				}
				return j, nil
			}}
		ev, err := Run(t.Context(), []Target{target("m", "h", &knower{})}, []Task{task},
			Options{Progress: func(p Progress) { seen = append(seen, p) }})
		if err != nil || !slices.Equal(sizes, x.sizes) {
			t.Fatalf("asked %v, want %v; %v", sizes, x.sizes, err)
		}
		done := 0
		for i, p := range seen {
			if p.Model != "m" || p.Task != "t" || p.Done != done || p.Total != 130 || p.Elapsed < 0 {
				t.Errorf("progress %d: %+v, want %d of 130", i, p, done)
			}
			done += sizes[i]
		}
		r := ev.Models[0].Results[0]
		if len(seen) != len(sizes) || len(r.Metrics) != 1 || r.Metrics[0].Value != 64.5 ||
			r.Metrics[0].Label != "values" || r.Metrics[0].Floors["chance"] != 0.25 || r.Metrics[0].Better != Lower {
			t.Errorf("%d reports, %+v", len(seen), r.Metrics)
		}
		if least := 0.001 * float64(len(sizes)); r.Seconds < least || r.Seconds > 60 {
			t.Errorf("asking took %g s, at least %g", r.Seconds, least)
		}
		for i, a := range r.Answers {
			if a.ID != fmt.Sprint(i) || a.Values["v"] != float64(i) {
				t.Fatalf("answer %d is %+v", i, a)
			}
		}
	}
}

// A store knows its unfinished cells; read again, answers stand in a fixed order; a head tells what was asked.
func TestStoreHeads(t *testing.T) {
	dir := t.TempDir()
	if IsStore(dir) || IsStore(filepath.Join(dir, "none")) {
		t.Error("an empty folder is a store")
	}
	var asked []int
	task := counting(12, &asked)
	task.Shots = 2
	good, bad := target("good", "h", &knower{}), target("bad", "i", &failing{after: 1})
	opt := Options{Seed: 7, Shots: -1, Limit: 11, Output: dir, Machine: "box", Commit: "abc", Replicate: "rep"}
	if _, err := Run(t.Context(), []Target{good, bad}, []Task{task}, opt); err == nil {
		t.Fatal("the second model does not fail")
	}
	s, err := ReadStores(dir)
	if err != nil || !IsStore(dir) || s.Unfinished() != 1 || len(s.Cells()) != 1 {
		t.Fatalf("%d unfinished, %v", s.Unfinished(), err)
	}
	h := s.Cells()[0].Head
	if h.Samples != 11 || h.Shots != 2 || h.Version != 3 || h.Task != "counting" || h.Seed != 7 || h.Limit != 11 ||
		h.Machine != "box" || h.Commit != "abc" || h.Replicate != "rep" ||
		h.Model.Name != "good" || h.Model.Hash != "h" || time.Since(h.Time) > time.Minute ||
		h.Time.Location() != time.UTC {
		t.Errorf("%+v", h)
	}
	var ids []string
	for _, a := range s.Cells()[0].Result.Answers {
		ids = append(ids, a.ID)
	}
	if want := "q0 q1 q10 q2 q3 q4 q5 q6 q7 q8 q9"; strings.Join(ids, " ") != want {
		t.Errorf("answers %v", ids)
	}
	if err := os.WriteFile(filepath.Join(dir, "rows-z.jsonl"), sealed([]byte(`{"cell":7}`)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStores(dir); err == nil || !strings.Contains(err.Error(), "rows-z.jsonl: line 1: ") {
		t.Errorf("a row of another form: %v", err)
	}
}

// A random stream is one of the seed, the task and the purpose, and the same for the same.
func TestStreams(t *testing.T) {
	draw := func(seed uint64, task, purpose string) uint64 {
		return newPlan(t, &Task{Name: task}, Options{Seed: seed}).Rand(purpose).Uint64()
	}
	first := draw(1, "t", "p")
	if first != draw(1, "t", "p") {
		t.Error("the same stream begins in two ways")
	}
	for name, x := range map[string]uint64{"seed": draw(2, "t", "p"), "task": draw(1, "u", "p"),
		"purpose": draw(1, "t", "q")} {
		if x == first {
			t.Errorf("another %s gives the same stream", name)
		}
	}
}

// Prompts are sized for the smallest context, counted by the first of our models, else by a quarter of the bytes.
func TestMeasureTargets(t *testing.T) {
	at := func(context int, lm LM) Target { return Target{Model: Model{Context: context}, LM: lm} }
	one, two := subject(t, ref.New(), "diff", 16), subject(t, ref.New(), "diff", 16)
	two.Template = func(s string) (string, error) { return "<" + s + ">", nil }
	for _, x := range []struct {
		targets        []Target
		context, count int
	}{
		{[]Target{at(50, &knower{}), at(40, &knower{}), at(60, &knower{})}, 40, 2}, // 7 bytes
		{[]Target{at(50, &knower{}), at(60, one), at(70, two)}, 50, 8},             // a first token and seven
		{[]Target{at(70, two), at(60, one)}, 60, 9},
	} {
		var o Options
		o.Measure(x.targets)
		if n := o.count("seventy"); o.context != x.context || n != x.count {
			t.Errorf("%d tokens of context, the text counts %d; want %d, %d", o.context, n, x.context, x.count)
		}
		for tokens, want := range map[int]int{10: 10, 1000: x.context} {
			if in := o.Within(tokens); in.context != want || o.context != x.context {
				t.Errorf("within %d: %d, want %d", tokens, in.context, want)
			}
		}
	}
}

// A rehearsal finds what is wrong and asks nothing.
func TestRehearse(t *testing.T) {
	var asked []int
	k := &knower{}
	if err := Rehearse(t.Context(), target("a", "", k), []Task{counting(5, &asked)}, Options{Shots: -1}); err != nil ||
		len(asked) > 0 || k.calls > 0 {
		t.Errorf("asked %v, %v", asked, err)
	}
	if err := Rehearse(t.Context(), target("a", "", k), []Task{counting(0, &asked)}, Options{Shots: -1}); err == nil {
		t.Error("an empty set passes")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	var in *InputError
	if err := Rehearse(stopped, target("a", "", k), []Task{counting(5, &asked)}, Options{Shots: -1}); !errors.Is(err,
		context.Canceled) || errors.As(err, &in) {
		t.Errorf("interrupted: %v", err)
	}
}

// Nothing that was computed for a changed model is used for another: scores before, during and after a change of the
// attention are those of models that were never changed.
func TestChangedModelForgets(t *testing.T) {
	reqs := []Continuation{{"The sky is", " blue"}, {"The sky is", " red"}}
	score := func(s *Subject) []Score {
		t.Helper()
		got, err := s.Loglikelihood(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	change := map[string]func(s *Subject, on bool) error{
		"lowbit": func(s *Subject, on bool) error {
			if on {
				return s.SetLowbit(layer.Lowbit{Keys: 2, Values: 2, CachePer: layer.PerRow})
			}
			return s.SetLowbit(layer.Lowbit{})
		},
		"scales of a sequence": func(s *Subject, on bool) error {
			if on {
				return s.SetLowbit(layer.Lowbit{Keys: 3, CachePer: layer.PerTensor})
			}
			return s.SetLowbit(layer.Lowbit{})
		},
		"intervention": func(s *Subject, on bool) error {
			if on {
				return s.Intervene(layer.Intervention{Heads: []int{0}, Knockout: true})
			}
			return s.Intervene()
		},
	}
	plain := score(subject(t, ref.New(), "diff", 24))
	for name, f := range change {
		fresh, s := subject(t, ref.New(), "diff", 24), subject(t, ref.New(), "diff", 24)
		if err := f(fresh, true); err != nil {
			t.Fatal(err)
		}
		changed := score(fresh)
		if reflect.DeepEqual(changed, plain) {
			t.Fatalf("%s changes nothing", name)
		}
		for i, on := range []bool{false, true, false, true} {
			if err := f(s, on); err != nil {
				t.Fatal(err)
			}
			want := plain
			if on {
				want = changed
			}
			if got := score(s); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, change %d: %v, want %v", name, i, got, want)
			}
		}
	}
}

// The token before a text is the one named, else the tokenizer's.
func TestFirstToken(t *testing.T) {
	s := subject(t, ref.New(), "diff", 16)
	eos, _ := s.Tokenizer.EOS()
	if got := s.Encode("a"); !slices.Equal(got, []int32{eos, 'a'}) {
		t.Errorf("%v", got)
	}
	id := int32(7)
	s.First = &id
	if got := s.Encode("a"); !slices.Equal(got, []int32{7, 'a'}) {
		t.Errorf("%v", got)
	}
}

// Answers that lack a measure count neither in its mean nor in its interval; without any there is none.
func TestIntervalOfSome(t *testing.T) {
	var list []Answer
	for i := range 20 {
		a := Answer{ID: fmt.Sprint(i), Values: map[string]float64{"y": 0.5}}
		if i%2 == 0 {
			a.Values["x"] = float64(i / 2 % 2)
		}
		list = append(list, a)
	}
	m := MeanOf(list, "x")
	low, high := meanInterval(list, "x", m)
	if wl, wh := Wilson(5, 10); m.N != 10 || low != wl || high != wh {
		t.Errorf("%+v: %g to %g, want %g to %g", m, low, high, wl, wh)
	}
	if low, high := meanInterval(list, "z", MeanOf(list, "z")); low != 0 || high != 0 {
		t.Errorf("of nothing: %g to %g", low, high)
	}
	r := Result{Answers: list}
	if got := r.Where(func(i int) bool { return i == 3 || i == 5 }); len(got) != 2 || got[0].ID != "3" ||
		got[1].ID != "5" {
		t.Errorf("%+v", got)
	}
}

// The most likely index of a row, the first of equal ones, and its log-softmax by definition.
func TestLogProb(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	row := make([]float32, 9)
	for i := range row {
		row[i] = float32(80 * g.NormFloat64())
	}
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x - slices.Max(row)))
	}
	for id := range int32(9) {
		lp, best := logProb(row, id)
		if want := float64(row[id]-slices.Max(row)) - math.Log(sum); !near(lp, want, 1e-4*math.Abs(want)+1e-9) ||
			row[best] != slices.Max(row) {
			t.Errorf("%d: %g, want %g", id, lp, want)
		}
	}
	if lp, best := logProb([]float32{1, 3, 3}, 2); best != 1 || !near(lp, -math.Log(2+math.Exp(-2)), 1e-9) {
		t.Errorf("of equal ones %d, %g", best, lp)
	}
}
