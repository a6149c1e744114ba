package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// counting is a task of n questions that keeps what it was asked; question i scores i mod 2.
func counting(n int, asked *[]int) Task {
	return Task{Name: "counting", Version: 3, Measures: []Measure{{Name: "acc", Better: Higher}},
		Settings: []Setting{{Key: "scale", Default: 1.0, Doc: "factor"}},
		Prepare: func(ctx context.Context, p *Plan) (*Job, error) {
			j := &Job{Chunk: 4, Config: map[string]any{"source": "none"}, Floors: Chance(0.5, "acc")}
			for i := range p.Limited(n) {
				j.IDs = append(j.IDs, fmt.Sprint("q", i))
			}
			j.Ask = func(_ context.Context, lm LM, which []int) ([]Answer, error) {
				*asked = append(*asked, which...)
				if _, err := lm.GenerateUntil(context.Background(), nil); err != nil {
					return nil, err
				}
				var out []Answer
				for _, w := range which {
					out = append(out, Answer{Values: map[string]float64{"acc": p.Float("scale") * float64(w%2)},
						Doc: map[string]any{"w": w}})
				}
				return out, nil
			}
			j.Finish = func(r *Result) error {
				r.Add("twice", "", Neither, r.Metrics[0].Scaled(2))
				return r.SetDetail([]int{1})
			}
			return j, nil
		}}
}

// failing stops after some calls.
type failing struct {
	knower
	after int
}

func (f *failing) GenerateUntil(context.Context, []Generation) ([]string, error) {
	if f.after--; f.after < 0 {
		return nil, errors.New("stopped")
	}
	return nil, nil
}

// target is a model of a name and a hash.
func target(name, hash string, lm LM) Target {
	return Target{Model: Model{Name: name, Hash: hash, Context: 64, Precision: "fp32", Device: "cpu"}, LM: lm}
}

// storeText is everything that a store's files hold.
func storeText(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, storePattern))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return string(out)
}

// cellChanges says how many questions are asked again after a change: whatever can change a number makes another cell,
// a label does not.
var cellChanges = map[string]struct {
	change func(*Options, *Target)
	asks   int
}{
	"seed":        {func(o *Options, _ *Target) { o.Seed = 2 }, 10},
	"limit":       {func(o *Options, _ *Target) { o.Limit = 9 }, 9},
	"setting":     {func(o *Options, _ *Target) { o.Set = map[string]string{"counting.scale": "3"} }, 10},
	"replicate":   {func(o *Options, _ *Target) { o.Replicate = "again" }, 10},
	"precision":   {func(_ *Options, m *Target) { m.Precision = "int8" }, 10},
	"device":      {func(_ *Options, m *Target) { m.Device = "cuda" }, 10},
	"weights":     {func(_ *Options, m *Target) { m.Hash = "other" }, 10},
	"threads":     {func(_ *Options, m *Target) { m.Threads = 7 }, 0},
	"machine":     {func(o *Options, _ *Target) { o.Machine = "other" }, 0},
	"name":        {func(_ *Options, m *Target) { m.Name = "c" }, 0},
	"log samples": {func(o *Options, _ *Target) { o.LogSamples = true }, 10},
}

