//go:build unix

package data

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"antiphase/internal/vfs"
)

// A pipe is refused at once: opening it would wait for a writer, and sources are read several times.
func TestPipeIsNoSource(t *testing.T) {
	for _, r := range readers {
		path := filepath.Join(t.TempDir(), "x"+r.ending)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v", r.ending, err)
		}
		if _, _, err := (vfs.OS{}).Map(path); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("mapped: %v", err)
		}
	}
}
