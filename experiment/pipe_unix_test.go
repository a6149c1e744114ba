//go:build unix

package experiment

import (
	"errors"
	"path/filepath"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// A pipe or a device in place of an experiment's files is an error at once.
func TestOddFilesOfAFolder(t *testing.T) {
	for kind, odd := range vfstest.Odd {
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
