package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"antiphase/checkpoint"
)

// A run folder that cannot be written leaves nothing, neither itself nor a hidden folder beside it.
func TestNewRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	err := newRun(filepath.Join(dir, "run"),
		[]checkpoint.File{{Name: "a",
			Write: func(w io.Writer) error { _, err := w.Write([]byte("x")); return errors.Join(err, broken) }}})
	if list, _ := os.ReadDir(dir); !errors.Is(err, broken) || len(list) > 0 {
		t.Errorf("%v, left %v", err, list)
	}
	if err := newRun(filepath.Join(dir, "run"),
		[]checkpoint.File{{Name: "a",
			Write: func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }}}); err != nil {
		t.Error(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 || list[0].Name() != "run" {
		t.Errorf("wrote %v", list)
	}
}
