package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
)

// Every call leaves a record of where its time went; the parts are no more than the whole.
func TestSpent(t *testing.T) {
	dir := t.TempDir()
	said := ""
	opt := options(dir, oneThread(t))
	opt.Say = func(format string, _ ...any) { said = format }
	most := 0
	var first, last Progress
	opt.Progress = func(p Progress) {
		if most = max(most, p.Runs); p.Run != "" {
			if last = p; first.Run == "" {
				first = p
			}
		}
	}
	s := nanoSpec(40)
	if _, err := Work(context.Background(), s, opt); err != nil {
		t.Fatal(err)
	}
	if runs, err := s.Grid(nil); err != nil || most != 6 || len(runs) != 8 {
		t.Errorf("progress counts %d runs (%v); two rates of two sides, then one more seed of each are 6", most, err)
	}
	if !math.IsNaN(first.Left) || first.Share > 0.1 || !(last.Left >= 0) || last.Share < 0.5 || last.Finished != 5 ||
		last.Runs != 6 {
		t.Errorf("first progress is %+v, in the end %+v", first, last)
	}
	if said != "%s" {
		t.Errorf("the last thing said is %q, not where the time went", said)
	}
	s.Seeds, first = append(s.Seeds, 9), Progress{}
	if _, err := Work(context.Background(), s, opt); err != nil {
		t.Fatal(err)
	}
	if first.Share < 0.5 || !(first.Left > 0) || last.Finished != 7 { // runs and speeds of the first call count
		t.Errorf("first progress of the second call is %+v, in the end %+v", first, last)
	}
	b, err := os.ReadFile(filepath.Join(dir, timeName))
	if err != nil {
		t.Fatal(err)
	}
	var calls []Spent
	if err := json.Unmarshal(b, &calls); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0].Runs != 6 || calls[1].Runs != 2 {
		t.Fatalf("%+v", calls)
	}
	for _, x := range calls {
		if !(x.Training > 0 && x.Evaluating > 0 && x.Data >= 0 && x.Saving > 0 && x.Starting > 0) ||
			x.Training+x.Evaluating+x.Data+x.Saving+x.Starting+x.Idle > x.Total || x.Idle > 0.5*x.Total {
			t.Errorf("%+v: %s", x, x.String())
		}
	}
}

// A damaged record of times is refused before any work, by its path and with what to do; it stays as it is.
func TestDamagedTimes(t *testing.T) {
	for _, text := range []string{"", "{", "{}", `[{"total":"x"}]`, "[] []", `[{"total":1},`, "\x00\x00"} {
		dir := t.TempDir()
		path := filepath.Join(dir, timeName)
		s := nanoSpec(12)
		if err := writeSpec(filepath.Join(dir, specName), s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Work(t.Context(), s, options(dir))
		if c, ok := errors.AsType[*data.CorruptError](err); !ok || c.File != path ||
			!strings.Contains(c.Fault, "delete it") {
			t.Errorf("%q: %v", text, err)
		}
		list, _ := os.ReadDir(dir)
		if b, err := os.ReadFile(path); err != nil || string(b) != text || len(list) != 2 {
			t.Errorf("%q became %q (%v) among %v", text, b, err, list)
		}
	}
}

// Earlier calls are read under the folder's lock: those of a call that ended after this one had looked are kept.
func TestTimesOfAnotherCall(t *testing.T) {
	dir := t.TempDir()
	s := nanoSpec(12)
	if err := writeSpec(filepath.Join(dir, specName), s); err != nil {
		t.Fatal(err)
	}
	l := &lab{Options: options(dir), spec: s, set: setOf(dir)}
	if err := l.mayBegin(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, timeName), []byte(`[{"total":7}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.begin(ctx); !errors.Is(err, context.Canceled) || len(l.watch.before) != 1 ||
		l.watch.before[0].Total != 7 {
		t.Errorf("%+v, %v", l.watch.before, err)
	}
}
