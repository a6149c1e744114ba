package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// changed is plainTask with another job.
func changed(n int, change func(j *Job)) Task {
	task := plainTask(n)
	prepare := task.Prepare
	task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
		j, err := prepare(ctx, p)
		change(j)
		return j, err
	}
	return task
}

// failure is a call and what its error says.
type failure struct {
	do   func() error
	want string
}

// passOn checks that every call fails as it should.
func passOn(t *testing.T, all map[string]failure) {
	t.Helper()
	for name, c := range all {
		for range 2 { // the second time too
			if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
	}
}

// What goes wrong below is the caller's error, by its own text.
func TestErrorsPassOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeText(t, file, "no folder")
	one := []Target{target("m", "h", &knower{})}
	run := func(task Task, opt Options) error { _, err := Run(t.Context(), one, []Task{task}, opt); return err }
	passOn(t, map[string]failure{
		"choose": {func() error {
			_, err := Choose(t.Context(), &failing{}, []Choice{{"a", []string{" b"}}})
			return err
		}, "stopped"},
		"run into a file": {func() error { return run(plainTask(1), Options{Output: file}) }, file},
		"share into a file": {func() error {
			return Share(t.Context(), one, []Task{plainTask(1)}, Options{Output: file}, 0, 1)
		}, file},
		"share of a wrong setting": {func() error {
			return Share(t.Context(), one, []Task{plainTask(1)},
				Options{Output: t.TempDir(), Set: map[string]string{"t.k": "x"}}, 0, 1)
		}, "t: k=x: want a whole number of at most 1048576"},
		"settings that no file can hold": {func() error {
			return run(changed(1, func(j *Job) { j.Config["f"] = func() {} }), Options{})
		}, "m: t: json: unsupported type: func()"},
		"answers that no file can hold": {func() error {
			return run(changed(1, func(j *Job) {
				ask := j.Ask
				j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
					out, err := ask(ctx, lm, which)
					out[0].Doc = map[string]any{"f": func() {}}
					return out, err
				}
			}), Options{LogSamples: true})
		}, "m: t: json: "},
		"prepare with a wrong setting": {func() error {
			task := plainTask(1)
			_, err := (&Options{Set: map[string]string{"t.k": "x"}, context: 64}).Prepare(t.Context(), &task)
			return err
		}, "k=x: want"},
		"a broken evaluation": {func() error {
			_, err := ReadEvaluation(strings.NewReader(`{"models": [`))
			return err
		}, "eval: evaluation: unexpected EOF"},
	})
}

// So is what goes wrong with a data set.
func TestSetErrorsPassOn(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	p := newPlan(t, &Task{Name: "x"}, Options{Data: t.TempDir()})
	writeText(t, filepath.Join(p.Data, "set.jsonl"), `{"Q": "1"}`+"\n")
	passOn(t, map[string]failure{
		"a set that is not there": {func() error {
			_, err := ReadSet[quizRow](t.Context(), p, "none", 0)
			return err
		}, "has no none (looked for none.jsonl.zst, none.jsonl.gz, none.jsonl)"},
		"an interrupted set": {func() error {
			_, err := ReadSet[quizRow](gone, p, "set", 0)
			return err
		}, context.Canceled.Error()},
	})
}

