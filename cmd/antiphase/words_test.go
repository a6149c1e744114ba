package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/bench"
	"antiphase/experiment"
	"antiphase/internal/vfs/vfstest"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/train"
)

// same fails unless err is there exactly where want says, and the values agree.
func same(t *testing.T, in string, got, want any, err error, bad bool) {
	t.Helper()
	if (err != nil) != bad || !bad && !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %v, %v; want %v, refused %v", in, got, err, want, bad)
	}
}

// What flags of a form of their own mean, on both sides of what they may be.
func TestWordsOfFlags(t *testing.T) {
	for in, want := range map[string][]uint64{"1": {1}, "3": {1, 2, 3}, "11,12": {11, 12}, "7,": {7}, "0,5": {0, 5},
		" 3, 4": {3, 4}, "0": nil, "1001": nil, "-1": nil, "a": nil, "1,,2": nil, "": nil, "1,-2": nil} {
		got, err := parseSeeds(in)
		same(t, "--seeds "+in, got, want, err, want == nil)
	}
	if list, err := parseSeeds("1000"); err != nil || len(list) != 1000 {
		t.Errorf("1000 seeds: %d, %v", len(list), err)
	}
	for in, want := range map[string]int64{"500MB": 500e6, "5GB": 5e9, "1GiB": 1 << 30, "2 MiB": 2 << 20, "3KiB": 3072,
		"4KB": 4000, "7B": 7, "7": 7, "1": 1, "1B": 1, "0.001KB": 1, "0.0009KB": -1, "1.0001e18": -1, "5TB": -1,
		"5gb": -1, "": -1, "1.5GB": 1.5e9, "1e18": 1e18,
		"0": -1, "0.5": -1, "-1GB": -1, "GB": -1, "x": -1, "2e18": -1, "NaN": -1, "InfGB": -1} {
		got, err := size(in)
		same(t, "size "+in, got, want, err, want < 0)
	}
	for in, want := range map[string]*bench.Shape{"1x2x3": {Rows: 1, Out: 2, In: 3}, "0x2x3": nil, "1x2": nil,
		"1x2x3x4": nil, "1x2x3y": nil, " 1x2x3": nil, "axbxc": nil, "1x2x-3": nil} {
		got, err := parseShapes([]string{in})
		if want == nil {
			same(t, "--shape "+in, got, nil, err, true)
		} else {
			same(t, "--shape "+in, got, []bench.Shape{*want}, err, false)
		}
	}
}

// What --parallel means for a number of processes; 0 is any number.
func TestWordsOfParallel(t *testing.T) {
	for _, x := range []struct {
		text  string
		world int
		want  train.Layout
		bad   bool
	}{
		{"dp=4", 4, train.Layout{Data: 4, Tensor: 1}, false}, {"tp=2", 4, train.Layout{Data: 2, Tensor: 2}, false},
		{"dp=2,tp=2,zero=1", 4, train.Layout{Data: 2, Tensor: 2, Shard: true}, false},
		{"zero=1", 3, train.Layout{Data: 3, Tensor: 1, Shard: true}, false},
		{"zero=0", 3, train.Layout{Data: 3, Tensor: 1}, false},
		{"tp=2,zero=1", 2, train.Layout{Data: 1, Tensor: 2}, false},
		{"dp=8", 0, train.Layout{Data: 8, Tensor: 1}, false}, {"tp=4", 0, train.Layout{Data: 1, Tensor: 4}, false},
		{"dp=3", 4, train.Layout{}, true}, {"tp=3", 4, train.Layout{}, true},
		{"dp=2,dp=2", 4, train.Layout{}, true}, {"dp=0", 4, train.Layout{}, true}, {"dp=-1", 4, train.Layout{}, true},
		{"zero=2", 4, train.Layout{}, true}, {"zero=-1", 4, train.Layout{}, true},
		{"pp=2", 4, train.Layout{}, true}, {"dp", 4, train.Layout{}, true}, {"", 4, train.Layout{}, true},
	} {
		got, err := parseLayout(x.text, x.world)
		same(t, "--parallel "+x.text, got, x.want, err, x.bad)
	}
}

