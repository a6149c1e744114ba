package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"antiphase/checkpoint"
	"antiphase/internal/vfs"
	"antiphase/metrics"
	"antiphase/recipe"
	"antiphase/train"
)

// An output replaces nothing, an empty file, a device, or what this program wrote of the same kind; everything else is
// a usage error that names the path, and stays.
func TestReplaceable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	logits := filepath.Join(dir, "logits.safetensors")
	if err := writeLogits(logits, []int32{1, 2}, []float32{1, 2, 3, 4}, 2); err != nil {
		t.Fatal(err)
	}
	page, thesis, empty := file("page.html", "<!doctype html><title>Antiphase</title>"), file("thesis.tex", "dark"),
		file("empty", "")
	other := file("other.html", "<!doctype html>someone else's")
	for _, x := range []struct {
		path         string
		page, logits bool
	}{
		{filepath.Join(dir, "new"), true, true}, {filepath.Join(dir, "none", "new"), false, false}, {dir, false, false},
		{empty, true, true}, {os.DevNull, true, true},
		{page, true, false}, {other, false, false}, {thesis, false, false}, {logits, false, true},
		{file("text.html", "Antiphase <!doctype html>"), false, false},
	} {
		for kind, f := range map[string]func(string) error{"page": replaceablePage, "logits": replaceableLogits} {
			good := x.page
			if kind == "logits" {
				good = x.logits
			}
			if err := f(x.path); (err == nil) != good || err != nil &&
				(exitCode(err) != exitUsage || !strings.Contains(err.Error(), x.path)) {
				t.Errorf("%s to %s: %v", kind, x.path, err)
			}
		}
	}
	if b, _ := os.ReadFile(thesis); string(b) != "dark" {
		t.Error("a check changed the file")
	}
}

// A prompt has one source: the flag, the file or the input; two are refused.
func TestOnePrompt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(path, []byte("of the file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		prompt, file string
		given        bool
		want         string
		bad          bool
	}{{"p", "", true, "p", false}, {"", "", true, "", false}, {"", path, false, "of the file\n", false},
		{"p", path, true, "", true}, {"", "", false, "of the input", false}, {"", path + "x", false, "", true}} {
		f := &generateFlags{prompt: x.prompt, file: x.file}
		got, err := f.readPrompt(&app{in: strings.NewReader("of the input")}, x.given)
		if (err != nil) != x.bad || got != x.want {
			t.Errorf("%+v: %q, %v", x, got, err)
		}
	}
}

