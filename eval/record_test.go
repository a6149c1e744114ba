package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/device/ref"
)

// plainTask is a task of n questions with every field set; question i scores 1 if it is even.
func plainTask(n int) Task {
	return Task{Name: "t", Group: "g", Place: 7, Version: 3, Shots: 2, Beside: true,
		Measures: []Measure{{Name: "x", Better: Lower, Label: "an x"}}, Settings: []Setting{{Key: "k", Default: 4}},
		Prepare: func(context.Context, *Plan) (*Job, error) {
			j := &Job{Chunk: 1, Config: map[string]any{"source": "file"},
				Floors: Floors{"x": {"chance": 0.25}, "late": {"copy": 0.5}}}
			for i := range n {
				j.IDs = append(j.IDs, fmt.Sprint("q", i))
			}
			j.Ask = func(_ context.Context, _ LM, which []int) (out []Answer, _ error) {
				for _, w := range which {
					out = append(out, Answer{Values: map[string]float64{"x": float64(1 - w%2)},
						Doc: map[string]any{"w": w}})
				}
				return out, nil
			}
			j.Finish = func(r *Result) error {
				r.Add("late", "later", Higher, Mean{Value: 2, N: 1})
				return r.SetDetail("figure")
			}
			return j, nil
		}}
}

// A result and the head of its cell hold all that was asked, field by field; floors are also those of metrics that
// Finish adds.
func TestResultAndHead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	m := Model{Name: "m", Group: "of", Hash: "h", Context: 64, Precision: "fp32", Device: "cpu", Run: "run", Tokens: 9}
	opt := Options{Data: "sets", Seed: 5, Limit: 6, Shots: -1, Output: dir, Replicate: "again",
		Machine: "box", Commit: "c0"}
	ev, err := Run(t.Context(), []Target{{Model: m, LM: &knower{}}}, []Task{plainTask(4)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	r := ev.Models[0].Results[0]
	if len(r.Question) != 24 || r.Seconds <= 0 || len(r.Answers) != 4 {
		t.Errorf("%+v", r)
	}
	question, low, high := r.Question, 0.0, 0.0
	low, high = Wilson(2, 4)
	r.Question, r.Seconds, r.Answers = "", 0, nil
	x := Metric{Name: "x", Label: "an x", Mean: Mean{Value: 0.5, StdErr: r.Metrics[0].StdErr, N: 4}, Low: low,
		High: high, Better: Lower, Floors: map[string]float64{"chance": 0.25}}
	late := Metric{Name: "late", Label: "later", Mean: Mean{Value: 2, N: 1}, Better: Higher,
		Floors: map[string]float64{"copy": 0.5}}
	want := Result{Task: "t", Kind: "t", Group: "g", Beside: true, Place: 7, Version: 3, Shots: 2, Context: 64,
		Limit: 6, N: 4, Metrics: []Metric{x, late},
		Config: map[string]any{"source": "file", "k": 4}, Detail: []byte(`"figure"`), Seed: 5, Replicate: "again"}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("result\n%+v\nwant\n%+v", r, want)
	}
	s, err := ReadStores(dir)
	if err != nil || len(s.Cells()) != 1 {
		t.Fatalf("%d cells, %v", len(s.Cells()), err)
	}
	h := s.Cells()[0].Head
	if now := time.Now(); h.Time.After(now) || now.Sub(h.Time) > time.Minute {
		t.Errorf("written at %v", h.Time)
	}
	h.Time = time.Time{}
	head := Head{Model: m, Question: question, Task: "t", Version: 3, Shots: 2,
		Config: map[string]any{"source": "file", "k": 4.0}, Data: "sets", Seed: 5, Limit: 6, Samples: 4,
		Replicate: "again", Machine: "box", Commit: "c0"}
	if !reflect.DeepEqual(h, head) {
		t.Errorf("head\n%+v\nwant\n%+v", h, head)
	}
}

// The time of a result is what asking took, every chunk once; progress counts what the store had already.
func TestTimeAndProgress(t *testing.T) {
	dir := t.TempDir()
	var seen []Progress
	opt := Options{Shots: -1, Output: dir, Progress: func(p Progress) { seen = append(seen, p) }}
	begin := time.Now()
	ev, err := Run(t.Context(), []Target{target("m", "h", &knower{})}, []Task{plainTask(400)}, opt)
	if took := time.Since(begin).Seconds(); err != nil || ev.Models[0].Results[0].Seconds > took {
		t.Errorf("asking took %g s of %g, %v", ev.Models[0].Results[0].Seconds, took, err)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Elapsed <= seen[i-1].Elapsed || seen[i].Done != i {
			t.Fatalf("progress %+v after %+v", seen[i], seen[i-1])
		}
	}
	var asked []int
	if _, err := Run(t.Context(), []Target{target("n", "n", &failing{after: 1})}, []Task{counting(10, &asked)},
		opt); err == nil {
		t.Fatal("it does not fail")
	}
	seen = nil
	if _, err := Run(t.Context(), []Target{target("n", "n", &knower{})}, []Task{counting(10, &asked)},
		opt); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[0].Done != 4 || seen[1].Done != 8 || seen[0].Total != 10 {
		t.Errorf("%+v", seen)
	}
}

