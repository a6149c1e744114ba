package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"antiphase/pair"
)

// ran runs the program in this process.
func ran(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// The models of the program write and retrieve: the number of a single needle in 95 % of 20 prompts that fill the
// context.
func TestEmbeddedModelsRetrieve(t *testing.T) {
	if names := pair.Names(); !slices.Equal(names, []string{"diff", "transformer"}) {
		t.Fatalf("models of the program: %v", names)
	}
	for _, name := range pair.Names() {
		code, out, errs := ran(t, "eval", "--model", "pair:"+name, "--tasks", "needle", "--set", "needle.needles=1",
			"--set", "needle.queries=1", "--set", "needle.samples=4", "--json", "-q", "--device", "cpu")
		if code != 0 {
			t.Fatal(errs)
		}
		var got struct{ Results map[string]map[string]any }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		score, ok := got.Results["standin_needle"]["bound,none"].(float64)
		if !ok || score < 0.95 {
			t.Errorf("%s: %v of single needles, want 0.95", name, score)
		}
	}
	if code, out, errs := ran(t, "generate", "-p", "The old", "-n", "40", "--seed", "1", "-q", "--device",
		"cpu"); code != 0 || len(strings.Fields(out)) < 20 {
		t.Errorf("generate: exit %d, %q (%s)", code, out, errs)
	}
}

// With models in the program generate and serve need none to be named; without them the error stays.
func TestEmbeddedPair(t *testing.T) {
	old := pair.Files
	defer func() { pair.Files = old }()
	pair.Files = fstest.MapFS{}
	if code, _, errs := ran(t, "generate", "-p", "The old"); code != exitUsage ||
		!strings.Contains(errs, "--model: missing") {
		t.Errorf("without models: exit %d, %s", code, errs)
	}
	if code, _, errs := ran(t, "serve"); code != exitUsage || !strings.Contains(errs, "--model: missing") {
		t.Errorf("serve without models: exit %d, %s", code, errs)
	}
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if code, _, errs := ran(t, "train", "--size", "nano", "--arch", "diff", "--steps", "2", "--dir", run, "-q",
		"--device", "cpu"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(dir, "diff.safetensors")
	if code, _, errs := ran(t, "pack", run, "-o", file); code != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pair.Files = fstest.MapFS{"files/diff.safetensors": {Data: b}}
	common := []string{"generate", "-p", "The old", "-n", "12", "--temperature", "0", "-q", "--device", "cpu"}
	code, first, errs := ran(t, common...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, name := range []string{file, "pair:diff"} {
		if code, got, errs := ran(t, append(common, "--model", name)...); code != 0 || got != first {
			t.Errorf("%s: exit %d, %q, want %q (%s)", name, code, got, first, errs)
		}
	}
	if code, _, errs := ran(t, append(common, "--model", "pair:none")...); code != exitBadInput ||
		!strings.Contains(errs, "there are diff") {
		t.Errorf("a model that is not there: exit %d, %s", code, errs)
	}
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("thesis"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := ran(t, "pack", run, "-o", notes); code != exitUsage {
		t.Errorf("pack over another file: exit %d", code)
	}
	if code, out, errs := ran(t, "eval", "--tasks", "lm", "--limit", "2", "--model", "pair:diff", "--json", "-q",
		"--device", "cpu"); code != 0 || !strings.Contains(out, `"loss`) {
		t.Errorf("eval: exit %d, %s", code, errs)
	}
}