// Without a folder nothing is written anywhere; a store may be closed twice.
func TestStoreWithoutAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Run(t.Context(), []Target{target("m", "h", &knower{})}, []Task{plainTask(2)}, Options{}); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir("."); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(row{Cell: "c", Head: &Head{}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A task that no model can be asked is not prepared.
func TestNobodyToPrepareFor(t *testing.T) {
	task := plainTask(1)
	task.Inside = true
	task.Prepare = func(context.Context, *Plan) (*Job, error) { return nil, errors.New("prepared") }
	ev, err := Run(t.Context(), []Target{target("m", "h", &knower{}), target("n", "i", &knower{})},
		[]Task{task, counting(1, new([]int))}, Options{})
	if err != nil || len(ev.Skipped) != 2 || ev.Skipped[1].Model != "n" || ev.Skipped[1].Task != "t" {
		t.Errorf("%+v, %v", ev, err)
	}
}

// via is a transport that notes requests.
type via struct{ seen []*http.Request }

func (v *via) RoundTrip(r *http.Request) (*http.Response, error) {
	v.seen = append(v.seen, r)
	return http.DefaultTransport.RoundTrip(r)
}

// Requests go through the caller's client and say what they hold. An answer that is no refusal of the echo is not asked
// again without it.
func TestEndpointClient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "no JSON")
	}))
	defer srv.Close()
	v := &via{}
	e := &Endpoint{URL: srv.URL, Model: "m", Client: &http.Client{Transport: v}}
	_, err := e.Losses(t.Context(), []string{"ab"})
	if err == nil || errors.Is(err, ErrCannot) || len(v.seen) != 1 ||
		v.seen[0].Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v after %d requests", err, len(v.seen))
	}
}

// A server's text on one line, cut where it is too long.
func TestPlain(t *testing.T) {
	for _, x := range []struct {
		text string
		most int
		want string
	}{
		{"a\nb\tc", 9, "a b c"}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"abcdefgh", 3, "abc…"}, {"é", 9, "é"},
		{"a\x00b", 9, `a\x00b`}, {"", 3, ""},
		{"a\xffb", 9, `a\xffb`}, {"a\u202eb", 12, `a\u202eb`}, {"日本語", 6, "日本…"},
	} {
		if got := plain(x.text, x.most); got != x.want {
			t.Errorf("%q in %d: %q, want %q", x.text, x.most, got, x.want)
		}
	}
}

// Which setting is refused, what would be right, and with which context a task is checked.
func TestSettingWords(t *testing.T) {
	for _, x := range []struct {
		def        any
		text, want string
	}{
		{1, "x", "want a whole number of at most 1048576"}, {1.5, "x", "want a number"},
		{true, "x", "want true or false"},
		{[]int{1}, "1,x", "want whole numbers of at most 1048576 with commas between them"},
		{[]int{1}, "1, 2 ,2", "it has 2 twice"},
		{[]float64{1}, "1,x", "want numbers with commas between them"}, {[]string{"a"}, "", "want at least one"},
	} {
		if _, err := readSetting(x.def, x.text); err == nil || err.Error() != x.want {
			t.Errorf("%T %q: %v, want %s", x.def, x.text, err, x.want)
		}
	}
	task := Task{Name: "t", Group: "g", Settings: []Setting{{Key: "k", Default: 1}}}
	other := task
	other.Name = "u"
	o := Options{Set: map[string]string{"x.b": "1", "x.a": "1", "x.c": "1"}}
	for range 10 {
		err := o.CheckSettings([]Task{task, other})
		if want := `setting "x.a" is unknown; the tasks asked for have g.k, t.k, u.k`; err == nil ||
			err.Error() != want {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	o = Options{Shots: 3, context: 9}
	if o.Check(&task, 3) != nil || o.Check(&task, 2) == nil || o.context != 9 {
		t.Errorf("a context of 3: %v, of 2: %v, of the models %d", o.Check(&task, 3), o.Check(&task, 2), o.context)
	}
}

// Too few answers, or values that are not numbers, are an error.
func TestAnswersRefused(t *testing.T) {
	for want, answers := range map[string][]Answer{"2 questions gave 1 samples": {{}},
		"v is NaN":  {{}, {Values: map[string]float64{"v": math.NaN()}}},
		"v is +Inf": {{Values: map[string]float64{"v": math.Inf(1)}}, {}}} {
		task := Task{Name: "t", Measures: []Measure{{Name: "v"}}, Prepare: func(context.Context, *Plan) (*Job, error) {
			return &Job{IDs: []string{"0", "1"},
				Ask: func(context.Context, LM, []int) ([]Answer, error) { return answers, nil }}, nil
		}}
		_, err := Run(t.Context(), []Target{target("m", "h", &knower{})}, []Task{task}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.HasPrefix(want, "v ") != errors.Is(err, ErrDiverged) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
