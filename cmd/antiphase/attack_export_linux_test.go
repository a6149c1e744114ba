package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"antiphase/internal/kill"
)

// TestAttackExport kills exports at random moments: the folder is not there, or is whole; in the end it is that of an
// export that nobody disturbed, and once they are old, nothing of the killed ones is left.
func TestAttackExport(t *testing.T) {
	o := newOrdeal(t)
	call(t, o.dir, 0, "train", "--size", "nano", "--steps", "2", "--dir", "run", "-q")
	call(t, o.dir, 0, "export", "run", "whole", "-q")
	began := time.Now()
	call(t, o.dir, 0, "export", "run", "model", "-q")
	length := time.Since(began)
	start := func() *exec.Cmd {
		cmd := self("export", "run", "model", "--force", "-q")
		cmd.Dir = o.dir
		return cmd
	}
	n, ended, gone := attempts(6, 100), 0, 0
	kill.Moments{From: length / 8, To: length}.Repeat(t, n, start, func(_ int, finished bool) {
		if finished {
			ended++
		}
		if _, err := os.Stat(filepath.Join(o.dir, "model")); err != nil {
			gone++ // between two renames
			return
		}
		o.same("model", "whole")
	})
	left, _ := filepath.Glob(filepath.Join(o.dir, ".model.tmp-*"))
	old := time.Now().Add(-time.Hour)
	for _, dir := range left {
		o.age(dir, old)
	}
	call(t, o.dir, 0, "export", "run", "model", "--force", "-q")
	o.same("model", "whole")
	if rest, _ := filepath.Glob(filepath.Join(o.dir, ".model.tmp-*")); len(rest) > 0 {
		t.Errorf("left %q", rest)
	}
	t.Logf("%d exports killed, %d came to their end between them; the folder was whole each time but %d between two "+
		"renames; %d hidden folders were left and swept", n, ended, gone, len(left))
}

// same checks two folders against each other, file by file.
func (o *ordeal) same(a, b string) {
	o.Helper()
	names, err := os.ReadDir(filepath.Join(o.dir, b))
	if err != nil {
		o.Fatal(err)
	}
	for _, e := range names {
		got, err := os.ReadFile(filepath.Join(o.dir, a, e.Name()))
		want, _ := os.ReadFile(filepath.Join(o.dir, b, e.Name()))
		if err != nil || string(got) != string(want) {
			o.Fatalf("%s: %d bytes that are not the %d of an undisturbed export (%v)", e.Name(), len(got),
				len(want), err)
		}
	}
}

// age makes all in a folder look old.
func (o *ordeal) age(dir string, when time.Time) {
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, when, when)
	})
	if err != nil {
		o.Fatal(err)
	}
}
