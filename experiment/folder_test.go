package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/tokenizer"
)

// Runs that need not be repeated: those of the folder and those of other files, each once; a folder of another
// experiment is refused, and nothing is changed.
func TestFinished(t *testing.T) {
	dir := t.TempDir()
	s := nanoSpec(4)
	s.Archs, s.LRs, s.TuneSeeds, s.Probes, s.Every = s.Archs[:1], nil, 0, nil, 0
	opt := options(dir, oneThread(t))
	if list, err := s.Finished(opt); err != nil || len(list) != 0 {
		t.Errorf("an empty folder: %d runs, %v", len(list), err)
	}
	if _, err := os.Stat(filepath.Join(dir, specName)); err == nil {
		t.Error("asking wrote a spec")
	}
	one := *s
	one.Seeds = s.Seeds[:1]
	if _, err := Work(context.Background(), &one, opt); err != nil {
		t.Fatal(err)
	}
	list, err := s.Finished(opt)
	if err != nil || len(list) != 1 || list[0].Seed != 1 {
		t.Errorf("%d runs are finished, %v", len(list), err)
	}
	have := filepath.Join(dir, rowsName)
	elsewhere := Options{Dir: filepath.Join(t.TempDir(), "new"), Have: []string{have}}
	if list, err := s.Finished(elsewhere); err != nil || len(list) != 1 ||
		list[0].Name() != "nano-transformer-lr0.003-s1" {
		t.Errorf("%d runs of another machine, %v", len(list), err)
	}
	if _, err := os.Stat(elsewhere.Dir); err == nil {
		t.Error("asking made a folder")
	}
	other := *s
	other.Steps = 5
	if _, err := other.Finished(opt); !errors.Is(err, ErrOther) {
		t.Errorf("another experiment's folder: %v", err)
	}
	checkSets(t, dir, s)
}

// checkSets holds the token set of a finished experiment to what later calls need of it.
func checkSets(t *testing.T, dir string, s *Spec) {
	t.Helper()
	set := filepath.Join(dir, "data")
	m, err := data.ReadManifest(set)
	if err != nil {
		t.Fatal(err)
	}
	if hash, err := setHash(set); err != nil || len(hash) != 16 || !strings.HasPrefix(m.Hash, hash) {
		t.Errorf("hash %q of %q (%v)", hash, m.Hash, err)
	}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	held := int64(0)
	for _, x := range m.Sources {
		held += x.HeldOut
	}
	left := m.Tokens - held // to train on
	for _, x := range []struct {
		batch int64
		says  string
	}{{left, ""}, {left + 1, "tokens to train on, one batch of nano takes"}} {
		runs[0].Recipe.Train.Batch, runs[0].Recipe.Train.SeqLen = int(x.batch), 1
		err := fills(set, runs[:1])
		if (err == nil) != (x.says == "") || err != nil &&
			(!errors.As(err, new(*data.SourceError)) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("a batch of %d of %d tokens: %v", x.batch, left, err)
		}
	}
	r := runs[1].Recipe
	r.Tokenizer.Path, r.Model.Vocab = "bytes", 100
	if err := prepare(context.Background(), t.TempDir(), r, nil); err == nil ||
		!strings.Contains(err.Error(), "model.vocab is 100: --set model.vocab=320") {
		t.Errorf("a vocabulary of 100 for %d ids: %v", tokenizer.Bytes().Vocab(), err)
	}
}

// A folder may hold a lock and the remains of a spec, and nothing else.
func TestEmptyFolder(t *testing.T) {
	for name, good := range map[string]bool{"LOCK": true, specName + ".tmp-123": true, "notes": false, ".hidden": false,
		"data": false, specName + ".bak": false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := empty(dir); (err == nil) != good || err != nil &&
			(!errors.Is(err, ErrOther) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := empty(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := empty(t.TempDir()); err != nil {
		t.Errorf("nothing in it: %v", err)
	}
}
