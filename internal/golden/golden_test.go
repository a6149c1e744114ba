package golden

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDirs(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"local/a", "local/b", "more/c", "more/d", "self"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"x", "y"} {
			if name == "y" && (dir == "local/b" || dir == "more/d") {
				continue
			}
			if err := os.WriteFile(filepath.Join(root, dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv(Env, filepath.Join(root, "more")+string(os.PathListSeparator)+filepath.Join(root, "self"))
	var got []string
	for _, dir := range Dirs(t, filepath.Join(root, "local"), "x", "y") {
		got = append(got, filepath.Base(dir))
	}
	if want := []string{"a", "c", "self"}; !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
	if err := os.Mkdir(filepath.Join(root, "local/b/y"), 0o700); err != nil { // not a file
		t.Fatal(err)
	}
	for _, dir := range []string{"local/b", "none"} { // a test without its folders must not pass, whatever Env has
		f := &fake{TB: t}
		func() {
			defer func() { _ = recover() }()
			t.Errorf("%s: %v", dir, Dirs(f, filepath.Join(root, dir), "x", "y"))
		}()
		if !f.failed {
			t.Errorf("%s: not fatal", dir)
		}
	}
}

// fake is a test that ends with a panic.
type fake struct {
	testing.TB
	failed bool
}

func (f *fake) Fatal(...any) { f.failed = true; panic("failed") }

func (f *fake) Fatalf(string, ...any) { f.Fatal() }

func TestDifferences(t *testing.T) {
	if got := Relative([]float64{3, 5}, []float64{3, 4}); got != 0.2 {
		t.Errorf("relative difference is %g, want 0.2", got)
	}
	if got := Relative([]float64{2}, []float64{0}); got != 2 {
		t.Errorf("difference from zero is %g, want 2", got)
	}
	for _, got := range [][]float64{{1, 2, 0}, {1, 0, 2}, {0, 1, -2}, {-2, 1, 0}} {
		if got := Largest(got, make([]float64, 3)); got != 2 {
			t.Errorf("largest difference is %g, want 2", got)
		}
	}
	for _, got := range []float64{Relative([]float64{1}, nil), Largest(nil, []float64{1}),
		Largest([]float64{math.NaN(), 1}, []float64{1, 1}),
		Largest([]float64{1, 2}, []float64{1, math.NaN()}), Relative([]float64{math.NaN(), 1}, []float64{1, 1})} {
		if !math.IsNaN(got) {
			t.Errorf("difference of things that cannot be compared is %g, want NaN", got)
		}
	}
}
