package train

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"antiphase/hf"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/metrics"
	"antiphase/recipe"
)

// job is a small run from nothing to an exported model: tokenizer, token set, six steps with checkpoints, metrics,
// export. Done again in the same folder it continues where it stopped.
type job struct {
	recipe recipe.Recipe
	opt    Options // but for the file system
	out    string  // folder of the exported model
}

func newJob(t *testing.T) *job {
	r := nano(t, "diff", "train.steps=6", "train.save_every=2", "train.keep_last=1", "train.eval_every=3",
		"data.sources=synthetic:docs=6,len=128", "data.held_out=0.2", "tokenizer.path=", "tokenizer.vocab=270",
		"tokenizer.docs=2", "model.vocab=320")
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil { // the lock is the kernel's, on a folder of its own
		t.Fatal(err)
	}
	return &job{r, options(t, dir), filepath.Join(filepath.Dir(dir), "model")}
}

// mem is an empty file system that has the folder in which the job's folders will be.
func (j *job) mem(t *testing.T) *vfstest.Mem {
	m := vfstest.NewMem()
	if err := vfs.MkdirAll(m, filepath.Dir(j.opt.Dir)); err != nil {
		t.Fatal(err)
	}
	return m.Clone()
}

func (j *job) do(fsys vfs.FS) error {
	opt := j.opt
	opt.fs = fsys
	if _, err := Run(context.Background(), j.recipe, opt); err != nil {
		return err
	}
	s, err := openFS(fsys, opt.Dir, func(string) {})
	if err != nil {
		return err
	}
	defer s.Close()
	tok, err := s.Tokenizer.MarshalJSON()
	if err != nil {
		return err
	}
	e := &hf.Export{Config: s.Recipe.Model, Values: s.Weights.Float32s, FS: fsys,
		Files: map[string][]byte{"tokenizer.json": tok}}
	return e.Write(j.out, true)
}

// result is all that the job leaves, by path, without what differs from call to call: times in metrics, the lock.
// Nothing else may lie there but what a resume has set aside.
func (j *job) result(m *vfstest.Mem) map[string][]byte {
	out := m.Files(filepath.Dir(j.opt.Dir))
	for name, b := range out {
		switch {
		case strings.HasSuffix(name, metrics.FileName):
			out[name] = timeless(b)
		case strings.Contains(name, ".aside-"):
			delete(out, name)
		}
	}
	return out
}

// timeless is a run's rows without clocks and speeds, and without the checksum over them.
func timeless(b []byte) (out []byte) {
	for line := range bytes.Lines(b) {
		row := map[string]any{}
		if err := json.Unmarshal(line, &row); err != nil {
			return b
		}
		for _, key := range []string{"tok_s", "step_ms", "eval_s", "save_s", "mfu", "eta_s", "wall_s", "time", "crc"} {
			delete(row, key)
		}
		text, _ := json.Marshal(row) // it was JSON before
		out = append(append(out, text...), '\n')
	}
	return out
}

// injection counts what was tried.
type injection struct {
	*job
	want                                            map[string][]byte
	errors, survived, lost, written, mixed, refused int
}