// Samples are appended as lines, none is lost; the flags' bounds.
func TestSampleLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	for i := range 3 {
		if err := appendLine(path, runSample{i, "p", "a\nb"}); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i, line := range lines {
		var s runSample
		if err := json.Unmarshal([]byte(line), &s); err != nil || s != (runSample{i, "p", "a\nb"}) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if len(lines) != 3 || appendLine(filepath.Join(path, "x"), 1) == nil {
		t.Errorf("%d lines", len(lines))
	}
	for _, x := range []struct {
		every, length int
		good          bool
	}{{0, 1, true}, {-1, 1, false}, {5, 0, false}, {5, 1, true}} {
		f := sampleFlags{every: x.every, length: x.length}
		if err := f.check(); (err == nil) != x.good {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// warnedRun is the checkpoint of step 3 of a run of five rows, of which the second, third and fifth have warnings.
func warnedRun(t *testing.T) (step string) {
	t.Helper()
	dir := t.TempDir()
	step = filepath.Join(dir, "checkpoints", "step-00000003")
	if err := os.MkdirAll(step, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := metrics.Open(vfs.OS{}, filepath.Join(dir, metrics.FileName), 0, func(*metrics.Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 5; i++ {
		row := metrics.Row{Step: i, Loss: 1, Valid: math.NaN(), StepMS: 500, Time: 1.7e9 + float64(i),
			Epoch: float64(i) / 4, LambdaMin: 0.1 * float64(i), LambdaMax: 0.2 * float64(i)}
		if i == 2 || i == 3 || i == 5 {
			row.Warn = metrics.LossSpike
		}
		if i == 2 {
			row.Warn |= metrics.GradientSpike
		}
		if err := w.Write(&row); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return step
}

// What show says of a run: the rows up to the checkpoint's step, the warnings among them, when it began.
func TestDescribeRun(t *testing.T) {
	saved := &train.Saved{Checkpoint: &checkpoint.Checkpoint{Dir: warnedRun(t)},
		State: &train.State{Step: 3, Tokens: 99, Loss: 2, EMA: 3}, Recipe: recipe.Recipe{Train: recipe.Train{Steps: 9}}}
	var s shown
	describeRun(&app{err: &bytes.Buffer{}}, &s, saved)
	r := s.Run
	if r.Step != 3 || r.Steps != 9 || r.Tokens != 99 || r.Loss != 2 || r.LossEMA != 3 || r.Valid != nil ||
		r.WarnedLast != 3 || !reflect.DeepEqual(r.Warnings, map[string]int{"loss": 2, "grad_norm": 1}) {
		t.Errorf("%+v", r)
	}
	if r.Began == nil || !r.Began.Equal(time.Unix(1.7e9, 0)) || r.Epoch == nil || *r.Epoch != 0.75 ||
		!(math.Abs(*s.LambdaMin-0.3) <= 1e-9) || !(math.Abs(*s.LambdaMax-0.6) <= 1e-9) {
		t.Errorf("began %v, epoch %v", r.Began, r.Epoch)
	}
	var b bytes.Buffer
	r.print(&b)
	for _, want := range []string{"step\t3 of 9, 99 tokens", "loss\t2.0000 (smoothed 3.0000)", ", 0.75 epochs)",
		"warnings\tgrad_norm at 1 steps, loss at 2 steps; the last at step 3"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	for step, epoch := range map[int]float64{0: -1, 1: 0.25, 4: 1, 5: 1.25, 9: 1.25} { // −1: there is no row yet
		s = shown{}
		saved.State.Step = step
		describeRun(&app{err: &bytes.Buffer{}}, &s, saved)
		r := s.Run
		if (r.Epoch == nil) != (epoch < 0) || r.Epoch != nil && *r.Epoch != epoch || (r.Began == nil) != (step == 0) ||
			r.Warnings["loss"] != map[int]int{4: 2, 5: 3, 9: 3}[step] {
			t.Errorf("at step %d: %+v", step, r)
		}
	}
	saved.State.Step, saved.State.Valid = 3, 1.5
	saved.Checkpoint.Dir = filepath.Join(t.TempDir(), "a", "b", "c")
	s = shown{}
	if describeRun(&app{err: &bytes.Buffer{}}, &s, saved); s.Run.Valid == nil || *s.Run.Valid != 1.5 ||
		s.Run.Epoch != nil || len(s.Run.Warnings) != 0 {
		t.Errorf("a checkpoint without its run: %+v", s.Run)
	}
}

// A name of a served model: what was given, else the folder's; an address that is none is a usage error, a taken port
// is not.
func TestServedNames(t *testing.T) {
	dir := t.TempDir()
	for spec, want := range map[string][2]string{"n=" + dir: {"n", dir}, dir + "/": {filepath.Base(dir), dir + "/"},
		"a=b=c": {"a", "b=c"}, "org/model": {"org/model", "org/model"}, "./x": {"x", "./x"}} {
		if name, path := servedName(spec); name != want[0] || path != want[1] {
			t.Errorf("%s: %q, %q", spec, name, path)
		}
	}
	l, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := listen(l.Addr().(*net.TCPAddr).String()); err == nil || exitCode(err) == exitUsage {
		t.Errorf("a taken port: %v", err)
	}
	for _, bad := range []string{"nonsense", "127.0.0.1", "1:2:3"} {
		if _, err := listen(bad); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The plans are what README and the results say, shortest first; a folder's own time.
func TestPlans(t *testing.T) {
	if planNames() != "short, standard, long" || plans[0].steps != 1000 || plans[1].steps != 3000 ||
		plans[2].steps != 12000 || planPrefix != "speedrun-" {
		t.Errorf("%+v", plans)
	}
	for _, p := range plans {
		for _, x := range []struct{ seeds, jobs, times, over int }{{0, 1, 1, 1}, {1, 1, 1, 1}, {10, 1, 10, 1},
			{10, 5, 10, 5}} {
			f := &speedrunFlags{seeds: x.seeds, jobs: x.jobs}
			want := (1.15*float64(p.steps) + 400) * float64(x.times) / float64(x.over) // milliseconds
			if got := f.forecast(p, time.Millisecond).Seconds() * 1000; !(math.Abs(got/want-1) <= 1e-6) {
				t.Errorf("%s, %+v: %g ms, want %g", p.name, x, got, want)
			}
		}
	}
	dir := t.TempDir()
	if finishedSeconds(dir) != 0 {
		t.Error("a folder without a report has a time")
	}
	for text, want := range map[string]float64{`{"seconds": 12.5}`: 12.5, `{}`: 0, `nonsense`: 0} {
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := finishedSeconds(dir); got != want {
			t.Errorf("%s: %g", text, got)
		}
	}
}

// A secret comes from one place; spaces around it do not count, an empty file is none.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "s"+text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, x := range []struct {
		value, path, want string
		bad               bool
	}{{"", "", "", false}, {"abc", "", "abc", false}, {"", file(" xyz\n"), "xyz", false}, {"abc", file("d"), "", true},
		{"", file(" \n"), "", true}, {"", filepath.Join(dir, "none"), "", true}} {
		t.Setenv("ANTIPHASE_SECRET", x.value)
		t.Setenv("ANTIPHASE_SECRET_FILE", x.path)
		b, err := secret()
		if (err != nil) != x.bad || string(b) != x.want || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%+v: %q, %v", x, b, err)
		}
	}
}

// What version prints of a build.
func TestBuildWords(t *testing.T) {
	for want, b := range map[string]build{
		"v1.2.3": {Version: "v1.2.3"}, "0123456789ab": {Version: "(devel)", Commit: "0123456789abcdef"},
		"0123456789ab+dirty": {Commit: "0123456789abcdef", Modified: true},

		"(devel)": {Version: "(devel)", Commit: "0123"}, "(devel)+dirty": {Version: "(devel)", Modified: true},
	} {
		if got := b.short(); got != want {
			t.Errorf("%+v: %s, want %s", b, got, want)
		}
	}
	if b := (build{Version: "v1", Date: "2026-01-02"}); !strings.Contains(b.String(), "v1 of 2026-01-02") {
		t.Error(b.String())
	}
}

// A run's curve for a report: at most about 300 points and every held-out loss, the largest norm since the last point,
// the median speed; held-out losses by tokens.
func TestTrainingCurve(t *testing.T) {
	path := filepath.Join(t.TempDir(), metrics.FileName)
	w, err := metrics.Open(vfs.OS{}, path, 0, func(*metrics.Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	const n = 905
	for i := 1; i <= n; i++ {
		row := metrics.Row{Step: i, LossEMA: float64(i), Valid: math.NaN(), GradNorm: float64(i % 7), TokS: float64(i),
			Tokens: int64(10 * i)}
		if i%100 == 50 {
			row.Valid = float64(i) / 1000
		}
		if err := w.Write(&row); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	a := &app{err: &bytes.Buffer{}}
	c, err := trainingOf(a, "m", path)
	if err != nil || c.Model != "m" || c.Tokens != 10*n || c.TokensPerSecond != 453 {
		t.Fatalf("%+v, %v", c.Tokens, err)
	}
	if len(c.Curve) < 300 || len(c.Curve) > 320 || c.Curve[0].Step != 1 || c.Curve[len(c.Curve)-1].Step != n {
		t.Errorf("%d points from %d to %d", len(c.Curve), c.Curve[0].Step, c.Curve[len(c.Curve)-1].Step)
	}
	held, before := 0, 0
	for _, p := range c.Curve {
		most := 0
		for i := before + 1; i <= p.Step; i++ {
			most = max(most, i%7)
		}
		before = p.Step
		if p.Loss != float64(p.Step) || p.Grad != float64(most) || (p.Valid != nil) != (p.Step%100 == 50) {
			t.Fatalf("%+v, want the norm %d", p, most)
		}
		if p.Valid != nil {
			held++
		}
	}
	points, err := heldOutLosses(a, path)
	if err != nil || held != 9 || len(points) != 9 || points[0].X != 500 || points[0].Loss != 0.05 {
		t.Errorf("%d held-out losses, %v, %v", held, points, err)
	}
}
