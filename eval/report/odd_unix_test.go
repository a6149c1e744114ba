//go:build unix

package report

import (
	"os"
	"path/filepath"
	"testing"

	"antiphase/eval"
	"antiphase/internal/vfs/vfstest"
)

// What is no regular file in another folder of the store is nobody's result: it is neither read nor removed.
func TestHarnessOddFiles(t *testing.T) {
	for kind, odd := range vfstest.Odd {
		dir := t.TempDir()
		path := filepath.Join(dir, "other", HarnessFile)
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := odd(path); err != nil {
			t.Fatal(err)
		}
		cell := cellOf(eval.Model{Name: "m", Hash: "h"}, 1, made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil))
		if err := WriteHarness(dir, eval.Assemble([]*eval.Cell{cell})); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed: %v", kind, err)
		}
	}
}
