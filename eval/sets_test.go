package eval

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

type quizRow struct{ Q string }

func (r *quizRow) Check() error { return Missing("Q", r.Q) }

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func newPlan(t *testing.T, task *Task, o Options) *Plan {
	t.Helper()
	o.context = 64
	p, err := o.plan(task)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A set is read up to its limit, compressed or not, and an error says which line is at fault.
func TestReadSet(t *testing.T) {
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "a", "plain.jsonl"), `{"Q": "1"}`+"\n"+`{"Q": "2"}`+"\n"+`{"Q": "3"}`+"\n")
	writeText(t, filepath.Join(dir, "bad.jsonl"), `{"Q": "1"}`+"\n"+`{"Q": 2}`+"\n")
	writeText(t, filepath.Join(dir, "blank.jsonl"), `{"Q": "1"}`+"\n"+`{"Q": " "}`+"\n")
	writeText(t, filepath.Join(dir, "none.jsonl"), "")
	f, err := os.Create(filepath.Join(dir, "small.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, `{"Q": "z"}`)
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	p := newPlan(t, &Task{Name: "x"}, Options{Data: dir})
	ctx, stop := context.WithCancel(context.Background())
	for _, x := range []struct {
		name  string
		limit int
		want  []quizRow
		err   string
	}{
		{"a/plain", 0, []quizRow{{"1"}, {"2"}, {"3"}}, ""}, {"a/plain", 2, []quizRow{{"1"}, {"2"}}, ""},
		{"a/plain", 9, []quizRow{{"1"}, {"2"}, {"3"}}, ""},
		{"small", 0, []quizRow{{"z"}}, ""}, {"bad", 0, nil, "line 2: "},
		{"blank", 0, nil, `line 2: field "Q" is missing or empty`}, {"bad", 1, []quizRow{{"1"}}, ""},
		{"none", 0, nil, "the set is empty"},
		{"other", 0, nil, "has no other (looked for other.jsonl.zst, other.jsonl.gz, other.jsonl)"},
	} {
		got, err := ReadSet[quizRow](ctx, p, x.name, x.limit)
		if !slices.Equal(got, x.want) || (err == nil) != (x.err == "") || err != nil &&
			!strings.Contains(err.Error(), x.err) {
			t.Errorf("%s, %d: %v, %v; want %v, %q", x.name, x.limit, got, err, x.want, x.err)
		}
	}
	stop()
	if _, err := ReadSet[quizRow](ctx, newPlan(t, &Task{Name: "x"}, Options{Data: dir}), "a/plain", 0); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if p.Source("f") != "f" || newPlan(t, &Task{Name: "x"}, Options{}).Source("f") != StandIn {
		t.Error("the source is not the file, or not the stand-in")
	}
	if err := Missing("a", "x", "b", "", "c", ""); err == nil || !strings.Contains(err.Error(), `"b"`) ||
		Missing("a", "x") != nil || Missing() != nil {
		t.Error(err)
	}
}

// The identity of a question changes with the content of the files it reads, at any depth, and with nothing else.
func TestUses(t *testing.T) {
	hash := func(texts ...string) []string {
		t.Helper()
		dir := t.TempDir()
		p := newPlan(t, &Task{Name: "x"}, Options{})
		for i, text := range texts {
			path := filepath.Join(dir, fmt.Sprint(i), "sub", "f")
			writeText(t, path, text)
			for range 2 { // the second time is free
				if err := p.Uses(context.Background(), filepath.Join(dir, fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		return p.dataHash()
	}
	a, b := hash("one", "two"), hash("two", "one")
	if !slices.Equal(a, hash("one", "two")) || slices.Equal(a, b) || len(a) != 2 || a[0] != b[1] ||
		slices.Equal(a, hash("one", "twp")) {
		t.Errorf("%q, %q", a, b)
	}
	p := newPlan(t, &Task{Name: "x"}, Options{})
	if p.Uses(context.Background(), filepath.Join(t.TempDir(), "none")) == nil {
		t.Error("a file that is not there has a content")
	}
	if p.Uses(context.Background(), os.DevNull) == nil {
		t.Error("a device has a content")
	}
	link := filepath.Join(t.TempDir(), "link")
	vfstest.Symlink(t, filepath.Join(t.TempDir(), "none"), link)
	if p.Uses(context.Background(), filepath.Dir(link)) == nil {
		t.Error("a link to nothing has a content")
	}
	if _, err := p.Find(context.Background(), "a\x00b"); err == nil || strings.Contains(err.Error(), "looked for") {
		t.Errorf("a name that no file can have: %v", err)
	}
	for _, x := range [][2][]string{{{"ab", "c"}, {"a", "bc"}}, {{"a"}, {"b"}}, {{"a", ""}, {"a"}}} {
		if HashText(x[0]...) == HashText(x[1]...) {
			t.Errorf("%q and %q have one hash", x[0], x[1])
		}
	}
}

// Settings of every type: what is read and what is refused.
func TestEverySetting(t *testing.T) {
	for _, x := range []struct {
		def       any
		good, bad string
		want      any
	}{
		{1, " 7 ", "x", 7}, {1, "1048576", "1048577", 1048576}, {1, "-1048576", "-1048577", -1048576},
		{1.5, " 2.5", "NaN", 2.5}, {1.5, "-1e9", "Inf", -1e9},
		{false, "true", "maybe", true}, {[]int{1}, "3, 4", "3,x", []int{3, 4}}, {[]int{1}, "3", "3,3", []int{3}},
		{[]float64{1}, "0.5,2", "0.5,,2", []float64{0.5, 2}},
		{[]string{"a"}, "b,c", "b,b", []string{"b", "c"}}, {"a", "any, thing", "", "any, thing"},
	} {
		s := Setting{Key: "k", Default: x.def}
		if _, err := readSetting(s.Default, x.good); err != nil {
			t.Errorf("%T %q: %v", x.def, x.good, err)
		}
		if _, err := readSetting(s.Default, x.bad); (err == nil) != (x.bad == "") {
			t.Errorf("%T %q: %v", x.def, x.bad, err)
		}
		task := &Task{Name: "t", Group: "g", Settings: []Setting{s}}
		for _, set := range []map[string]string{{"t.k": x.good}, {"g.k": x.good}, {"t.k": x.good, "g.k": x.good}} {
			if p := newPlan(t, task, Options{Set: set}); !reflect.DeepEqual(p.Values["k"], x.want) {
				t.Errorf("%v: %v, want %v", set, p.Values["k"], x.want)
			}
		}
		if p := newPlan(t, task, Options{}); !reflect.DeepEqual(p.Values["k"], x.def) {
			t.Errorf("default %v, want %v", p.Values["k"], x.def)
		}
	}
}

// The order in which defaults, groups and tasks decide, and the bounds of examples and tokens.
func TestSettingsDecide(t *testing.T) {
	task := &Task{Name: "t", Group: "g", Shots: 3, Settings: []Setting{{Key: "k", Default: 1}},
		preset: map[string]string{"k": "2"}}
	for want, set := range map[int]map[string]string{2: {}, 3: {"g.k": "3"}, 4: {"g.k": "3", "t.k": "4"}} {
		if p := newPlan(t, task, Options{Set: set}); p.Int("k") != want {
			t.Errorf("%v: %d, want %d", set, p.Int("k"), want)
		}
	}
	for shots, want := range map[int]int{-1: 3, 0: 0, 64: 64} {
		if p := newPlan(t, task, Options{Shots: shots}); p.Shots != want {
			t.Errorf("%d shots, want %d", p.Shots, want)
		}
	}
	never := &Task{Name: "t", Shots: -1}
	if p := newPlan(t, never, Options{Shots: 5}); p.Shots != -1 {
		t.Errorf("%d shots of a task without any", p.Shots)
	}
	o := Options{Shots: 65, context: 64}
	if _, err := o.plan(task); err == nil {
		t.Error("65 examples fit 64 tokens")
	}
	o = Options{Set: map[string]string{"g.k": "1", "t.k": "1"}}
	if err := o.CheckSettings([]Task{*task}); err != nil {
		t.Error(err)
	}
	o.Set["other.k"] = "1"
	if err := o.CheckSettings([]Task{*task}); err == nil || !strings.Contains(err.Error(), "g.k, t.k") {
		t.Error(err)
	}
	p := newPlan(t, &Task{Name: "t"}, Options{})
	if p.Fits(mostTokens/100, 100) != nil || p.Fits(mostTokens/100+1, 100) == nil || p.Fits(mostTokens, 0) != nil {
		t.Error("the bound on tokens is not where it should be")
	}
}

// Several processes each take their own questions, all of them once, and Run finds every answer.
func TestShare(t *testing.T) {
	var asked []int
	task := counting(10, &asked)
	timed := task
	timed.Name, timed.Timed = "timed", true
	dir := t.TempDir()
	opt := Options{Output: dir, Shots: -1}
	for rank := range 3 {
		asked = nil
		if err := Share(context.Background(), []Target{target("m", "h", &knower{})}, []Task{task, timed}, opt, rank,
			3); err != nil {
			t.Fatal(err)
		}
		var want []int
		for i := rank; i < 10; i += 3 {
			want = append(want, i)
		}
		if !slices.Equal(asked, want) {
			t.Errorf("rank %d was asked %v, want %v", rank, asked, want)
		}
	}
	asked = nil
	ev, err := Run(context.Background(), []Target{target("m", "h", &knower{})}, []Task{task}, opt)
	if err != nil || len(asked) != 0 {
		t.Fatalf("asked again %v, %v", asked, err)
	}
	if m, ok := ev.Models[0].Results[0].Metric("acc"); !ok || m.Value != 0.5 || m.N != 10 {
		t.Errorf("%+v", m)
	}
	if err := Share(context.Background(), []Target{target("m", "h", &knower{})}, []Task{task}, Options{Shots: -1}, 0,
		1); err == nil {
		t.Error("without a store")
	}
	stop := &failing{after: 0}
	if err := Share(context.Background(), []Target{target("m", "other", stop)}, []Task{task}, opt, 0, 3); err == nil ||
		!strings.Contains(err.Error(), "m: counting: ") {
		t.Errorf("a model that fails: %v", err)
	}
}

// Intervals at their edges.
func TestIntervalEdges(t *testing.T) {
	for _, x := range []struct{ k, n, low, high float64 }{{0, 0, 0, 1}, {0, 10, 0, 0.27753}, {10, 10, 0.72247, 1},
		{5, 10, 0.23659, 0.76341}} {
		if low, high := Wilson(int(x.k), int(x.n)); !near(low, x.low, 1e-5) || !near(high, x.high, 1e-5) {
			t.Errorf("%g of %g: %g to %g", x.k, x.n, low, high)
		}
	}
	for _, df := range []float64{1, 2, 30} {
		if a, b := StudentQuantile(0.025, df), StudentQuantile(0.975, df); !near(a, -b, 1e-9) || b <= 1.95 ||
			StudentQuantile(0.5, df) > 1e-6 {
			t.Errorf("%g degrees: %g and %g", df, a, b)
		}
	}
	if got := StudentQuantile(0.75, 1); !near(got, 1, 1e-6) { // tan(π/4)
		t.Errorf("%g", got)
	}
	for _, x := range []struct {
		m         Mean
		low, high float64
	}{{Mean{3, 1, 1}, 0, 0}, {Mean{3, 0, 9}, 0, 0}, {Mean{3, 1, 2}, 3 - 12.7062, 3 + 12.7062},
		{Mean{-2, 0.5, 31}, -2 - 0.5*2.04227, -2 + 0.5*2.04227}} {
		r := &Result{}
		r.Add("x", "", Higher, x.m)
		if m := r.Metrics[0]; !near(m.Low, x.low, 1e-4) || !near(m.High, x.high, 1e-4) {
			t.Errorf("%+v: %g to %g, want %g to %g", x.m, m.Low, m.High, x.low, x.high)
		}
	}
	for n := range 60 { // no share is below 0 or above 1
		for k := range n + 1 {
			if low, high := Wilson(k, n); low < 0 || high > 1 || low >= high {
				t.Errorf("%d of %d: %g to %g", k, n, low, high)
			}
		}
	}
	// With many degrees of freedom: z + (z³+z)/4n, on both sides of where the normal distribution is taken.
	for _, df := range []float64{1e4, 1e5, 1e6, 9.9e6, 1e7, 1.1e7, 1e9, math.Inf(1)} {
		const z = 1.959963984540054
		if got := StudentQuantile(0.975, df); !near(got, z+(z*z*z+z)/(4*df), 3e-7) {
			t.Errorf("%g degrees: %.9f", df, got)
		}
	}
	e := Mean{Value: 2, StdErr: 0.5, N: 4}.Exp()
	if !near(e.Value, math.Exp(2), 1e-12) || !near(e.StdErr, 0.5*math.Exp(2), 1e-12) || e.N != 4 {
		t.Errorf("%+v", e)
	}
}
