//go:build unix

package bench

import (
	"errors"
	"path/filepath"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// A list of lengths is a file: a pipe or a device is refused at once.
func TestOddLengths(t *testing.T) {
	for kind, odd := range vfstest.Odd {
		path := filepath.Join(t.TempDir(), kind)
		if err := odd(path); err != nil {
			t.Fatal(err)
		}
		if l, err := ParseLengths("@" + path); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v, %v", kind, l, err)
		}
	}
}
