package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/checkpoint"
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
	if _, err := Run(context.Background(), r, denied); !errors.Is(err, checkpoint.ErrUnreadable) || !strings.Contains(err.Error(), newest) {
		t.Errorf("unreadable: %v", err)
	}
	sameFiles(t, files(t, newest), before)

	manifest := filepath.Join(newest, "MANIFEST.json")
	later := strings.Replace(string(before["MANIFEST.json"]), `"format": 1`, `"format": 2, "made_by": "tomorrow"`, 1)
	later = strings.Replace(later, `"sum": "`, `"sum": "00`, 1)
	if err := os.WriteFile(manifest, []byte(later), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), r, opt); !errors.Is(err, checkpoint.ErrNewer) || !strings.Contains(err.Error(), newest) {
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
	sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000012")), files(t, filepath.Join(whole, "checkpoints", "step-00000012")))
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
