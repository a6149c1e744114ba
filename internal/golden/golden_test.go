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
}

func TestDifferences(t *testing.T) {
	if got := Relative([]float64{3, 5}, []float64{3, 4}); got != 0.2 {
		t.Errorf("relative difference is %g, want 0.2", got)
	}
	if got := Relative([]float64{2}, []float64{0}); got != 2 {
		t.Errorf("difference from zero is %g, want 2", got)
	}
	if got := Largest([]float64{1, 2}, []float64{1.5, 4}); got != 2 {
		t.Errorf("largest difference is %g, want 2", got)
	}
	for _, got := range []float64{Relative([]float64{1}, nil), Largest(nil, []float64{1}), Largest([]float64{math.NaN(), 1}, []float64{1, 1})} {
		if !math.IsNaN(got) {
			t.Errorf("difference of things that cannot be compared is %g, want NaN", got)
		}
	}
}
