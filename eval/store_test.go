package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func runInto(t *testing.T, dir string, m Target, task Task) *Evaluation {
	t.Helper()
	ev, err := Run(context.Background(), []Target{m}, []Task{task}, Options{Seed: 1, Shots: -1, Output: dir})
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// int8, then fp32 into one store: both are there, each with its own value.
func TestPrecisionsStandBeside(t *testing.T) {
	dir := t.TempDir()
	var asked []int
	for precision, scale := range map[string]string{"int8": "3", "fp32": "1"} {
		m := target("a", "k", &knower{})
		m.Precision = precision
		task := counting(10, &asked)
		// The value that another precision gives, under the same settings: Finish sees no difference in the question.
		prepare := task.Prepare
		task.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
			j, err := prepare(ctx, p)
			ask := j.Ask
			j.Ask = func(ctx context.Context, lm LM, which []int) ([]Answer, error) {
				out, err := ask(ctx, lm, which)
				for i := range out {
					out[i].Values["acc"] *= float64(scale[0] - '0')
				}
				return out, err
			}
			return j, err
		}
		runInto(t, dir, m, task)
	}
	s, err := ReadStores(dir)
	if err != nil {
		t.Fatal(err)
	}
	ev := Assemble(s.Cells())
	got := map[string]float64{}
	for _, m := range ev.Models {
		got[m.Name] = m.Results[0].Metrics[0].Value
	}
	if len(got) != 2 || got["a int8"] != 1.5 || got["a fp32"] != 0.5 {
		t.Errorf("%v", got)
	}
	if len(ev.Paired) == 0 || ev.Paired[0].N != 10 {
		t.Errorf("the two are not paired: %+v", ev.Paired)
	}
}

