package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/eval/task"
	"antiphase/experiment"
	"antiphase/layer"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
)

// decoded is the JSON that a command prints, which must succeed.
func decoded[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	code, out, errs := ran(t, args...)
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
		t.Fatalf("%q: exit %d, %v: %s%s", args, code, err, out, errs)
	}
	return v
}

// What train prints as JSON is what its metrics say, also of a run that had nothing left to do.
func TestTrainedResult(t *testing.T) {
	type result struct {
		Dir     string
		Steps   int
		Loss    float64
		Valid   float64 `json:"valid_loss"`
		Resumed int     `json:"resumed_from"`
	}
	t.Chdir(t.TempDir())
	for _, x := range []struct{ steps, from int }{{2, 0}, {5, 2}, {5, 5}} {
		got := decoded[result](t, "train", "--size", "nano", "--steps", fmt.Sprint(x.steps), "--dir", "r/un", "--json",
			"-q", "--device", "cpu")
		rows, err := metrics.Read(filepath.Join("r/un", metrics.FileName), func(s string) { t.Error(s) })
		if err != nil || len(rows) != x.steps {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		last := rows[len(rows)-1]
		if got.Dir != "r/un" || got.Steps != x.steps || got.Resumed != x.from ||
			!(math.Abs(got.Loss-last.Loss) <= 1e-5) || !(math.Abs(got.Valid-last.Valid) <= 1e-5) {
			t.Errorf("%+v: %+v, the last row %+v", x, got, last)
		}
	}
}

// Every row of an ablation describes its own model, and its losses are those of the task lm on the held-out text that
// all share.
func TestAblationRows(t *testing.T) {
	t.Chdir(t.TempDir())
	got := decoded[report.Ablation](t, "ablation", "--size", "nano", "--steps", "2", "--seed", "3", "--set",
		"data.held_out=0.4", "--dir", "ab", "--json", "-q", "--device", "cpu", "--precision", "fp32")
	stored := report.Ablation{}
	if b, err := os.ReadFile("ab/ablation.json"); err != nil || json.Unmarshal(b, &stored) != nil ||
		fmt.Sprint(stored) == "" || len(stored.Rows) != len(got.Rows) {
		t.Fatal(err)
	}
	if got.Arch != "diff" || got.Size != "nano" || got.Steps != 2 || got.Tokens != 2*4*32 {
		t.Errorf("%+v", got)
	}
	want := []struct {
		name, arch     string
		heads, headDim int
		norm           bool
	}{{"base", "transformer", 4, 8, false}, {"base-wide", "transformer", 2, 16, false},
		{"base-wide-norm", "transformer", 2, 16, true}, {"diff", "diff", 2, 8, true},
		{"diff-no-norm", "diff", 2, 8, false}, {"diff-lambda-0.8", "diff", 2, 8, true},
		{"diff-lambda-0.5", "diff", 2, 8, true}}
	for i, r := range got.Rows {
		w := want[i]
		if r.Name != w.name || r.Arch != w.arch || r.Heads != w.heads || r.HeadDim != w.headDim ||
			r.HeadNorm != w.norm || r.Doc == "" || r.Steady == nil || stored.Rows[i].Loss != r.Loss {
			t.Errorf("%+v, want %+v", r, w)
		}
		var c recipe.Recipe
		if err := c.Read(filepath.Join("ab", r.Name, "recipe.json")); err != nil ||
			model.Table(c.Model).Count() != r.Parameters || c.Train.Seed != 3 {
			t.Errorf("%s: %d parameters, seed %d (%v)", r.Name, r.Parameters, c.Train.Seed, err)
		}
		if i%3 > 0 { // two of them suffice
			continue
		}
		res := decoded[struct{ Results map[string]map[string]any }](t, "eval", "-m", "ab/"+r.Name, "-t", "lm", "--set",
			"lm.text=set:ab/data", "--set", "lm.pieces=256", "--set", "lm.length=32", "--seed", "1", "--json", "-q",
			"--device", "cpu", "--precision", "fp32")
		for _, m := range res.Results {
			for key, mean := range map[string]eval.Mean{"loss,none": r.Loss, "ar_hit,none": r.ARHit,
				"others,none": r.Others} {
				if v, ok := m[key].(float64); mean.N > 0 && (!ok || !(math.Abs(v-mean.Value) <= 1e-9)) {
					t.Errorf("%s: %s is %g, eval says %v", r.Name, key, mean.Value, m[key])
				}
			}
		}
		if len(res.Results) != 1 || r.Loss.N == 0 {
			t.Errorf("%s: %d results, %+v", r.Name, len(res.Results), r.Loss)
		}
	}
}

// The line of an evaluation at work, and what was left out.
func TestEvalLines(t *testing.T) {
	for want, p := range map[string]eval.Progress{
		"m: t 0/8":        {Model: "m", Task: "t", Total: 8, Elapsed: time.Minute},
		"m: t 3/8, 1m15s": {Model: "m", Task: "t", Done: 3, Total: 8, Elapsed: 75 * time.Second},
		"m: t 8/8":        {Model: "m", Task: "t", Done: 8, Total: 8, Elapsed: time.Second},
	} {
		if got := progress(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var out, errs bytes.Buffer
	f := &evalFlags{}
	ev := &eval.Evaluation{Skipped: []eval.Skip{{Model: "m", Task: "t", Why: "it is shy"},
		{Model: "n", Task: "u", Why: "no"}}}
	if err := f.present(&app{out: &output{Writer: &out}, err: &errs, color: "never"}, ev); err != nil ||
		errs.String() != "m: skipped t: it is shy\nn: skipped u: no\n" {
		t.Errorf("%v: %q", err, errs.String())
	}
}

// Listings for people have a line for every recipe, task, setting and preset, with the values of the listing for
// programs.
func TestListingLines(t *testing.T) {
	_, out, _ := ran(t, "recipes")
	lines := fields(out)
	if want := 1 + len(recipe.Sizes())*len(layer.Archs()); len(lines) != want ||
		lines[0] != "SIZE ARCH PARAMETERS LAYERS DIM HEADS HEAD DIM FFN" ||
		!slices.ContainsFunc(lines, func(s string) bool {
			return strings.HasPrefix(s,
				"nano diff 33.66k 2 32 2 8 88 ")
		}) {
		t.Errorf("%d lines, want %d: %q", len(lines), want, lines[:3])
	}
	_, out, _ = ran(t, "recipes", "--keys")
	if lines = fields(out); lines[0] != "KEY TINY DIFF MEANING" ||
		!slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, "train.steps 2000 ") }) {
		t.Errorf("%q", lines[:2])
	}
	t.Setenv("COLUMNS", "1000")
	_, out, _ = ran(t, "eval", "ls")
	tasks, settings, _ := strings.Cut(out, "\nSETTING")
	if got := fields(tasks); len(got) != 1+len(task.All()) {
		t.Errorf("%d tasks", len(got)-1)
	}
	want := map[string]string{}
	for i, x := range task.All() {
		var measures []string
		for _, m := range x.Measures {
			measures = append(measures, m.Name)
		}
		line := strings.Join(strings.Fields(fmt.Sprint(x.Name, " ", x.Group, " ", x.Version, " ", max(x.Shots, 0), " ",
			strings.Join(measures, " "), " ", x.Doc)), " ")
		if got := fields(tasks)[i+1]; got != line {
			t.Errorf("%q, want %q", got, line)
		}
		for _, s := range x.Settings {
			key := x.Name
			if x.Group != "" {
				key = x.Group
			}
			if key += "." + s.Key; want[key] == "" {
				want[key] = strings.Join(strings.Fields(fmt.Sprint(key, " ", s.Default, " ", s.Doc)), " ")
			}
		}
	}
	for _, line := range fields(settings)[1:] {
		key, _, _ := strings.Cut(line, " ")
		if want[key] != line {
			t.Errorf("%q, want %q", line, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// Presets have their tasks, or the command that makes them.
func TestPresetLines(t *testing.T) {
	type row struct {
		Name, Doc, Command string
		Tasks              []string
	}
	list := decoded[[]row](t, "eval", "presets", "--json")
	t.Setenv("COLUMNS", "1000") // a line each
	_, out, _ := ran(t, "eval", "presets")
	lines := fields(out)
	for i, p := range task.Presets() {
		var tasks []string
		line := p.Name + " " + p.Doc
		for _, part := range p.Parts {
			tasks = append(tasks, part.Tasks)
		}
		if p.Command != "" {
			line += "; made by: " + p.Command
		}
		if got := list[i]; got.Name != p.Name || got.Doc != p.Doc || got.Command != p.Command ||
			!slices.Equal(got.Tasks, tasks) || lines[i] != strings.Join(strings.Fields(line), " ") {
			t.Errorf("%+v, %q", got, lines[i])
		}
	}
}

// The spec of compare: a name from its folder, seeds, variants, what chooses the learning rate.
func TestCompareSpec(t *testing.T) {
	f := &compareFlags{seeds: "4,9", tuneBy: "outliers", keep: "all", dir: "a/b/",
		variants: []string{"flat diff model.lambda_init=constant"}, probes: []string{"none"}}
	f.spec.Sizes, f.spec.Archs, f.spec.LRs, f.spec.TuneSeeds = []string{"nano"}, []string{"diff"},
		[]float64{1e-3, 2e-3}, 1
	if err := f.resolve(); err != nil {
		t.Fatal(err)
	}
	if s := f.spec; s.Name != "b" || !slices.Equal(s.Seeds, []uint64{4, 9}) || len(s.Variants) != 1 ||
		s.Variants[0] != experiment.Variant(f.variants[0]) || s.TuneBy != "outliers" || len(s.Probes) != 0 ||
		!slices.Equal(s.Tasks, []experiment.Ask{"lm", "outliers"}) {
		t.Errorf("%+v", s)
	}
	f = &compareFlags{seeds: "1", tuneBy: "loss", keep: "none", dir: "d"}
	f.spec.Sizes, f.spec.Archs, f.spec.Name = []string{"nano"}, []string{"diff"}, "mine"
	if err := f.resolve(); err != nil || f.spec.TuneBy != "" || f.spec.Name != "mine" {
		t.Errorf("%+v, %v", f.spec, err)
	}
}

// The log of requests: all of them, warnings alone with --quiet, JSON when asked for; keys of a file or of the
// environment.
func TestServeDetails(t *testing.T) {
	for _, x := range []struct{ quiet, json, info bool }{{false, false, true}, {true, false, false},
		{false, true, true}, {true, true, true}} {
		var b bytes.Buffer
		log := (&app{err: &b, quiet: x.quiet}).requestLog(&serveFlags{logJSON: x.json})
		if log.Info("request"); (b.Len() > 0) != x.info || json.Valid(b.Bytes()) != x.json ||
			!log.Enabled(t.Context(), slog.LevelWarn) {
			t.Errorf("%+v: %q", x, b.String())
		}
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("key-of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		env, file string
		some      bool
	}{{"", "", false}, {"key-of-the-environment", "", true}, {"", path, true}} {
		t.Setenv("ANTIPHASE_API_KEY", x.env)
		if k, err := (&serveFlags{keyFile: x.file}).keys(); err != nil || (k != nil) != x.some {
			t.Errorf("%+v: %v, %v", x, k, err)
		}
	}
	if _, err := (&serveFlags{keyFile: path + "x"}).keys(); exitCode(err) != exitBadInput {
		t.Error(err)
	}
}
