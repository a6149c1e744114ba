//go:build unix

package flock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"antiphase/internal/quota"
	"antiphase/internal/vfs"
)

// A LOCK of another kind is refused at once, says what it is and stays as it is.
func TestOddFile(t *testing.T) {
	for kind, odd := range map[string]func(path string) error{
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, Name)
		if err := odd(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		quota.Files(t, kind, func() {
			if _, err := Acquire(dir); !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("%s: %v", kind, err)
			}
		})
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: afterwards %v, %v", kind, after, err)
		}
	}
}
