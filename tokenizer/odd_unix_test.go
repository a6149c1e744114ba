//go:build unix

package tokenizer

import (
	"errors"
	"path/filepath"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// A pipe or a device is no tokenizer, wherever it lies: it is refused at once.
func TestOddTokenizers(t *testing.T) {
	for kind, odd := range vfstest.Odd {
		path := filepath.Join(t.TempDir(), kind)
		if err := odd(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
