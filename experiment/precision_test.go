package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The precision of a row is its own, or for older rows that of the machine's name.
func TestPrecisionOfARow(t *testing.T) {
	for machine, want := range map[string]string{
		"": "", "m": "", "cpu: 2 threads, avx512, fp32, linux/amd64": "fp32",
		"cuda:0: NVIDIA H200, sm_90a, 132 SMs, bf16, linux/amd64":             "bf16",
		"cuda:0: NVIDIA H200, sm_90a, 132 SMs, bf16, int8 cache, linux/amd64": "bf16, int8 cache",
	} {
		if got := (&origin{Machine: machine}).precision(); got != want {
			t.Errorf("%s: %q, want %q", machine, got, want)
		}
		if got := (&origin{Machine: machine, Precision: "own"}).precision(); got != "own" {
			t.Errorf("%s: %q", machine, got)
		}
	}
	of := func(list ...string) (rows []Row) {
		for _, p := range list {
			rows = append(rows, Row{origin: origin{Run: "in " + p, Size: "nano", Precision: p}, Measure: "m"})
		}
		return rows
	}
	for _, rows := range [][]Row{of("fp32", "bf16"), of("", "fp32", "", "bf16"), of("bf16", "bf16, int8 cache")} {
		if err := oneExperiment(rows); err == nil || !strings.Contains(err.Error(), "but were computed in ") {
			t.Errorf("%v: %v", rows, err)
		}
	}
	if err := oneExperiment(of("fp32", "", "fp32")); err != nil {
		t.Error(err)
	}
}

// A table never has runs of two precisions: rows of another one are refused before anything is made, as is the rest of
// a folder's runs. Where nothing is left to compute, the precision here does not matter.
func TestOnePrecision(t *testing.T) {
	s := nanoSpec(4)
	s.Seeds, s.LRs, s.Probes, s.Tasks = []uint64{1, 2}, []float64{1e-3}, nil, []Ask{"lm"}
	work := func(dir, precision string, seeds int, have ...string) error {
		part := *s
		part.Seeds = s.Seeds[:seeds]
		opt := options(dir, oneThread(t))
		opt.Precision, opt.Have = precision, have
		rows, err := Work(t.Context(), &part, opt)
		if err == nil && slices.ContainsFunc(rows, func(r Row) bool { return r.precision() == "" }) {
			t.Error("rows do not name their precision")
		}
		return err
	}
	first := t.TempDir()
	if err := work(first, "bf16", 1); err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(first, rowsName)
	there := filepath.Join(t.TempDir(), "new")
	for _, dir := range []string{there, first} { // from elsewhere, and of the folder itself
		err := work(dir, "fp32", 2, rows)
		if !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "-s1 was computed in bf16, ") ||
			!strings.Contains(err.Error(), "-s2 would be in fp32") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is made (%v)", err)
	}
	for _, dir := range []string{there, first} {
		if err := work(dir, "fp32", 1, rows); err != nil {
			t.Errorf("nothing is left to compute: %v", err)
		}
	}
	if err := work(first, "bf16", 2); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(first, rowsName))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.jsonl")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(string(b), `"bf16"`, `"fp32"`)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := work(filepath.Join(t.TempDir(), "x"), "bf16", 2, rows, other); err != nil {
		t.Errorf("runs of the first file: %v", err) // it has all of them
	}
	if err := work(there, "bf16", 2, other); !errors.Is(err, ErrOther) ||
		!strings.Contains(err.Error(), "but were computed in bf16 and fp32") {
		t.Errorf("a mixture of files: %v", err)
	}
}
