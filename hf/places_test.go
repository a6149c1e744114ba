package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// Only a snapshot of the cache may link to what is beside it, and a reference names a snapshot, not a path below one.
func TestBoundaries(t *testing.T) {
	for name, inside := range map[string]bool{"models--org--name": true, "models-org-name": false, "other": false} {
		at := filepath.Join(t.TempDir(), name)
		dir := filepath.Join(at, "snapshots", "abc")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, at, "blob", []byte("x"))
		vfstest.Symlink(t, "../../blob", filepath.Join(dir, "config.json"))
		if _, err := ReadFile(dir, "config.json", 10); (err == nil) != inside {
			t.Errorf("%s: %v", name, err)
		}
	}
	home := t.TempDir()
	t.Setenv("HF_HUB_CACHE", home)
	at := filepath.Join(home, "models--org--name")
	for _, d := range []string{"snapshots/c0ffee/deeper", "refs"} {
		if err := os.MkdirAll(filepath.Join(at, filepath.FromSlash(d)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(at, "refs"), "main", []byte("c0ffee/deeper"))
	if dir, err := Cached("org/name"); err == nil ||
		!strings.Contains(err.Error(), `points to "c0ffee/deeper", which is not a snapshot's name`) {
		t.Errorf("%s, %v", dir, err)
	}
}

// bfloat16 and float32 hold what float16 does not, and an export removes what an interrupted one left long ago.
func TestLargeValuesAndLeftovers(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	huge := func(name string) ([]float32, error) {
		x, err := valuesOf(m)(name)
		x[0] = 1 << 20
		return x, err
	}
	for _, dtype := range []string{"bfloat16", "float32"} {
		dir := filepath.Join(t.TempDir(), "x")
		old, young := vfs.Hidden(dir), vfs.Hidden(dir)
		for _, d := range []string{old, young} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, d, "config.json", nil)
		}
		long := time.Now().Add(-time.Hour)
		for _, path := range []string{filepath.Join(old, "config.json"), old} {
			if err := os.Chtimes(path, long, long); err != nil {
				t.Fatal(err)
			}
		}
		if err := (&Export{Config: m.Config, Values: huge, DType: dtype}).Write(dir, false); err != nil {
			t.Fatal(err)
		}
		_, gone := os.Stat(old)
		if _, err := os.Stat(young); gone == nil || err != nil {
			t.Errorf("the old leftover: %v, the young one: %v", gone, err)
		}
		f, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := f.Values()("embed.weight"); err != nil || x[0] != 1<<20 {
			t.Errorf("%s: %g, %v", dtype, x[0], err)
		}
		f.Close()
	}
}
