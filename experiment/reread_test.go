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
	l := &lab{Options: opt, spec: s, set: filepath.Join(opt.Dir, "data"), trained: map[string]int64{}}
	l.watch.start(opt.Dir, 1)
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
	got, err := l.reread(context.Background(), d, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 || !bytes.Equal(withoutTimings(t, got), withoutTimings(t, want)) {
		t.Errorf("%d rows of the model read back, %d of the trained one, or others", len(got), len(want))
	}
}
