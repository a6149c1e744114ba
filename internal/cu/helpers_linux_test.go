//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Alignments, strings of C and flags by hand.
func TestHelpers(t *testing.T) {
	for addr, want := range map[uintptr]int{0: 16, 2: 2, 4: 4, 6: 2, 8: 8, 12: 4, 16: 16, 24: 8, 256: 16, 1: 2} {
		if got := alignment(addr); got != want {
			t.Errorf("%d is aligned to %d, want %d", addr, got, want)
		}
	}
	for text, want := range map[string]string{"abc": "abc", "ab\x00c\x00": "ab", "\x00": "", "": ""} {
		if got := cString([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, s := range []string{"", "a", "kernel"} {
		if got := goString(zeroEnded(s)); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	}
	if goString(nil) != "unknown" || flag(true) != 1 || flag(false) != 0 {
		t.Error("no string, or a flag")
	}
	var k kernels
	k.context = &context{}
	for _, c := range []struct {
		major, driver int
		early         bool
	}{{9, 12030, true}, {10, 13000, true}, {8, 12030, false}, {9, 12020, false}} {
		k.info.Major, k.info.Driver, k.early.funcs = c.major, c.driver, nil
		if k.Early(7); k.early.funcs[7] != c.early {
			t.Errorf("compute capability %d with CUDA %d: early %v", c.major, c.driver, !c.early)
		}
	}
}

// A class wastes at most an eighth, rises with the size, and is its own; small sizes share one, large ones are whole
// pages of 2 MiB.
func TestClasses(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	sizes := []int{0, 1, 512, 513, 1024, 1025, 8192, 8193, large - 1, large, large + 1, large + 2<<20}
	for range 2000 {
		sizes = append(sizes, 1+g.IntN(1<<(1+g.IntN(30))))
	}
	slices.Sort(sizes)
	last := 0
	for _, n := range sizes {
		c := class(n)
		if c < n || c < last || class(c) != c || c%512 != 0 || n > 4096 && float64(c-n) > float64(n)/8 || n >= large &&
			c%(2<<20) != 0 {
			t.Fatalf("%d bytes are of class %d, the one before of %d", n, c, last)
		}
		last = c
	}
	if class(0) != 512 || class(512) != 512 || class(513) != 1024 || class(large) != large ||
		class(large+1) != large+2<<20 {
		t.Errorf("%d, %d, %d, %d", class(513), class(large), class(large+1), class(512))
	}
}

// Libraries are looked for in ANTIPHASE_CUDA_PATH, in its folders' lib64 and lib too, in the order given.
func TestOverrides(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	var want []string
	for _, dir := range []string{a, filepath.Join(a, "lib64"), filepath.Join(b, "lib")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "libx.so")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, path)
	}
	t.Setenv("ANTIPHASE_CUDA_PATH", a+string(filepath.ListSeparator)+b)
	if got := overrides("libx.so"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := overrides("liby.so"); got != nil {
		t.Errorf("%v", got)
	}
	t.Setenv("ANTIPHASE_CUDA_PATH", "")
	if got := overrides("libx.so"); got != nil {
		t.Errorf("%v", got)
	}
}
