package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/recipe"
)

// saying collects what a run says.
func saying(opt *Options) *strings.Builder {
	var b strings.Builder
	opt.Say = func(f string, args ...any) { fmt.Fprintf(&b, f+"\n", args...) }
	return &b
}

// file writes a text and gives its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Data that is too little to hold anything out is trained on with a warning, unless nothing was to be held out; where
// the held-out text will be judged it is refused.
func TestTooLittleToHoldOut(t *testing.T) {
	small := file(t, "small.txt", strings.Repeat("a few words. ", 20))
	for _, x := range []struct {
		share          string
		judged         bool
		warned, failed bool
	}{{"0.01", false, true, false}, {"0", false, false, false}, {"0.01", true, false, true}, {"0", true, false, true}} {
		opt := options(t, t.TempDir())
		said := saying(&opt)
		opt.Judged = x.judged
		res, err := Run(t.Context(), nano(t, "diff", "train.steps=2", "data.held_out_by=documents",
			"data.sources="+small, "data.held_out="+x.share), opt)
		if (err != nil) != x.failed || res.Valid != 0 ||
			strings.Contains(said.String(), "no held-out loss will be measured") != x.warned {
			t.Errorf("%+v: %+v, %v; said %q", x, res, err, said)
		}
	}
}

// Sources that share text are named where some of it is held out; documents that are left out are counted.
func TestSourcesAreJudged(t *testing.T) {
	dir := t.TempDir()
	lines := `{"text": "good words here and there"}` + "\n" + `{"text": ""}` + "\n"
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(lines, 20)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for held, warned := range map[string]bool{"0.2": true, "0": false} {
		opt := options(t, t.TempDir())
		said := saying(&opt)
		stages := map[string]int64{}
		opt.Progress = func(stage string, done, _ int64) { stages[stage] = done }
		r := nano(t, "diff", "train.steps=1",
			`data.sources=["`+filepath.ToSlash(dir)+`", "`+filepath.ToSlash(filepath.Join(dir, "a.jsonl"))+`"]`,
			"data.held_out="+held)
		mustRun(t, r, opt)
		src, err := Sources(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(Overlaps(r, src)) > 0; got != warned || strings.Contains(said.String(), "warning: ") != warned {
			t.Errorf("held out %s: overlaps %v, said %q", held, got, said)
		}
		if !strings.Contains(said.String(), "left out 0 documents that are not UTF-8 and 40 that are empty, of 80") ||
			stages["tokens"] == 0 {
			t.Errorf("said %q, %v", said, stages)
		}
	}
	if _, err := Sources(recipe.Recipe{Data: recipe.Data{Sources: recipe.Paths("/not/there")}}); err == nil {
		t.Error("a source that is not there")
	}
}

// Rows that cannot be written for want of room are announced once, written again when there is room, and lost where
// nothing was; the next time is announced again. Training goes on. Another error of the file ends it.
func TestRowsWithoutRoom(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		opt := options(t, t.TempDir())
		said := saying(&opt)
		row := 0
		opt.Report = func(r Row) { row = r.Step }
		opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
			if op.Kind == "write" && strings.HasSuffix(op.Path, "metrics.jsonl") && (row >= 2 && row < 4 || row == 6) {
				return fault
			}
			return nil
		}}
		res, err := Run(t.Context(), nano(t, "diff", "train.steps=8"), opt)
		if full := fault == syscall.ENOSPC; full != (err == nil) || full &&
			(res.Steps != 8 || strings.Count(said.String(), "warning: rows from step") != 2 ||
				!strings.Contains(said.String(), "rows from step 3 are not written until there is room") ||
				!strings.Contains(said.String(), "rows from step 7 are")) {
			t.Errorf("%v: %+v, %v; said %q", fault, res, err, said)
		}
	}
}

// A checkpoint that is asked for is said and made; a run says where it resumes; ranks that follow say nothing.
func TestRunsSayWhatTheyDo(t *testing.T) {
	opt := options(t, t.TempDir())
	said := saying(&opt)
	save := make(chan struct{}, 1)
	opt.Save = save
	opt.Report = func(r Row) {
		if r.Step == 2 {
			save <- struct{}{}
		}
	}
	r := nano(t, "diff", "train.steps=5", "train.save_every=0", "train.keep_last=9")
	mustRun(t, r, opt)
	if !strings.Contains(said.String(), "saving step 2, as asked") {
		t.Errorf("said %q", said)
	}
	if _, err := os.Stat(filepath.Join(opt.Dir, "checkpoints", "step-00000002")); err != nil {
		t.Error(err)
	}
	longer := r
	longer.Train.Steps, longer.Name = 7, "other"
	said.Reset()
	mustRun(t, longer, opt)
	for _, want := range []string{"resuming from step 5 of 7", "changed: train.steps: was 5, is 7",
		"changed: name: was nano-diff, is other"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	changed := longer
	changed.Train.Steps, changed.Optim.LR = 9, 0.5
	_, err := Run(context.Background(), changed, opt)
	if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "optim.lr: was 0.003, is 0.5") ||
		!strings.Contains(err.Error(), "use another folder, the old values, or --force") {
		t.Errorf("%v", err)
	}
	changed.Model.FFN = 64
	if _, err = Run(context.Background(), changed, opt); !strings.Contains(fmt.Sprint(err),
		"model.ffn: was 88, is 64 (fixed when the run began)") || strings.Contains(err.Error(), "or --force") {
		t.Errorf("%v", err)
	}
	var corrupt *data.CorruptError
	if errors.As(err, &corrupt) {
		t.Error("a changed recipe is no corrupt data")
	}
}
