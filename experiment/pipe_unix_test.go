//go:build unix

package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"antiphase/internal/vfs"
)

// A pipe or a device in place of an experiment's files is an error at once.
func TestOddFilesOfAFolder(t *testing.T) {
	make := map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
	}
	for kind, odd := range make {
		dir := t.TempDir()
		for _, name := range []string{specName, timeName} {
			if err := odd(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := admit(dir, &Spec{}); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := ReadSpec(dir); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v", kind, err)
		}
		if before, err := readSpent(dir); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: times %v, %v", kind, before, err)
		}
	}
}
