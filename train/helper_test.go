package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/recipe"
)

// nano is a run of a second: every architecture trains it in every test that loops over them.
func nano(t testing.TB, arch string, set ...string) recipe.Recipe {
	t.Helper()
	r, err := recipe.Nano(arch)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append([]string{"data.sources=synthetic:docs=60", "train.batch=2", "train.seq_len=16"}, set...) {
		if err := r.SetPair(s); err != nil {
			t.Fatal(err)
		}
	}
	r.Train.MicroBatch = min(r.Train.MicroBatch, r.Train.Batch)
	if r, err = r.Complete(); err != nil {
		t.Fatal(err)
	}
	return r
}

// options gives a folder its own device.
func options(t testing.TB, dir string) Options {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	return Options{Dir: dir, Device: d}
}

func mustRun(t testing.TB, r recipe.Recipe, opt Options) Result {
	t.Helper()
	res, err := Run(context.Background(), r, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// files reads every file of a checkpoint folder.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameFiles(t testing.TB, got, want map[string][]byte) {
	t.Helper()
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			t.Errorf("%s differs (%d and %d bytes)", name, len(got[name]), len(b))
		}
	}
}

// stopAt runs until a step is reported and interrupts there, as Ctrl-C does.
func stopAt(t testing.TB, r recipe.Recipe, opt Options, step int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opt.Report = func(row Row) {
		if row.Step == step {
			cancel()
		}
	}
	if _, err := Run(ctx, r, opt); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("stopped at step %d: %v", step, err)
	}
}

// committing is the machine's files; it notes the steps whose checkpoints are committed.
func committing(steps *[]int) vfs.FS {
	return &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
		name, step := filepath.Base(op.Path), 0
		if op.Kind == "rename" && strings.HasPrefix(name, "step-") && !strings.Contains(name, ".") {
			if _, err := fmt.Sscanf(name, "step-%08d", &step); err == nil {
				*steps = append(*steps, step)
			}
		}
		return nil
	}}
}