// What --model means: a name, a folder or a server, and its model.
func TestWordsOfModels(t *testing.T) {
	for in, want := range map[string][2]string{"runs/a": {"a", "runs/a"}, "runs/a/": {"a", "runs/a/"},
		"n=runs/a": {"n", "runs/a"}, "a/b=c": {"b=c", "a/b=c"}, "http://h/v1#m": {"m", "http://h/v1#m"},
		"x=http://h#m": {"x", "http://h#m"}} {
		if name, path := modelName(in); name != want[0] || path != want[1] {
			t.Errorf("--model %s: %q, %q", in, name, path)
		}
	}
	for in, want := range map[string]string{"http://h/v1#m": "http://h/v1 m false",
		"https://h#m#chat": "https://h m true", "runs/a": "-", "http://h": "", "http://h#": "",
		"http://h#m#other": ""} {
		e, ok, err := endpoint(in)
		got := "-"
		if ok {
			got = fmt.Sprint(e.URL, " ", e.Model, " ", e.Chat)
		}
		same(t, in, got, want, err, want == "")
	}
}

// What --set means for tasks, and which words of a command are kept.
func TestWordsOfSettings(t *testing.T) {
	got, err := readSettings([]string{"a.b=c=d", "x.y="})
	same(t, "--set", got, map[string]string{"a.b": "c=d", "x.y": ""}, err, false)
	for _, bad := range []string{"a.b", "b=c", "="} {
		if _, err := readSettings([]string{bad}); err == nil {
			t.Errorf("--set %q passes", bad)
		}
	}
	if got, want := commandLine([]string{"compare", "--have", "x", "--have=y", "--lr", "1,2", "a b"}),
		"antiphase compare --lr 1,2 "+experiment.ShellWord("a b"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// How numbers and errors are printed.
func TestWordsOfOutput(t *testing.T) {
	for in, want := range map[float64]string{0: "0.0s", 9.94: "9.9s", 10: "0m10s", 59.9: "0m59s", 60: "1m00s",
		3599: "59m59s", 3600: "1h00m", 3661: "1h01m", 90000: "25h00m",
		172800: "48h00m", 172801: "2.0 days", 820800: "9.5 days", 864000: "10 days", 469539240: "5434 days",
		1e15: "11574074074 days"} {
		if got := seconds(in); got != want {
			t.Errorf("%g s is %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a": "a", "a\n  b\n\nc": "a; b; c", "list:\n- x": "list: - x", "\n": ""} {
		if got := oneLine(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	x := []float32{1, 5, 3, 5, float32(math.Inf(-1)), 4}
	for n, want := range map[int][]int{1: {1}, 2: {1, 3}, 4: {1, 3, 5, 2}, 9: {1, 3, 5, 2, 0, 4}} {
		if got := top(x, n); !slices.Equal(got, want) {
			t.Errorf("the %d largest are %v, want %v", n, got, want)
		}
	}
}

// A run that goes on from another has a tenth of its rate at least, and more where it ended higher; its length is the
// run's, within the model's context.
func TestGoingOn(t *testing.T) {
	c, err := model.Config{Arch: "diff", Vocab: 50, Context: 64, Layers: 1, Dim: 8, Heads: 1, HeadDim: 4}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		final    float64
		step     int
		seq, ctx int
		lr       float64
		want     int
	}{{0, 5, 32, 64, 0.2, 32}, {0.05, 5, 32, 64, 0.2, 32}, {0.5, 5, 128, 64, 1, 64}, {1, 5, 64, 64, 2, 64},
		{0.5, 0, 32, 64, 1e-4, 64}, {0.5, 0, 32, 4096, 1e-4, 2048}} {
		c.Context = x.ctx
		s := &stored{Config: c, Saved: &train.Saved{State: &train.State{Step: x.step},
			Recipe: recipe.Recipe{Optim: optim.Config{LR: 2, FinalLR: x.final}, Train: recipe.Train{SeqLen: x.seq}}}}
		if lr, seq := goingOn(s); !(math.Abs(lr/x.lr-1) <= 1e-9) || seq != x.want {
			t.Errorf("%+v: %g, %d", x, lr, seq)
		}
	}
	if got := fromName("runs/a/"); got != "a-on" {
		t.Error(got)
	}
}

// endless gives n letters.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.n)
	for i := range b[:n] {
		b[i] = 'a'
	}
	e.n -= n
	return n, nil
}

// A prompt of the most that is allowed is read whole, one byte more is refused: nothing is cut.
func TestTextIsNotCut(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MiB; -short leaves it out")
	}
	for n, good := range map[int]bool{0: true, 5: true, maxPrompt: true, maxPrompt + 1: false} {
		text, err := readText(&endless{n}, "x")
		if (err == nil) != good || good && len(text) != n || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%d bytes: %d, %v", n, len(text), err)
		}
	}
	broken := errors.New("broken")
	if _, err := readText(io.MultiReader(bytes.NewReader([]byte("a")), failingReader{broken}),
		"x"); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// --fresh deletes what a speedrun wrote and nothing else: any other file or folder under one of its names stops it
// before anything is deleted.
func TestClearSpeedrun(t *testing.T) {
	spec := fmt.Sprintf(
		`{"format":%d,"name":%q,"sizes":["nano"],"archs":["diff"],"seeds":[1],"tune_seeds":0,"tasks":["lm"],"eval_seed":0}`,
		1, planPrefix+"short")
	for name, x := range map[string]struct {
		make func(dir string) error
		bad  bool
	}{
		"a speedrun":       {func(string) error { return nil }, false},
		"its runs":         {func(dir string) error { return put(dir, "runs/a/recipe.json") }, false},
		"a run that began": {func(dir string) error { return put(dir, "runs/a/LOCK") }, false},
		"a folder among runs": {func(dir string) error {
			return errors.Join(put(dir, "runs/a/recipe.json"),
				put(dir, "runs/b/thesis"))
		}, true},
		"a file among runs":  {func(dir string) error { return put(dir, "runs/thesis") }, true},
		"a file called runs": {func(dir string) error { return put(dir, "runs") }, true},
		"no experiment": {func(dir string) error { return os.Remove(filepath.Join(dir, "experiment.json")) },
			true},
		"another's experiment": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "experiment.json"),
				[]byte(strings.Replace(spec, planPrefix, "mine-", 1)), 0o644)
		}, true},
		"a link called report": {func(string) error { return nil }, true}, // made below
		"something beside it":  {func(dir string) error { return put(dir, "mine/notes") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "experiment.json"), []byte(spec), 0o644),
				put(dir, "rows.jsonl")); err != nil {
				t.Fatal(err)
			}
			if err := x.make(dir); err != nil {
				t.Fatal(err)
			}
			if name == "a link called report" {
				vfstest.Symlink(t, filepath.Join(t.TempDir(), "report"), filepath.Join(dir, "report.json"))
			}
			before := filesIn(t, dir)
			err := clearSpeedrun(dir)
			after := filesIn(t, dir)
			if (err != nil) != x.bad || x.bad && !slices.Equal(before, after) {
				t.Errorf("%v, left %q of %q", err, after, before)
			}
			if want := []string(nil); !x.bad && name == "something beside it" {
				want = []string{"mine", "mine/notes"}
				if !slices.Equal(after, want) {
					t.Errorf("left %q", after)
				}
			} else if !x.bad && len(after) != 0 {
				t.Errorf("left %q", after)
			}
		})
	}
}

func put(dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644))
}

func filesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