// A model's new labels count in a store from the next call on, without asking again; a cell whose head is damaged is
// not shown until a call writes it again.
func TestHeadsAreRenewed(t *testing.T) {
	dir := t.TempDir()
	var asked []int
	m := target("old", "h", &knower{})
	runInto(t, dir, m, counting(6, &asked))
	m.Name, m.Group, m.Run = "new", "group", "run"
	asked = nil
	runInto(t, dir, m, counting(6, &asked))
	shown := func() string {
		s, err := ReadStores(dir)
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprint(s.Unfinished(), " unfinished")
		for _, x := range Assemble(s.Cells()).Models {
			out += fmt.Sprintf(", %s of %s in %s: %d", x.Name, x.Group, x.Run, len(x.Results[0].Answers))
		}
		return out
	}
	if got := shown(); got != "0 unfinished, new of group in run: 6" || len(asked) != 0 {
		t.Errorf("%s; asked %v", got, asked)
	}
	names, _ := filepath.Glob(filepath.Join(dir, storePattern))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(b), `"head":`, `"hEad":`)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(); got != "1 unfinished" {
		t.Errorf("without heads: %s", got)
	}
	runInto(t, dir, m, counting(6, &asked))
	if got := shown(); got != "0 unfinished, new of group in run: 6" || len(asked) != 0 {
		t.Errorf("%s; asked %v", got, asked)
	}
	if err := (&Store{}).readFile(filepath.Join(dir, "rows-gone.jsonl")); err != nil {
		t.Errorf("a file that another process took away: %v", err)
	}
}

// A task that one model cannot be asked is asked of the other, by Run and by Share; an error of Finish is the run's.
func TestSkippedForOne(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	scores := taskOf("scores", false, func(ctx context.Context, lm LM) error {
		_, err := lm.Loglikelihood(ctx, []Continuation{{"a", "b"}})
		return err
	})
	looks := taskOf("looks", true, func(context.Context, LM) error { return nil })
	never := taskOf("never", false, func(context.Context, LM) error { return fmt.Errorf("%w: never", ErrCannot) })
	targets := []Target{target("stub", "a", &knower{}), {Model: Model{Name: "ours", Hash: "b", Context: 64}, LM: s}}
	opt := Options{Output: t.TempDir()}
	for rank := range 2 {
		if err := Share(t.Context(), targets, []Task{looks, never, scores}, opt, rank, 2); err != nil {
			t.Fatal(err)
		}
		if s.shared != nil {
			t.Error("the cache is kept after a share")
		}
	}
	ev, err := Run(t.Context(), targets, []Task{looks, never, scores}, opt)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range ev.Models {
		for _, r := range m.Results {
			got = append(got, m.Name+" "+r.Task)
		}
	}
	for _, x := range ev.Skipped {
		got = append(got, "not "+x.Model+" "+x.Task)
	}
	if want := "stub scores|ours looks|ours scores|not stub looks|not stub never|not ours never"; strings.Join(got,
		"|") != want {
		t.Errorf("%s, want %s", strings.Join(got, "|"), want)
	}
	if _, err := Run(t.Context(), targets, []Task{never}, Options{}); err == nil ||
		!strings.HasPrefix(err.Error(), "stub: never: cannot be asked this: never") {
		t.Errorf("%v", err)
	}
	bad := plainTask(2)
	prepare := bad.Prepare
	bad.Prepare = func(ctx context.Context, p *Plan) (*Job, error) {
		j, err := prepare(ctx, p)
		j.Finish = func(*Result) error { return errors.New("no figure") }
		return j, err
	}
	if _, err := Run(t.Context(), targets[:1], []Task{bad}, Options{}); err == nil ||
		err.Error() != "stub: t: no figure" {
		t.Errorf("%v", err)
	}
}

// What is the caller's mistake and what a file's: the program's exit code follows it.
func TestWhoseMistake(t *testing.T) {
	failing := func(err error) Task {
		return Task{Name: "t", Prepare: func(context.Context, *Plan) (*Job, error) { return nil, err }}
	}
	none := Task{Name: "t", Prepare: func(context.Context, *Plan) (*Job, error) { return &Job{}, nil }}
	for _, c := range []struct {
		task  Task
		set   map[string]string
		usage bool
	}{{failing(os.ErrNotExist), nil, false}, {failing(BadSetting("too long")), nil, true},
		{failing(fmt.Errorf("inner: %w", BadSetting("x"))), nil, true}, {none, nil, false},
		{none, map[string]string{"t.x": "1"}, true}, {failing(&InputError{os.ErrInvalid, false}), nil, false}} {
		_, err := Run(t.Context(), []Target{target("m", "h", &knower{})}, []Task{c.task}, Options{Set: c.set})
		var in *InputError
		if !errors.As(err, &in) || in.Usage != c.usage {
			t.Errorf("%v is the caller's: %v", err, in != nil && in.Usage)
		}
	}
}

// The tokens of a text, each once, with their ids and their positions in the window that scored them.
func TestLossesNameTheirTokens(t *testing.T) {
	const n = 16
	s := subject(t, ref.New(), "diff", n)
	texts := []string{strings.Repeat("abcdefg ", 5), "x", "", "exactly sixteen."}
	got, err := s.Losses(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		var ids []int32
		var at, want []int
		for k, x := range got[i] {
			ids, at = append(ids, x.ID), append(at, x.Position)
			p := k%n + 1
			if last := len(text) - n; k >= len(text)/n*n && last > 0 { // the last window is full: it begins earlier
				p = k - last + 1
			}
			want = append(want, p)
		}
		if !slices.Equal(ids, s.Tokenizer.EncodeOrdinary(nil, text)) || !slices.Equal(at, want) {
			t.Errorf("%q: %v at %v, want positions %v", text, ids, at, want)
		}
	}
}
