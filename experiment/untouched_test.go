package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"antiphase/train"
)

// What is wrong with an experiment's sources is found before anything is made: neither a folder nor a lock is left.
func TestRefusedDataLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short.txt")
	if err := os.WriteFile(short, []byte("too short"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for what, x := range map[string]struct {
		ctx  context.Context
		data string
	}{"short": {t.Context(), short}, "missing": {t.Context(), filepath.Join(dir, "none.txt")},
		"interrupted": {ended, short}} {
		s := nanoSpec(4)
		s.Data = []string{x.data}
		made := filepath.Join(dir, "made")
		_, err := Work(x.ctx, s, options(filepath.Join(made, "deep"), oneThread(t)))
		if err == nil || errors.Is(err, train.ErrInterrupted) != (x.ctx == ended) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder is left (%v)", what, err)
		}
	}
}
