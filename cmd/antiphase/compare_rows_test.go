package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"antiphase/experiment"
	"antiphase/internal/simd"
	"antiphase/recipe"
)

// Every row says of which run it is, what made it and where; the summary counts them, and as JSON is the page's data.
func TestRowsSayWhereFrom(t *testing.T) {
	dir := t.TempDir()
	args := []string{"compare", "--size", "nano", "--arch", "transformer,diff", "--seeds", "7,9", "--steps", "3",
		"--device", "cpu", "--precision", "fp32", "--threads", "1", "--dir", "my x", "--name", "n", "--task",
		"outliers tokens=600", "--probe", "none"}
	_, errs := call(t, dir, 0, args...)
	seen := runsOfRows(t, filepath.Join(dir, "my x", "rows.jsonl"), commandLine(args))
	for _, run := range []string{"nano-transformer-lr0.003-s7", "nano-transformer-lr0.003-s9", "nano-diff-lr0.003-s7",
		"nano-diff-lr0.003-s9"} {
		if !seen[run] || len(seen) != 4 {
			t.Errorf("no row of %s among %v", run, seen)
		}
	}
	if want := filepath.Join("my x", "report.html") + " and " + filepath.Join("my x", "rows.jsonl") +
		": "; !strings.Contains(errs, want) {
		t.Errorf("%q is not in %s", want, errs)
	}
	if !strings.Contains(errs, "antiphase generate --model 'my x/runs/") {
		t.Errorf("no command to go on with: %s", errs)
	}
	out, _ := call(t, dir, 0, append(args, "--seeds", "7,9,11", "--dry-run", "--json", "-q")...)
	var left struct {
		Runs, Finished int
		Tokens         int64
		Seconds        float64 `json:"training_seconds"`
		Rows           []dryRow
	}
	if err := json.Unmarshal([]byte(out), &left); err != nil || left.Runs != 6 || left.Finished != 4 ||
		left.Tokens != 2*3*4*32 || len(left.Rows) != 2 ||
		left.Rows[0].Finished != 2 || left.Rows[1].Finished != 2 ||
		!(math.Abs(left.Seconds-left.Rows[0].Seconds-left.Rows[1].Seconds) <= 1e-9) {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = call(t, dir, 0, append(args, "--json", "-q")...)
	var page struct {
		Title, Command string
		Experiment     struct{ Verdicts []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil || page.Title != "Comparison n" ||
		page.Command != commandLine(args) || len(page.Experiment.Verdicts) == 0 {
		t.Errorf("%v: %.300s", err, out)
	}
}

// runsOfRows are the runs that a file of rows names; each row must say what made it and where.
func runsOfRows(t *testing.T, path, command string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := experiment.ReadRows(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]bool{}
	for _, r := range rows {
		c, err := recipe.Nano(r.Arch)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{"transformer": 33568, "diff": 33664}[r.Arch]
		if r.Experiment != "n" || r.Size != "nano" || r.LR != c.Optim.LR || r.Parameters != count || r.Steps != 3 ||
			r.Tokens != 3*4*32 ||
			r.Machine != "cpu: 1 threads, "+simd.Name()+", fp32, "+runtime.GOOS+"/"+runtime.GOARCH ||
			r.Commit != version() || r.Command != command {
			t.Fatalf("%+v", r)
		}
		runs[r.Run] = true
	}
	return runs
}

// Runs that diverged are named at the end of every call, quiet ones and those that find all finished too. An experiment
// without a result fails, and prints no empty table.
func TestDivergedRunsAreNamed(t *testing.T) {
	dir := t.TempDir()
	args := []string{"compare", "--size", "nano", "--arch", "diff", "--seeds", "1", "--steps", "8", "--device", "cpu",
		"--precision", "fp32", "--task", "outliers tokens=600", "--probe", "none", "--set", "optim.warmup=0",
		"--set", "optim.clip=0", "-q", "--dir"}
	for range 2 {
		out, errs := call(t, dir, 0, append(args, "some", "--lr", "0.003,999")...)
		if !strings.Contains(errs, "warning: 1 of 2 runs diverged: nano-diff-lr999-s1") ||
			!strings.Contains(out, "outliers") {
			t.Errorf("one of two: %s%s", out, errs)
		}
		out, errs = call(t, dir, 5, append(args, "all", "--lr", "999")...)
		if !strings.Contains(errs, "every run diverged") || out != "" {
			t.Errorf("all: %s%s", out, errs)
		}
	}
}