// A cell's key knows everything that can change a number, and no label.
func TestKeyKnowsWhatChangesNumbers(t *testing.T) {
	key := func(change func(m *Model, o *Options)) string {
		m, o := target("a", "k", &knower{}), Options{Seed: 1, Shots: -1}
		change(&m.Model, &o)
		task := counting(10, new([]int))
		o.Measure([]Target{m})
		j, err := o.Prepare(t.Context(), &task)
		if err != nil {
			t.Fatal(err)
		}
		k, _, err := o.head(&m, j)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	plain := key(func(*Model, *Options) {})
	for name, change := range map[string]func(m *Model, o *Options){
		"hash":      func(m *Model, _ *Options) { m.Hash = "l" },
		"context":   func(m *Model, _ *Options) { m.Context++ },
		"precision": func(m *Model, _ *Options) { m.Precision = "int8" },
		"device":    func(m *Model, _ *Options) { m.Device = "cuda" },
		"seed":      func(_ *Model, o *Options) { o.Seed++ },
		"shots":     func(_ *Model, o *Options) { o.Shots = 3 },
		"limit":     func(_ *Model, o *Options) { o.Limit = 3 },
		"setting":   func(_ *Model, o *Options) { o.Set = map[string]string{"counting.scale": "2"} },
		"judge":     func(_ *Model, o *Options) { o.JudgeName = "j" },
		"replicate": func(_ *Model, o *Options) { o.Replicate = "again" },
	} {
		if key(change) == plain {
			t.Errorf("another %s is the same cell", name)
		}
	}
	for name, change := range map[string]func(m *Model, o *Options){
		"name":    func(m *Model, _ *Options) { m.Name = "b" },
		"group":   func(m *Model, _ *Options) { m.Group = "b" },
		"threads": func(m *Model, _ *Options) { m.Threads = 7 },
		"commit":  func(_ *Model, o *Options) { o.Commit, o.Machine = "c", "m" },
		"logging": func(_ *Model, o *Options) { o.LogSamples = true },
	} {
		if key(change) != plain {
			t.Errorf("another %s is another cell", name)
		}
	}
}

// Tasks, settings and models add up in any order, from several writers at once; nothing is lost and nothing
// overwritten.
func TestStoreAccumulates(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for _, model := range []string{"a", "b", "c"} {
		for _, scale := range []string{"1", "2"} {
			all.Go(func() {
				var asked []int
				task := counting(10, &asked).With(map[string]string{"scale": scale})
				runInto(t, dir, target(model, model, &knower{}), task)
			})
		}
	}
	all.Wait()
	s, err := ReadStores(dir, filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	ev := Assemble(s.Cells())
	if len(ev.Models) != 3 || len(ev.Questions()) != 2 || len(s.Warnings) > 0 {
		t.Fatalf("%d models, %d questions, %v", len(ev.Models), len(ev.Questions()), s.Warnings)
	}
	for _, m := range ev.Models {
		for _, r := range m.Results {
			if len(r.Answers) != 10 || r.Metrics[0].N != 10 {
				t.Errorf("%s: %+v", m.Name, r)
			}
		}
	}
	if len(ev.Paired) != 3*2 { // any two models, on each question
		t.Errorf("%d comparisons", len(ev.Paired))
	}
}

// A changed byte is noticed: its row is left out, named, and asked again; all other rows stay.
func TestStoreNoticesDamage(t *testing.T) {
	dir := t.TempDir()
	var asked []int
	task := counting(10, &asked)
	runInto(t, dir, target("a", "k", &knower{}), task)
	names, _ := filepath.Glob(filepath.Join(dir, storePattern))
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte(`"id":"q3","values":{"acc":1`)) + len(`"id":"q3","values":{"acc":`)
	b[at] = '9'
	if err := os.WriteFile(names[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	asked = nil
	ev := runInto(t, dir, target("a", "k", &knower{}), task)
	if fmt.Sprint(asked) != "[3]" || ev.Models[0].Results[0].Metrics[0].Value != 0.5 {
		t.Errorf("asked %v, %+v", asked, ev.Models[0].Results[0].Metrics[0])
	}
	if len(ev.Warnings) != 1 || !strings.Contains(ev.Warnings[0], "line 5: the checksum does not match") {
		t.Errorf("%v", ev.Warnings)
	}
}

// Wherever a writer is killed, the store holds what was written whole, and another call completes it to the same rows.
func TestStoreSurvivesAnyCut(t *testing.T) {
	whole := t.TempDir()
	var asked []int
	task := counting(10, &asked)
	want := runInto(t, whole, target("a", "k", &knower{}), task)
	names, _ := filepath.Glob(filepath.Join(whole, storePattern))
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= len(b); cut += 97 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(names[0])), b[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		got := runInto(t, dir, target("a", "k", &knower{}), task)
		a, b := got.Models[0].Results[0], want.Models[0].Results[0]
		if len(got.Warnings) > 0 || a.Metrics[0].Mean != b.Metrics[0].Mean || len(a.Answers) != 10 {
			t.Errorf("cut at %d: %v, %+v", cut, got.Warnings, a)
		}
	}
}

// What lies in a store's place and is not a file is an error at once: a pipe would never end.
func TestStoreOfNoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rows-x.jsonl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStores(dir); !errors.Is(err, errNotPlain) {
		t.Errorf("%v", err)
	}
	p := &Plan{Options: &Options{Data: dir}, files: map[string]string{}}
	if err := p.Uses(t.Context(), os.DevNull); !errors.Is(err, errNotPlain) {
		t.Errorf("%v", err)
	}
}

func TestSeal(t *testing.T) {
	line := sealed([]byte(`{"cell":"x"}`))
	if body, ok := checked(line); !ok || string(body) != `{"cell":"x"}` {
		t.Errorf("%s: %s, %v", line, body, ok)
	}
	for i := range line[:len(line)-1] {
		bad := bytes.Clone(line)
		bad[i] ^= 1
		if _, ok := checked(bad); ok {
			t.Errorf("a change of byte %d of %s went unnoticed", i, line)
		}
	}
}

// Two processes may answer one question: the first answer counts, once, and takes its document from the second.
func TestAnswerGivenTwice(t *testing.T) {
	s := &Store{cells: map[string]*Cell{}}
	answer := func(value float64, doc map[string]any) *Answer {
		return &Answer{ID: "q1", Values: map[string]float64{"acc": value}, Doc: doc}
	}
	s.take(&row{Cell: "c", Answer: answer(1, nil), Seconds: 2})
	s.take(&row{Cell: "c", Answer: answer(0, map[string]any{"prompt": "p"}), Seconds: 3, Logged: true})
	c := s.cells["c"]
	if a := c.Answers["q1"]; len(c.Answers) != 1 || a.Values["acc"] != 1 || a.Doc["prompt"] != "p" || c.Seconds != 2 {
		t.Errorf("%+v after %v s", c.Answers, c.Seconds)
	}
}

// The key by which a stored cell is found: the first 12 bytes of the SHA-256 of a JSON list, as later versions must
// compute it again. Question, model, context, precision, device, threads and machine, the last two of timed tasks only.
func TestKeyIsStable(t *testing.T) {
	sum := func(list ...any) string {
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.Sum256(b)
		return hex.EncodeToString(h[:12])
	}
	for _, timed := range []bool{false, true} {
		task := counting(2, new([]int))
		task.Timed = timed
		m := target("a", "hash", &knower{})
		m.Threads = 3
		o := Options{Seed: 5, Shots: -1, Machine: "box", Replicate: "r", JudgeName: "j"}
		o.Measure([]Target{m})
		j, err := o.Prepare(t.Context(), &task)
		if err != nil {
			t.Fatal(err)
		}
		key, head, err := o.head(&m, j)
		question := sum("counting", 3, 0, 5, 64, "j", map[string]any{"source": "none", "scale": 1.0}, nil,
			[]string{"q0", "q1"}, nil, "r")
		threads, machine := 0, ""
		if timed {
			threads, machine = 3, "box"
		}
		if want := sum(question, "hash", 64, "fp32", "cpu", threads, machine); err != nil ||
			head.Question != question || key != want {
			t.Errorf("timed %v: key %s of question %s, want %s of %s; %v", timed, key, head.Question, want,
				question, err)
		}
	}
}