func TestRunResumes(t *testing.T) {
	var asked []int
	task := counting(10, &asked)
	opt := Options{Seed: 1, Shots: -1, Output: t.TempDir()}
	run := func(after int, hash string, change func(*Options, *Target)) (*Evaluation, error) {
		asked = nil
		o, m := opt, target("a/b", hash, &failing{after: after})
		if change != nil {
			change(&o, &m)
		}
		return Run(context.Background(), []Target{m}, []Task{task}, o)
	}
	if _, err := run(1, "k", nil); err == nil || !strings.Contains(err.Error(), "a/b: counting: stopped") {
		t.Fatalf("%v", err)
	}
	names, _ := filepath.Glob(filepath.Join(opt.Output, storePattern))
	f, err := os.OpenFile(names[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"cell":"x","answer":{"id":"q9","values":{"ac`); err != nil { // killed while writing
		t.Fatal(err)
	}
	f.Close()
	ev, err := run(9, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{4, 5, 6, 7, 8, 9}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want the rest %v", asked, want)
	}
	r := ev.Models[0].Results[0]
	if m := r.Metrics[0]; m.Value != 0.5 || m.N != 10 || m.Floors["chance"] != 0.5 || r.Metrics[1].Value != 1 ||
		r.N != 10 || string(r.Detail) != "[1]" {
		t.Errorf("%+v", r)
	}
	if ev, err := run(9, "k", nil); err != nil || len(asked) > 0 || ev.Models[0].Results[0].Metrics[0].Value != 0.5 {
		t.Errorf("a complete cell was asked again: %v, %v", asked, err)
	}
	for name, c := range cellChanges {
		if _, err := run(9, "k", c.change); err != nil || len(asked) != c.asks {
			t.Errorf("%s: asked %v, %v; want %d", name, asked, err, c.asks)
		}
		if _, err := run(9, "k", c.change); err != nil || len(asked) > 0 {
			t.Errorf("%s: asked %v again, %v", name, asked, err)
		}
	}
	if !strings.Contains(storeText(t, opt.Output), `"doc":{"w":3}`) {
		t.Error("no docs in the store")
	}
}

// Answers of a timed task on one number of threads are not those on another.
func TestTimedCells(t *testing.T) {
	var asked []int
	task := counting(10, &asked)
	task.Timed = true
	opt := Options{Seed: 1, Shots: -1, Output: t.TempDir()}
	for _, threads := range []int{1, 2} {
		asked = nil
		m := target("a/b", "timed", &failing{after: 9})
		m.Threads = threads
		if _, err := Run(t.Context(), []Target{m}, []Task{task}, opt); err != nil || len(asked) != 10 {
			t.Errorf("a timed task on %d threads: asked %v, %v", threads, asked, err)
		}
	}
}

// A task whose samples have nothing to log resumes with --log-samples too.
func TestLogSamplesWithoutDocs(t *testing.T) {
	var asked []int
	task := counting(6, &asked)
	inner := task.Prepare
	task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
		j, err := inner(ctx, p)
		ask := j.Ask
		j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
			out, err := ask(ctx, lm, which)
			for i := range out {
				out[i].Doc = nil
			}
			return out, err
		}
		return j, err
	}
	opt := Options{Shots: -1, Output: t.TempDir(), LogSamples: true}
	for _, want := range []int{6, 0} {
		asked = nil
		if _, err := Run(context.Background(), []Target{target("a", "a", &knower{})}, []Task{task}, opt); err != nil ||
			len(asked) != want {
			t.Errorf("asked %v, %v; want %d", asked, err, want)
		}
	}
}

// What a run leaves: answers in the order of the questions, no texts of samples unless asked for, and nothing new where
// nothing was open. A cell that lost an answer is computed again from what it has then. Models without a hash are known
// by name; tasks that take no examples have none.
func TestRunLeaves(t *testing.T) {
	var asked []int
	dir, right := t.TempDir(), 1.0
	task := counting(12, &asked)
	task.Shots = -1
	prepare := task.Prepare
	task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
		j, err := prepare(ctx, p)
		j.Config = nil
		ask := j.Ask
		j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
			out, err := ask(ctx, lm, which)
			for i := range out {
				out[i].Values["acc"] *= right
			}
			return out, err
		}
		return j, err
	}
	run := func(name string) *Result {
		t.Helper()
		asked = nil
		return &runInto(t, dir, target(name, "", &knower{}), task).Models[0].Results[0]
	}
	r := run("a")
	for i, a := range r.Answers {
		if a.ID != fmt.Sprint("q", i) || a.Doc != nil || len(r.Answers) != 12 {
			t.Errorf("answer %d of %d is %+v", i, len(r.Answers), a)
		}
	}
	if r.Shots != 0 || r.Config["scale"] != 1.0 {
		t.Errorf("%d examples, settings %v", r.Shots, r.Config)
	}
	text := storeText(t, dir)
	if strings.Contains(text, `"doc"`) || strings.Contains(text, `"shots":-1`) {
		t.Error("texts of samples, or fewer examples than none, in the store")
	}
	if run("a"); len(asked) != 0 || storeText(t, dir) != text {
		t.Error("a complete cell was written again")
	}
	if run("b"); len(asked) != 12 {
		t.Errorf("another model without a hash: asked %v", asked)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rows-0.jsonl"),
		[]byte(strings.Replace(text, `"id":"q3","values":{"acc":1`, `"id":"q3","values":{"acc":8`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	right = 7 // 5 right answers, and one that counts seven times
	if r := run("a"); !slices.Equal(asked, []int{3}) || r.Metrics[0].Value != 1 {
		t.Errorf("asked %v, %+v", asked, r.Metrics)
	}
}

// Lines too short for a checksum are damage like any other.
func TestStoreOfShortLines(t *testing.T) {
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "rows-0.jsonl"), "\n{}\n"+`"crc":"00000000"}`+"\n")
	if s, err := ReadStores(dir); err != nil || len(s.Warnings) != 3 || len(s.Cells()) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A run that is interrupted while a task is prepared ends with that, whether or not the task noticed.
func TestInterruptedPreparation(t *testing.T) {
	for _, notices := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		task := changed(1, func(*Job) { cancel() })
		if prepare := task.Prepare; notices {
			task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
				j,
					_ := prepare(ctx, p)
				return j, ctx.Err()
			}
		}
		_, err := Run(ctx, []Target{target("m", "h", &knower{})}, []Task{task}, Options{})
		var in *InputError
		if !errors.Is(err, context.Canceled) || errors.As(err, &in) {
			t.Errorf("notices %v: %v", notices, err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	var asked []int
	good := []Target{target("a", "", &knower{})}
	inside := counting(3, &asked)
	inside.Inside = true
	twice := counting(3, &asked)
	twice.Prepare = func(context.Context, *Plan) (*Job, error) { return &Job{IDs: []string{"x", "x"}}, nil }
	empty := counting(0, &asked)
	for name, c := range map[string]struct {
		targets []Target
		tasks   []Task
		set     map[string]string
		want    string
	}{
		"no model":       {nil, []Task{empty}, nil, "needs a model"},
		"no task":        {good, nil, nil, "needs a model and a task"},
		"same name":      {append(good, good...), []Task{counting(3, &asked)}, nil, "two models have the name a"},
		"looking inside": {good, []Task{inside}, nil, "looks into the model"},
		"same ids":       {good, []Task{twice}, nil, `two samples have the id "x"`},
		"empty set":      {good, []Task{empty}, nil, "counting: there is nothing to ask"},
		"unknown setting": {good, []Task{counting(3, &asked)}, map[string]string{"counting.scal": "1"},
			`"counting.scal" is unknown; the tasks asked for have counting.scale`},
		"bad setting": {good, []Task{counting(3, &asked)}, map[string]string{"counting.scale": "x"},
			"counting: scale=x: want a number"},
	} {
		_, err := Run(context.Background(), c.targets, c.tasks, Options{Set: c.set})
		var input *InputError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &input) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked %v before refusing", asked)
	}
}

// Settings that With fixed are the task's, unless the user says otherwise; each is a question of its own.
func TestWith(t *testing.T) {
	var asked []int
	task := counting(4, &asked)
	tasks := []Task{task, task.With(map[string]string{"scale": "3"})}
	ev, err := Run(context.Background(), []Target{target("a", "", &knower{})}, tasks, Options{Shots: -1})
	if err != nil {
		t.Fatal(err)
	}
	q := ev.Questions()
	if len(q) != 2 || q[0].Metrics[0].Value != 0.5 || q[1].Metrics[0].Value != 1.5 {
		t.Errorf("%d questions: %+v", len(q), q)
	}
	ev, err = Run(context.Background(), []Target{target("a", "", &knower{})}, tasks[1:],
		Options{Shots: -1, Set: map[string]string{"counting.scale": "5"}})
	if err != nil || ev.Models[0].Results[0].Metrics[0].Value != 2.5 {
		t.Errorf("%+v, %v", ev, err)
	}
}

// A limit counts a task's samples over all cells of its grid.
func TestGridLimit(t *testing.T) {
	p := &Plan{Options: &Options{Limit: 7}}
	got, err := p.Grid(3, 5, 64)
	if want := []Slot{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for limit, want := range map[int]int{2: 2, 0: 15} {
		p.Limit = limit
		if got, err := p.Grid(3, 5, 64); err != nil || len(got) != want {
			t.Errorf("limit %d: %d samples, %v, want %d", limit, len(got), err, want)
		}
	}
}

// More text than memory and patience have room for is the caller's mistake; a limit makes room.
func TestGridFits(t *testing.T) {
	p := &Plan{Options: &Options{}}
	_, err := p.Grid(5, mostWhole, 4096)
	var in *InputError
	if !errors.As(err, &in) || !in.Usage || !strings.Contains(err.Error(), "5242880 samples of up to 4096 tokens") {
		t.Errorf("%v", err)
	}
	p.Limit = 10
	if got, err := p.Grid(5, mostWhole, 4096); err != nil || len(got) != 10 {
		t.Errorf("%d samples, %v", len(got), err)
	}
}

// A stand-in never bears the name of the set's own task.
func TestStandInName(t *testing.T) {
	var asked []int
	task := counting(4, &asked)
	inner := task.Prepare
	task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
		j, err := inner(ctx, p)
		j.Config["source"] = StandIn
		return j, err
	}
	dir := t.TempDir()
	ev, err := Run(context.Background(), []Target{target("a", "", &knower{})}, []Task{task}, Options{Output: dir})
	if err != nil {
		t.Fatal(err)
	}
	if r := ev.Models[0].Results[0]; r.Task != "standin_counting" || r.Kind != "counting" || !r.StandIn() {
		t.Errorf("%+v", r)
	}
	if text := storeText(t, dir); strings.Contains(text, `"task":"counting"`) {
		t.Errorf("the store has a stand-in under the set's name: %s", text)
	}
	var j bytes.Buffer
	if err := ev.JSON(&j); err != nil {
		t.Fatal(err)
	}
	var back Evaluation
	if err := json.Unmarshal(j.Bytes(), &back); err != nil || !back.Models[0].Results[0].StandIn() {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
