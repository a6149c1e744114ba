package train

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/checkpoint"
	"antiphase/internal/flock"
	"antiphase/internal/safetensors"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// A checkpoint that the system does not let us read, or that a newer program wrote, ends a resume and stays as it is.
func TestResumeKeepsWhatItCannotRead(t *testing.T) {
	r := nano(t, "diff", "train.steps=12", "train.save_every=3")
	whole, dir := t.TempDir(), t.TempDir()
	mustRun(t, r, options(t, whole))
	opt := options(t, dir)
	stopAt(t, r, opt, 7)
	newest := filepath.Join(dir, "checkpoints", "step-00000007")
	before := files(t, newest)

	denied := opt
	denied.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
		if op.Kind == "open" && strings.HasSuffix(op.Path, filepath.Join("step-00000007", "model.safetensors")) {
			return syscall.EACCES
		}
		return nil
	}}
	if _, err := Run(context.Background(), r, denied); !errors.Is(err, checkpoint.ErrUnreadable) ||
		!strings.Contains(err.Error(), newest) {
		t.Errorf("unreadable: %v", err)
	}
	sameFiles(t, files(t, newest), before)

	manifest := filepath.Join(newest, "MANIFEST.json")
	later := strings.Replace(string(before["MANIFEST.json"]), `"format": 1`, `"format": 2, "made_by": "tomorrow"`, 1)
	later = strings.Replace(later, `"sum": "`, `"sum": "00`, 1)
	if err := os.WriteFile(manifest, []byte(later), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), r, opt); !errors.Is(err, checkpoint.ErrNewer) ||
		!strings.Contains(err.Error(), newest) {
		t.Errorf("newer: %v", err)
	}
	if b, err := os.ReadFile(manifest); err != nil || string(b) != later {
		t.Errorf("the newer checkpoint was touched: %v", err)
	}

	if err := os.WriteFile(manifest, before["MANIFEST.json"], 0o644); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, r, opt); res.Resumed != 7 {
		t.Errorf("resumed from %d, want 7", res.Resumed)
	}
	sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000012")),
		files(t, filepath.Join(whole, "checkpoints", "step-00000012")))
}

// A damaged checkpoint that a resume walks past is renamed, with every byte, and not deleted.
func TestResumeSetsDamageAside(t *testing.T) {
	r := nano(t, "diff", "train.steps=8", "train.save_every=3")
	dir := t.TempDir()
	opt := options(t, dir)
	stopAt(t, r, opt, 7)
	newest := filepath.Join(dir, "checkpoints", "step-00000007")
	if err := os.WriteFile(filepath.Join(newest, "state.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := files(t, newest)
	if res := mustRun(t, r, opt); res.Resumed != 6 {
		t.Fatalf("resumed from %d, want 6", res.Resumed)
	}
	kept, _ := filepath.Glob(newest + ".damaged-*")
	if len(kept) != 1 {
		t.Fatalf("kept %q", kept)
	}
	sameFiles(t, files(t, kept[0]), before)
}

// What a killed process left is swept at the next start, and nothing else: not a folder of the user's, not another's.
func TestStaleTemporariesAreSwept(t *testing.T) {
	dir := t.TempDir()
	rubbish := []string{"data.tmp-123/shard", "recipe.json.tmp-9", "tokenizer.json.tmp-77",
		"tokenizer.json.origin.tmp-5"}
	mine := []string{"data-of-mine/x", "notes.tmp-1", "recipe.json.bak", "my-data.tmp-1"}
	for _, name := range append(rubbish, mine...) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, nano(t, "diff", "train.steps=1"), options(t, dir))
	for _, name := range rubbish {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range mine {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A link where the run writes a file is not written through.
func TestNoFileIsWrittenThroughALink(t *testing.T) {
	thesis := filepath.Join(t.TempDir(), "thesis")
	for _, name := range []string{"LOCK", "metrics.jsonl", "recipe.json", "recipe.json.tmp", "checkpoints/latest"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(thesis, []byte("years of work"), 0o644),
			os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
			t.Fatal(err)
		}
		vfstest.Symlink(t, thesis, path)
		if lock := filepath.Join(dir, flock.Name); lock != path { // a folder in which a run began
			if err := os.WriteFile(lock, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Run(context.Background(), nano(t, "diff", "train.steps=2"), options(t, dir))
		if refused := errors.Is(err, vfs.ErrLink); err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := os.ReadFile(thesis); string(b) != "years of work" {
			t.Errorf("%s: the file it points to now reads %.20q", name, b)
		}
	}
}

// shortened is a file of tensors in which one has a value less.
func shortened(t *testing.T, path string, which func(names []string) string) []byte {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []safetensors.Entry
	for _, name := range f.Names() {
		x, err := f.Float32s(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == which(f.Names()) {
			x = x[1:]
		}
		list = append(list, safetensors.FromFloat32s(name, "F32", []int{len(x)}, x))
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Tensor files that are not what they should be although their hashes are right: bad input, which no restart mends.
func TestDamagedBeforeHashing(t *testing.T) {
	r := nano(t, "diff", "train.steps=2", "train.save_every=0")
	first, last := func(names []string) string { return names[0] },
		func(names []string) string { return names[len(names)-1] }
	for _, c := range []struct {
		name  string
		which func([]string) string // is shortened; nil: the file is cut
		want  string
	}{
		{"model.safetensors", nil, "model.safetensors"}, {"optimizer.safetensors", nil, "optimizer.safetensors"},
		{"model.safetensors", first, ""}, {"optimizer.safetensors", first, `tensor "m/`},
		{"optimizer.safetensors", last, `tensor "v/`},
	} {
		opt := options(t, t.TempDir())
		mustRun(t, r, opt)
		store, err := checkpoint.Open(opt.Dir, checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(opt.Dir, "checkpoints", "step-00000002")
		var list []checkpoint.File
		for n, b := range files(t, dir) {
			switch {
			case n == c.name && c.which == nil:
				b = b[:len(b)-100]
			case n == c.name:
				b = shortened(t, filepath.Join(dir, n), c.which)
			}
			if n != "MANIFEST.json" {
				list = append(list, checkpoint.File{Name: n, Write: bytesTo(b)})
			}
		}
		if err := store.Save(2, list); err != nil {
			t.Fatal(err)
		}
		longer := r
		longer.Train.Steps = 3
		if _, err := Run(context.Background(), longer, opt); !errors.Is(err, checkpoint.ErrDamaged) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