// resumes does the job again on what a fault left, without faults: it must end as if there had been none.
func (x *injection) resumes(t *testing.T, m *vfstest.Mem, when string) {
	t.Helper()
	if err := x.do(m); err != nil {
		x.refused++
		t.Errorf("%s: the next call fails: %v", when, err)
		return
	}
	got := x.result(m)
	for _, name := range slices.Sorted(maps.Keys(x.want)) {
		if !bytes.Equal(got[name], x.want[name]) {
			t.Errorf("%s: then %s has %d bytes that are not the %d of an undisturbed run", when, name, len(got[name]),
				len(x.want[name]))
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s: then %s is left over", when, name)
	}
}

// fails makes operation number at fail once; false when the job has no such operation.
func (x *injection) fails(t *testing.T, at int) bool {
	m := x.mem(t)
	hit := ""
	err := x.do(&vfstest.Faulty{FS: m, Hook: func(op vfstest.Op) error {
		if op.Index != at {
			return nil
		}
		hit = op.String()
		return &os.PathError{Op: op.Kind, Path: op.Path, Err: syscall.EIO}
	}})
	if hit == "" {
		return false
	}
	x.errors++
	switch {
	case err == nil:
		x.survived++
	case !errors.Is(err, syscall.EIO):
		t.Errorf("%s fails: the error does not say so: %v", hit, err)
	}
	x.resumes(t, m, hit+" fails")
	return true
}

// left is what crashes before an operation may leave.
type left struct {
	mem  *vfstest.Mem
	when string
	kind *int // of injection's counts
}

// crashes does the job once and takes, before each operation and at the end, what a crash there may leave: what was
// synced alone, all that was written, and mixed of the two in any order. Each file system is kept once.
func (x *injection) crashes(t *testing.T, mixed int) (list []left) {
	m := x.mem(t)
	seen := map[[32]byte]bool{}
	take := func(left left) {
		key := sha256.Sum256([]byte(left.mem.String()))
		*left.kind++
		if !seen[key] {
			seen[key] = true
			list = append(list, left)
		}
	}
	before := func(op vfstest.Op) error {
		take(left{m.Crash(nil), op.String() + ", crash with nothing more than was synced", &x.lost})
		take(left{m.Clone(), op.String() + ", crash with everything written", &x.written})
		rng := rand.New(rand.NewPCG(21, uint64(op.Index)))
		for range mixed {
			take(left{m.Crash(rng), op.String() + ", crash with some of what was written", &x.mixed})
		}
		return nil
	}
	fsys := &vfstest.Faulty{FS: m, Hook: before}
	if err := x.do(fsys); err != nil {
		t.Fatal(err)
	}
	_ = before(vfstest.Op{Index: fsys.Count(), Kind: "end"})
	return list
}

// TestFaultsOfAWholeRun fails, and crashes at, every file operation of a job. Whatever is left, the same call ends with
// the same bytes. The short form takes every operation of each kind and place a few times; ANTIPHASE_TEST_LONG=1 all of
// them, and mixed crashes. The lock, which is the kernel's, and the cache with the machine's peak, which lies
// elsewhere, are not among them; sources are made up.
func TestFaultsOfAWholeRun(t *testing.T) {
	x := &injection{job: newJob(t)}
	m := x.mem(t)
	var ops []vfstest.Op
	if err := x.do(&vfstest.Faulty{FS: m,
		Hook: func(op vfstest.Op) error { ops = append(ops, op); return nil }}); err != nil {
		t.Fatal(err)
	}
	x.want = x.result(m)
	mixed := 0
	long := os.Getenv("ANTIPHASE_TEST_LONG") != ""
	if long {
		mixed = 3
	}
	tried := map[string]int{}
	few := func(key string) bool { tried[key]++; return long || tried[key] <= 1 }
	for _, op := range ops {
		if few(op.Kind + " " + place(op.Path)) {
			x.fails(t, op.Index)
		}
	}
	list := x.crashes(t, mixed)
	resumed := 0
	for i, left := range list {
		if long || i%max(1, len(list)/50) == 0 {
			resumed++
			x.resumes(t, left.mem, left.when)
		}
	}
	t.Logf("%d operations; %d fail once (%d of them noticed by nobody and harmless); crashes: %d with what was "+
		"synced, %d with everything written, %d mixed: %d different file systems, %d resumed; %d refused, the others "+
		"ended byte-equal",
		len(ops), x.errors, x.survived, x.lost, x.written, x.mixed, len(list), resumed, x.refused)
}

// place is a path without its random parts and numbers.
func place(path string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' {
			return '.'
		}
		return r
	}, filepath.Base(path))
	return fmt.Sprintf("%s/%s", filepath.Base(filepath.Dir(path))[:1], name)
}
