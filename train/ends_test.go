package train

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"antiphase/checkpoint"
	"antiphase/dist/disttest"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/recipe"
)

// A full disk costs a checkpoint that a later one replaces, not the last: at the end of a run, and where it is
// interrupted, Run fails with the reason. So does every checkpoint of a strict run.
func TestLastCheckpointOnAFullDisk(t *testing.T) {
	for name, x := range map[string]struct {
		full   string // the checkpoint without room
		stop   int    // interrupted after this step
		strict bool
		fails  bool
	}{
		"a later one": {"step-00000002", 0, false, false}, "the last": {"step-00000006", 0, false, true},
		"of an interruption": {"step-00000003", 3, false, true}, "of a strict run": {"step-00000002", 0, true, true},
	} {
		for _, beside := range []bool{false, true} {
			opt := options(t, t.TempDir())
			opt.beside = beside
			said := saying(&opt)
			ctx, cancel := context.WithCancel(t.Context())
			opt.Report = func(row Row) {
				if row.Step == x.stop {
					cancel()
				}
			}
			opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
				if op.Kind == "create" && strings.Contains(op.Path, x.full) {
					return syscall.ENOSPC
				}
				return nil
			}}
			r := nano(t, "diff", "train.steps=6", "train.save_every=2")
			r.Train.StrictSave = x.strict
			_, err := Run(ctx, r, opt)
			cancel()
			if (err != nil) != x.fails || x.fails && !errors.Is(err, checkpoint.ErrNoSpace) ||
				errors.Is(err, ErrInterrupted) {
				t.Errorf("%s, beside %v: %v", name, beside, err)
			}
			if again := strings.Contains(said.String(), "not written, trying again at the next one"); again == x.fails {
				t.Errorf("%s, beside %v: said %q", name, beside, said)
			}
		}
	}
}

// Ranks that follow say and report nothing, whatever their options, and do not save by age: that is for one process.
func TestFollowersAreSilent(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.batch=4", "train.steps=3", "train.save_every=0", "train.eval_batches=0")
	if _, err := runRanks(t, r, dir, 2, false, func(rank int, opt *Options, _ *recipe.Recipe) {
		opt.SaveAfter = time.Nanosecond
		if rank > 0 {
			opt.Say = func(f string, _ ...any) { t.Errorf("a follower said %s", f) }
			opt.Report = func(Row) { t.Error("a follower reported a row") }
			opt.Progress = func(string, int64, int64) { t.Error("a follower reported progress") }
		}
	}); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*")); len(found) != 1 {
		t.Errorf("saved %q", found)
	}
}

// alone is a rank whose fellows never come.
type alone struct {
	member
	end chan struct{}
}

func (a alone) Agree(string, map[string]string) error { <-a.end; return nil }

// A rank that follows stops waiting for the first one when its context ends, and says if it sees another folder.
func TestFollowersWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	end := make(chan struct{})
	defer close(end)
	if err := waitPrepared(ctx, alone{end: end}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "none")
	r := nano(t, "diff", "train.batch=4", "train.steps=2", "tokenizer.path=", "tokenizer.vocab=257")
	_, err := runRanks(t, r, t.TempDir(), 2, false,
		func(rank int, opt *Options, _ *recipe.Recipe) {
			if rank == 1 {
				opt.Dir = elsewhere
			}
		})
	if err == nil || !strings.Contains(err.Error(), "all ranks must see one run folder, "+elsewhere) {
		t.Errorf("another folder: %v", err)
	}
	if _, err := os.Stat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the other folder is made (%v)", err)
	}
	own := member{disttest.NewWorld(1, disttest.Options{}).Comm(0), newFacts(1)}
	if err := waitPrepared(t.Context(), own); err != nil {
		t.Error(err)
	}
}

// The tokenizer of several runs lies where they say, and is trained once.
func TestSharedTokenizer(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared.json")
	r := nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=258", "tokenizer.docs=5")
	var hashes []string
	for i := range 2 {
		trained := false
		opt := Options{Dir: t.TempDir(), Tokenizer: shared, fs: vfs.OS{},
			Progress: func(string, int64, int64) { trained = true }}
		tok, err := prepareTokenizer(t.Context(), r, &opt)
		if err != nil {
			t.Fatal(err)
		}
		if hashes = append(hashes, tok.Hash()); trained != (i == 0) || hashes[0] != hashes[i] {
			t.Errorf("run %d: trained %v, hashes %q", i, trained, hashes)
		}
		if _, err := os.Stat(filepath.Join(opt.Dir, "tokenizer.json")); err == nil {
			t.Error("a run has a tokenizer of its own")
		}
	}
}
