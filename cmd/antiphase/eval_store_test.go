package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"antiphase/internal/simd"
)

// What a store, a results.json and a saved row say of a number: the model, its shape and tokens, the machine, the
// program and the command.
func TestResultsSayWhereFrom(t *testing.T) {
	dir := t.TempDir()
	call(t, dir, 0, "train", "--size", "nano", "--steps", "2", "--set", "train.save_every=1", "--dir", "run", "-q",
		"--device", "cpu")
	args := []string{"eval", "-m", "run", "-t", "lm", "--set", "lm.pieces=2", "--seed", "3", "--checkpoints", "-o",
		"store", "--save", "-q", "--device", "cpu", "--precision", "fp32", "--threads", "1"}
	call(t, dir, 0, args...)
	machine := "cpu: 1 threads, " + simd.Name() + ", fp32, " + runtime.GOOS + "/" + runtime.GOARCH
	headsSayWhereFrom(t, filepath.Join(dir, "store"), machine)
	var harness struct {
		Results map[string]map[string]any
		Hash    string `json:"git_hash"`
		Name    string `json:"model_name"`
	}
	if err := json.Unmarshal([]byte(text(t, filepath.Join(dir, "store", "run@2", "results.json"))),
		&harness); err != nil || harness.Hash != version() || harness.Name != "run@2" {
		t.Errorf("%+v, %v", harness, err)
	}
	saved, _ := filepath.Glob(filepath.Join(dir, "results", "eval", "*.jsonl"))
	rows := 0
	for line := range strings.Lines(text(t, saved[0])) {
		var r struct {
			Metric, Model, Machine, Commit, Command, Precision string
			Value                                              float64
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Machine != machine || r.Commit != version() ||
			r.Command != strings.Join(args, " ") || r.Precision != "fp32" {
			t.Errorf("%s: %v", line, err)
		}
		if r.Metric == "loss" && r.Model == "run@2" {
			rows++
			if got := harness.Results["standin_lm"]["loss,none"]; got != r.Value {
				t.Errorf("%g was saved, the results have %v", r.Value, got)
			}
		}
	}
	if rows != 1 || len(saved) != 1 {
		t.Errorf("%d rows of the last checkpoint's loss in %q", rows, saved)
	}
}

// headsSayWhereFrom checks the heads of a store's rows, which are of steps 1 and 2.
func headsSayWhereFrom(t *testing.T, store, machine string) {
	t.Helper()
	type model struct {
		Name, Arch, Precision, Device, Run string
		Parameters, Context                int
		Tokens                             int64
	}
	seen := map[int64]bool{}
	files, _ := filepath.Glob(filepath.Join(store, "rows-*.jsonl"))
	for _, path := range files {
		for line := range strings.Lines(text(t, path)) {
			var row struct {
				Head *struct {
					Model           model
					Seed            uint64
					Machine, Commit string
				}
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil || row.Head == nil {
				continue
			}
			step := row.Head.Model.Tokens / 128
			seen[step] = true
			want := model{Name: fmt.Sprint("run@", step), Arch: "diff", Precision: "fp32", Device: "cpu " + simd.Name(),
				Run: "run", Parameters: 33664, Context: 64, Tokens: 128 * step}
			if h := row.Head; h.Model != want || h.Seed != 3 || h.Machine != machine || h.Commit != version() {
				t.Errorf("%+v, want %+v", *row.Head, want)
			}
		}
	}
	if !seen[1] || !seen[2] || len(seen) != 2 {
		t.Errorf("steps %v in %q", seen, files)
	}
}

// text is a file's.
func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
