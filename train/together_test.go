package train

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// failedSaves are operations of one rank that fail at step 2, and whether the run goes on.
var failedSaves = map[string]struct {
	rank     int
	kind, at string // of the operation that fails at step 2
	fault    error
	strict   bool
	goesOn   bool
}{
	"the follower's disk is full":            {1, "create", "optimizer-rank-00001", syscall.ENOSPC, false, true},
	"the leader's disk is full":              {0, "create", "model-rank-00000", syscall.ENOSPC, false, true},
	"the follower's disk is full and strict": {1, "create", "optimizer-rank-00001", syscall.ENOSPC, true, false},
	"the follower fails":                     {1, "create", "model-rank-00001", syscall.EIO, false, false},
	"the leader fails":                       {0, "create", "state.json", syscall.EIO, false, false},
	"no draft can be begun":                  {0, "mkdir", "step-00000002.tmp-", syscall.EIO, false, false},
	"the leader cannot commit":               {0, "create", "MANIFEST.json", syscall.EIO, false, false},
	"the leader has no room to commit":       {0, "create", "MANIFEST.json", syscall.ENOSPC, false, true},
}

// A save of several ranks fails for all if one of them fails, wherever that is: nothing of it is left, and what was
// saved before stays. A full disk is retried at the next save, unless the recipe is strict.
func TestOneRankCannotSave(t *testing.T) {
	for name, x := range failedSaves {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := nano(t, "diff", "train.batch=4", "train.micro_batch=2", "train.steps=4", "train.save_every=1",
				"train.keep_last=9", "train.eval_batches=0")
			r.Train.StrictSave = x.strict
			var mu sync.Mutex
			hits, warned := 0, 0
			rows, err := runRanks(t, r, dir, 2, true, func(rank int, opt *Options, _ *recipe.Recipe) {
				if rank == 0 {
					opt.Say = func(f string, _ ...any) {
						if strings.HasPrefix(f, "warning:") {
							warned++
						}
					}
				}
				opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
					mu.Lock()
					defer mu.Unlock()
					if rank == x.rank && op.Kind == x.kind && strings.Contains(op.Path, "step-00000002.tmp-") &&
						strings.Contains(op.Path, x.at) {
						hits++
						return x.fault
					}
					return nil
				}}
			})
			if hits == 0 || (warned > 0) != x.goesOn {
				t.Fatalf("failed %d times, warned %d times", hits, warned)
			}
			if x.goesOn != (err == nil) || !x.goesOn && (len(rows) != 2 || !strings.Contains(err.Error(), "step 2")) {
				t.Errorf("%d rows, %v", len(rows), err)
			}
			store, failed := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
			if failed != nil {
				t.Fatal(failed)
			}
			var want []int64
			if want = []int64{1}; x.goesOn {
				want = []int64{1, 3, 4}
			}
			steps, _ := store.Steps()
			if len(steps) != len(want) {
				t.Errorf("checkpoints of steps %v, want %v", steps, want)
			}
			for _, step := range steps {
				if _, err := store.At(step); err != nil {
					t.Error(err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*.tmp-*")); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

// A set that its builder hands over is taken as it is: its own tokenizer, whatever the recipe names, and sources that
// are not there are not missed. A set that the recipe names must have the recipe's tokenizer.
func TestSetOfABuilder(t *testing.T) {
	made := nano(t, "diff")
	set := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), made, set, tokenizer.Bytes(), &Options{}); err != nil {
		t.Fatal(err)
	}
	opt := options(t, t.TempDir())
	opt.Data, opt.Built = set, true
	r := nano(t, "diff", "train.steps=4", "tokenizer.path="+filepath.Join(t.TempDir(), "none.json"),
		"data.sources=/not/there")
	stopAt(t, r, opt, 2)
	if res := mustRun(t, r, opt); res.Resumed != 2 || res.Steps != 4 {
		t.Errorf("%+v", res)
	}
	whole := options(t, t.TempDir())
	mustRun(t, nano(t, "diff", "train.steps=4"), whole)
	a, b := newestState(t, opt.Dir), newestState(t, whole.Dir)
	if a.Loss != b.Loss || a.Data.Dataset != b.Data.Dataset {
		t.Errorf("loss %g on a handed set, %g on one's own", a.Loss, b.Loss)
	}
	small := filepath.Join(t.TempDir(), "tokenizer.json")
	tok, err := MakeTokenizer(t.Context(), nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=258"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(vfs.OS{}, small, file); err != nil {
		t.Fatal(err)
	}
	var corrupt *data.CorruptError
	_, err = Run(t.Context(), nano(t, "diff", "data.sources="+set, "tokenizer.path="+small), options(t, t.TempDir()))
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "name the one it was built with") {
		t.Errorf("another tokenizer: %v", err)
	}
	if _, err := Run(t.Context(), nano(t, "diff", "data.sources="+set, "tokenizer.path=/not/there.json"),
		options(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), "load tokenizer") {
		t.Errorf("a tokenizer that is not there: %v", err)
	}
}
