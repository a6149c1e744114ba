package experiment

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A model that is read back from its checkpoint, as when memory does not suffice for it beside its training, gives the
// rows that the trained one gave.
func TestReread(t *testing.T) {
	d := oneThread(t)
	opt := options(t.TempDir(), d)
	opt.Keep = KeepLast
	s := nanoSpec(12)
	s.LRs = s.LRs[:1]
	rows, err := Work(context.Background(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Options: opt, spec: s, set: filepath.Join(opt.Dir, "data")}
	l.survey.lay(runs)
	l.watch.start(1)
	if l.hash, err = setHash(l.set); err != nil {
		t.Fatal(err)
	}
	r := &runs[1]
	var want []Row
	for _, x := range rows {
		if x.Run == r.Name() && x.Metric != "" {
			want = append(want, x)
		}
	}
	if err := os.RemoveAll(filepath.Join(l.dir(r), "eval")); err != nil { // or it would repeat what was stored
		t.Fatal(err)
	}
	got, err := l.reread(context.Background(), d, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 || !bytes.Equal(withoutTimings(t, got), withoutTimings(t, want)) {
		t.Errorf("%d rows of the model read back, %d of the trained one, or others", len(got), len(want))
	}
}

// Answers of a process that was killed count only for the model that gave them: if its last step was not saved, the run
// takes it again and all questions are asked again.
func TestAnswersOfALostModel(t *testing.T) {
	for keep, again := range map[Keep]bool{KeepNone: true, KeepLast: false} {
		opt := options(t.TempDir(), oneThread(t))
		opt.Keep = keep
		s := nanoSpec(12)
		s.LRs, s.Probes, s.Every, s.Set = s.LRs[:1], nil, 0, nil
		if _, err := Work(context.Background(), s, opt); err != nil {
			t.Fatal(err)
		}
		const run = "nano-diff-lr0.001-s2"
		if err := os.Remove(filepath.Join(opt.Dir, "runs", run, rowsName)); err != nil {
			t.Fatal(err)
		}
		asked := false
		opt.Progress = func(p Progress) { asked = asked || p.Run == run && p.Task != "" }
		if _, err := Work(context.Background(), s, opt); err != nil {
			t.Fatal(err)
		}
		if asked != again {
			t.Errorf("keep %s: asked again: %v", keep, asked)
		}
	}
}
