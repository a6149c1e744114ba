// Package golden finds the golden folders that tests compare with, and measures differences.
//
// A package keeps the few it needs in its testdata. ANTIPHASE_GOLDEN lists further directories, each either a golden
// folder or a parent of some; those of the kind that a test needs are used too.
package golden

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Env is the variable that lists further directories, separated as in PATH.
const Env = "ANTIPHASE_GOLDEN"

// Dirs lists the golden folders that contain all the files of has: those under local, at least one of which must exist,
// and those among the directories of Env and their children.
func Dirs(t testing.TB, local string, has ...string) []string {
	t.Helper()
	list := under(t, local, has)
	if len(list) == 0 {
		t.Fatalf("no folder with %v under %s", has, local)
	}
	for _, dir := range filepath.SplitList(os.Getenv(Env)) {
		if dir != "" {
			list = append(list, under(t, dir, has)...)
		}
	}
	return list
}

// under lists dir itself and its children that have the files.
func under(t testing.TB, dir string, has []string) []string {
	t.Helper()
	children, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	if hasAll(dir, has) {
		list = append(list, dir)
	}
	for _, c := range children {
		if sub := filepath.Join(dir, c.Name()); hasAll(sub, has) {
			list = append(list, sub)
		}
	}
	return list
}

func hasAll(dir string, has []string) bool {
	for _, name := range has {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || !st.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// Relative is ‖got − want‖/‖want‖, the plain norm of the difference if want is zero, and NaN if lengths differ.
func Relative(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	var diff, norm float64
	for i, w := range want {
		diff += (got[i] - w) * (got[i] - w)
		norm += w * w
	}
	if norm == 0 {
		return math.Sqrt(diff)
	}
	return math.Sqrt(diff / norm)
}

// Largest is max |got − want|, and NaN if lengths differ or anything is NaN.
func Largest(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	var most float64
	for i, w := range want {
		most = max(most, math.Abs(got[i]-w)) // NaN stays
	}
	return most
}
