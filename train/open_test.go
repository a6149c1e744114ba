package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/internal/vfs"
)

// small is a disk with little room.
type small struct {
	vfs.OS
	free int64
}

// Free implements vfs.FS.
func (s small) Free(string) (int64, error) { return s.free, nil }

// Reading a run while it trains finds a whole checkpoint every time, although each is deleted when the next is there.
func TestOpenWhileTraining(t *testing.T) {
	opt := options(t, t.TempDir())
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	opt.Report = func(row Row) {
		if row.Step == 3 {
			close(first)
		}
	}
	go func() {
		_, err := Run(ctx, nano(t, "diff", "train.steps=1000000", "train.save_every=1", "train.keep_last=1"), opt)
		done <- err
	}()
	<-first
	steps := map[int]bool{}
	reader := options(t, "").Device
	for range 100 {
		s, err := Open(opt.Dir, func(w string) { t.Error(w) })
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Model(reader)
		if err != nil {
			t.Fatal(err)
		}
		m.Free()
		steps[s.State.Step] = true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if len(steps) < 3 {
		t.Errorf("saw %d steps; the run did not move", len(steps))
	}
}

// A run that has no room for its checkpoints is refused before it begins, with the numbers.
func TestRoomForCheckpoints(t *testing.T) {
	r := nano(t, "diff", "train.steps=3", "train.keep_last=2", "train.save_every=1")
	opt := options(t, t.TempDir())
	size := (&run{recipe: r}).checkpointBytes()
	for _, c := range []struct {
		free int64
		ok   bool
	}{{400 << 10, false}, {3*size - 1, false}, {3 * size, true}} {
		opt.fs = small{free: c.free}
		_, err := Run(context.Background(), r, opt)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, checkpoint.ErrNoSpace) {
			t.Errorf("%d bytes free: %v", c.free, err)
		}
	}
	found, _ := filepath.Glob(filepath.Join(opt.Dir, "checkpoints", "step-*"))
	var bytes int64
	for _, f := range files(t, found[len(found)-1]) {
		bytes += int64(len(f))
	}
	if _, err := os.Stat(opt.Dir); err != nil || bytes > size || bytes < size-64<<10 {
		t.Errorf("a checkpoint took %d bytes, the estimate is %d", bytes, size)
	}
}

// A checkpoint that is there and cannot be used is an error at once; a damaged one after it is told of once.
func TestOpenDoesNotInsist(t *testing.T) {
	opt := options(t, t.TempDir())
	stopAt(t, nano(t, "diff", "train.steps=9", "train.eval_batches=0"), opt, 2)
	rewriteState(t, opt.Dir, func(s map[string]any) { s["format"] = 9 })
	later := filepath.Join(opt.Dir, "checkpoints", "step-00000003")
	if err := os.CopyFS(later, os.DirFS(filepath.Join(opt.Dir, "checkpoints", "step-00000002"))); err != nil {
		t.Fatal(err)
	}
	told := 0
	if _, err := Open(opt.Dir, func(string) { told++ }); err == nil ||
		!strings.Contains(err.Error(), "format 9") || told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
}
