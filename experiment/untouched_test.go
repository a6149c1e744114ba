package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/train"
)

// What is wrong with an experiment's sources is found before anything is made: neither a folder nor a lock is left.
func TestRefusedDataLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short.txt")
	if err := os.WriteFile(short, []byte("too short"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for what, x := range map[string]struct {
		ctx  context.Context
		data string
	}{"short": {t.Context(), short}, "missing": {t.Context(), filepath.Join(dir, "none.txt")},
		"interrupted": {ended, short}} {
		s := nanoSpec(4)
		s.Data = []string{x.data}
		made := filepath.Join(dir, "made")
		_, err := Work(x.ctx, s, options(filepath.Join(made, "deep"), oneThread(t)))
		if err == nil || errors.Is(err, train.ErrInterrupted) != (x.ctx == ended) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder is left (%v)", what, err)
		}
	}
}

// A text that is found to be too short, or not to be that of rows from elsewhere, only once it is tokens leaves a
// folder as it was: the corrected command is taken, and so is the one that the folder was begun with.
func TestRefusedTokensLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	short, long := filepath.Join(dir, "short.txt"), filepath.Join(dir, "long.txt")
	words := "Words of a text that is short.\n\n"
	if err := errors.Join(os.WriteFile(short, []byte(strings.Repeat(words, 12)), 0o644),
		os.WriteFile(long, []byte(strings.Repeat(words, 4000)), 0o644)); err != nil {
		t.Fatal(err)
	}
	with := func(text string) *Spec {
		s := nanoSpec(2)
		s.Data, s.Every, s.Probes, s.Tasks, s.LRs, s.Seeds, s.Archs = []string{text}, 0, nil, []Ask{"outliers"}, nil,
			[]uint64{1}, s.Archs[:1]
		s.Set = []string{"tokenizer.vocab=280"}
		return s
	}
	d := oneThread(t)
	made := filepath.Join(dir, "made")
	refused := func(s *Spec, opt Options) {
		t.Helper()
		var source *data.SourceError
		if _, err := Work(t.Context(), s, opt); !errors.As(err, &source) && !errors.Is(err, ErrOther) {
			t.Errorf("%q in %s: %v", s.Data, opt.Dir, err)
		}
	}
	opt := options(filepath.Join(made, "deep"), d)
	refused(with(short), opt)
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left (%v)", err)
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	refused(with(short), opt)
	if _, err := Work(t.Context(), with(long), opt); err != nil {
		t.Errorf("the corrected command: %v", err)
	}
	large := with(long)
	large.Sizes = append(large.Sizes, "830m")
	refused(large, opt)
	if err := admit(opt.Dir, with(long)); err != nil {
		t.Errorf("the command that the folder was begun with: %v", err)
	}
	other := options(filepath.Join(made, "other"), d)
	other.Have = []string{filepath.Join(opt.Dir, rowsName)}
	if err := os.WriteFile(short, []byte(strings.Repeat(words, 3999)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(with(short), other)
	if _, err := os.Stat(other.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after rows of another text the folder is left (%v)", err)
	}
}
