package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A hybrid processor has counters of both kinds of cores.
func TestHybridCores(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"cpu_core", "cpu_atom"} {
		if hybridIn(dir) || differIn(dir) {
			t.Errorf("hybrid without %s", kind)
		}
		if err := os.Mkdir(filepath.Join(dir, kind), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if !hybridIn(dir) || !differIn(dir) {
		t.Error("not hybrid with both kinds")
	}
}

// Cores are mixed where two capacities differ, whichever; not where they are equal, or where none is stated.
func TestMixedCores(t *testing.T) {
	for _, c := range []struct {
		capacities []int
		want       bool
	}{{nil, false}, {[]int{1024}, false}, {[]int{1024, 1024, 1024}, false}, {[]int{1024, 1024, 446}, true},
		{[]int{446, 1024, 1024}, true}} {
		dir := t.TempDir()
		for i, x := range c.capacities {
			core := filepath.Join(dir, "system", "cpu", fmt.Sprint("cpu", i))
			if err := os.MkdirAll(core, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(core, "cpu_capacity"), fmt.Appendln(nil, x), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := differIn(dir); got != c.want || mixedIn(dir) {
			t.Errorf("%v: %v", c.capacities, got)
		}
	}
}
