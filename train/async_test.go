package train

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"antiphase/checkpoint"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// Training continues while a checkpoint is written, and no further than the next save: that one waits for it.
func TestSaveGoesOnBeside(t *testing.T) {
	r := nano(t, "diff", "train.steps=9", "train.save_every=3")
	opt := options(t, t.TempDir())
	opt.beside = true
	var reported atomic.Int64
	release := make(chan struct{})
	var once sync.Once
	opt.Report = func(row Row) {
		reported.Store(int64(row.Step))
		if row.Step == 6 { // the save of step 3 is held up until here: it did not hold up the steps
			once.Do(func() { close(release) })
		}
	}
	held := int64(0)
	opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
		if op.Kind == "create" && strings.Contains(op.Path, "step-00000003.tmp") {
			<-release
			atomic.StoreInt64(&held, reported.Load())
		}
		return nil
	}}
	mustRun(t, r, opt)
	if got := atomic.LoadInt64(&held); got != 6 {
		t.Errorf("step 3's files were begun with step %d reported, want 6", got)
	}
	c, err := checkpoint.Load(filepath.Join(opt.Dir, "checkpoints", "step-00000009"))
	if err != nil || c.Step != 9 {
		t.Error(err)
	}
}

// Whatever goes wrong while a checkpoint is written beside training, at any of its operations: what was committed
// stays, the process ends with the error or continues, and the next run resumes to the same bytes.
func TestSaveFaults(t *testing.T) {
	r := nano(t, "diff", "train.steps=8", "train.save_every=2", "train.keep_last=9")
	whole := t.TempDir()
	mustRun(t, r, options(t, whole))
	want := files(t, filepath.Join(whole, "checkpoints", "step-00000008"))
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, at := range []string{"mkdir", "create", "write", "sync", "rename", "syncdir"} {
			dir := t.TempDir()
			opt := options(t, dir)
			opt.beside = true
			var hit atomic.Bool
			opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
				if op.Kind == at && strings.Contains(op.Path, "step-00000004") || at == "syncdir" && op.Kind == at &&
					strings.Contains(op.Path, "00000004") {
					hit.Store(true)
					return fault
				}
				return nil
			}}
			_, err := Run(context.Background(), r, opt)
			if !hit.Load() {
				t.Fatalf("%v at %s: never came to it", fault, at)
			}
			if full := errors.Is(fault, syscall.ENOSPC); full != (err == nil) {
				t.Errorf("%v at %s: %v", fault, at, err)
			}
			old, lerr := checkpoint.Load(filepath.Join(dir, "checkpoints", "step-00000002"))
			if lerr != nil || old.Step != 2 {
				t.Errorf("%v at %s: step 2 was lost: %v", fault, at, lerr)
			}
			opt.fs = nil
			mustRun(t, r, opt)
			sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000008")), want)
		}
	}
}
