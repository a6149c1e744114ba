//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/train"
)

// A pipe, a device or a folder in place of a file is refused at once, or is no content of a folder.
func TestOddFiles(t *testing.T) {
	nanoRun(t)
	for kind, odd := range vfstest.Odd {
		dir := t.TempDir()
		at := func(name string) string {
			path := filepath.Join(dir, name)
			if err := odd(path); err != nil {
				t.Fatal(err)
			}
			return path
		}
		t.Setenv("ANTIPHASE_SECRET_FILE", at("secret"))
		if b, err := secret(); !errors.Is(err, vfs.ErrNotRegular) || exitCode(err) != exitUsage {
			t.Errorf("%s: secret %q, %v", kind, b, err)
		}
		if _, err := openPackedFile(at("packed")); !errors.Is(err, vfs.ErrNotRegular) || exitCode(err) != exitBadInput {
			t.Errorf("%s: packed model: %v", kind, err)
		}
		if err := put(dir, "a"); err != nil {
			t.Fatal(err)
		}
		alone, err := hashFolder(sha256.New(), filepath.Dir(at("b")))
		if want := hashOf([]byte("a\nx"))[:24]; err != nil || alone != want {
			t.Errorf("%s: a folder with it has the hash %s, %v, want %s", kind, alone, err, want)
		}
		at("model-2.safetensors")
		if _, err := hashWeights(dir); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: weights: %v", kind, err)
		}
		s, err := train.Open("run", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		path := s.Checkpoint.Path(generationFile)
		if err := odd(path); err != nil {
			t.Fatal(err)
		}
		if _, err := mannersOf(s); !errors.Is(err, vfs.ErrNotRegular) || exitCode(err) != exitBadInput {
			t.Errorf("%s: manners: %v", kind, err)
		}
		if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}
