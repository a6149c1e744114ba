package report

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// The keys of a task that was asked in several ways say which way each is, whatever came first: none of them passes for
// the task itself.
func TestHarnessSeveralWays(t *testing.T) {
	ways := []map[string]any{{"needles": 1, "queries": 1}, {"needles": 4, "queries": 2}}
	var first []string
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		var cells []*eval.Cell
		for _, i := range order {
			r := made("needle", "", "bound", "right, %", 4, 0.5, nil)
			r.Question, r.Config = []string{"q one", "q two"}[i], ways[i]
			cells = append(cells, cellOf(eval.Model{Name: "m", Hash: "h"}, 1, r))
		}
		cells = append(cells, cellOf(eval.Model{Name: "m", Hash: "h"}, 2,
			made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil)))
		other := made("needle", "", "bound", "right, %", 4, 0.5, nil)
		other.Question, other.Config = "q two", ways[1]
		cells = append(cells, cellOf(eval.Model{Name: "n", Hash: "i"}, 1, other))
		e := eval.Assemble(cells)
		if keys := slices.Collect(maps.Keys(NewHarness(e, &e.Models[1]).Results)); !slices.Equal(keys,
			[]string{"needle N=4 R=2"}) {
			t.Errorf("the other model: %q", keys)
		}
		keys := slices.Sorted(maps.Keys(NewHarness(e, &e.Models[0]).Results))
		if want := []string{"needle N=1 R=1", "needle N=4 R=2", "piqa"}; !slices.Equal(keys, want) {
			t.Errorf("order %v: %q, want %q", order, keys, want)
		}
		if first == nil {
			first = keys
		} else if !slices.Equal(keys, first) {
			t.Errorf("%q in another order, %q", keys, first)
		}
	}
}

// Every model has a folder of its own, inside of the store whatever its name is, and none under a name that it no
// longer bears.
func TestHarnessFolders(t *testing.T) {
	dir := t.TempDir()
	cell := func(name, hash, precision string) *eval.Cell {
		return cellOf(eval.Model{Name: name, Hash: hash, Precision: precision}, 1,
			made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil))
	}
	folders := func(cells ...*eval.Cell) []string {
		t.Helper()
		if err := WriteHarness(dir, eval.Assemble(cells)); err != nil {
			t.Fatal(err)
		}
		var out []string
		files, _ := filepath.Glob(filepath.Join(dir, "*", HarnessFile))
		for _, f := range files {
			out = append(out, filepath.Base(filepath.Dir(f)))
		}
		return out
	}
	if got := folders(cell("m", "h", "int8")); !slices.Equal(got, []string{"m"}) {
		t.Errorf("%q", got)
	}
	mine := filepath.Join(dir, "mine", HarnessFile) // somebody's own, and one of another process
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte(`{"config": {"model": "hf", "model_hash": "h", "dtype": "int8"}}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if got := folders(cell("m", "h", "int8"), cell("m", "h", "fp32")); !slices.Equal(got,
		[]string{"m_fp32", "m_int8", "mine"}) {
		t.Errorf("after a second precision: %q", got)
	}
	dir = t.TempDir()
	got := folders(cell("..", "1", ""), cell("a/b", "2", ""), cell("a_b", "3", ""), cell("a b", "4", ""),
		cell("", "5", ""), cell(strings.Repeat("ö", 200), "6", ""))
	if want := []string{"_", "_..", "a_b", "a_b_3", "a_b_4", strings.Repeat("ö", 64)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), HarnessFile)); err == nil {
		t.Error("a file outside of the store")
	}
}

// A folder that cannot be made, or a file that cannot be written or replaced, is an error.
func TestHarnessErrors(t *testing.T) {
	cell := cellOf(eval.Model{Name: "m", Hash: "h"}, 1, made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil))
	for name, block := range map[string]func(dir string) error{
		"a file in place of the folder": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "m"),
				nil, 0o644)
		},
		"a folder in place of the file": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "m",
				HarnessFile, "x"), 0o755)
		},
		"a folder in place of its temporary": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "m", fmt.Sprintf("%s.%d", HarnessFile, os.Getpid())), 0o755)
		},
	} {
		dir := t.TempDir()
		if err := block(dir); err != nil {
			t.Fatal(err)
		}
		if err := WriteHarness(dir, eval.Assemble([]*eval.Cell{cell})); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
