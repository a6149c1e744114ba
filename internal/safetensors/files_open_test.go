package safetensors

import (
	"os"
	"path/filepath"
	"testing"

	"antiphase/internal/quota"
)

// A file is closed by Close, and at once if it cannot be read.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	f, err := os.Create(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, []Entry{FromFloat32s("x", F32, []int{2}, []float32{1, 2})}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("\x08\x00\x00\x00\x00\x00\x00\x00{\"x\":1}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	quota.Files(t, "a good file", func() {
		f, err := Open(good)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := f.Float32s("x"); err != nil || x[1] != 2 {
			t.Error(x, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	quota.Files(t, "a damaged file", func() {
		if _, err := Open(bad); err == nil {
			t.Error("no error")
		}
	})
}
