//go:build unix

package experiment

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/kill"
	"antiphase/train"
)

var kills = flag.Int("kills", 4, "random ends of TestKill")

// samePage holds the folder's page to its rows: all of it is made of them.
func samePage(t *testing.T, dir string) {
	t.Helper()
	rows, err := ReadRowFiles(filepath.Join(dir, rowsName))
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := (&Options{Dir: dir}).Page(rows).HTML(&want); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, reportName)); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s: the page is not that of its rows (%v)", dir, err)
	}
}

// An experiment that is killed at random moments ends with the rows, and so the page, of one that was not, and
// repeats no finished run.
func TestKill(t *testing.T) {
	wholeDir, dir := t.TempDir(), t.TempDir()
	whole, err := Work(context.Background(), nanoSpec(120), options(wholeDir, oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	finished := map[string]time.Time{}
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		return cmd
	}
	kill.Moments{From: 30 * time.Millisecond, To: 430 * time.Millisecond}.Repeat(t, *kills, start,
		func(killed int, ended bool) {
			if ended {
				t.Logf("finished after %d kills; starting over", killed)
				dir, finished = t.TempDir(), map[string]time.Time{}
			}
			unchanged(t, dir, finished)
		})
	rows, err := Work(context.Background(), nanoSpec(120), options(dir, oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(withoutTimings(t, rows), withoutTimings(t, whole)) {
		t.Error("the rows differ from those of an unbroken experiment")
	}
	samePage(t, dir)
	samePage(t, wholeDir)
	if left, _ := filepath.Glob(filepath.Join(dir, "runs", "*", "checkpoints")); len(left) > 0 {
		t.Errorf("checkpoints are left: %v", left)
	}
}

// unchanged notes which runs are finished and fails where one was finished a second time.
func unchanged(t *testing.T, dir string, finished map[string]time.Time) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(dir, "runs", "*", rowsName))
	for _, path := range list {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if old, ok := finished[path]; ok && !old.Equal(st.ModTime()) {
			t.Errorf("%s was written again", path)
		}
		finished[path] = st.ModTime()
	}
}

// An interruption saves and says so; several runs at once give the same rows; the grid may grow, and nothing else may
// change.
func TestContinue(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	opt := options(dir, oneThread(t), oneThread(t))
	opt.Progress = func(p Progress) {
		if p.Row != nil && p.Row.Step == 20 {
			cancel()
		}
	}
	if _, err := Work(ctx, nanoSpec(60), opt); !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("interrupted: %v", err)
	}
	opt.Progress = func(Progress) {}
	pairs, err := Work(context.Background(), nanoSpec(60), opt)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Work(context.Background(), nanoSpec(60), options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(withoutTimings(t, pairs), withoutTimings(t, alone)) {
		t.Error("two runs at once gave other rows than one after the other")
	}
	measures := func(rows []Row, name string) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return r.Measure == name })
	}
	if measures(pairs, trainSpeed) || !measures(pairs, sharedSpeed) || !measures(alone, trainSpeed) ||
		measures(alone, sharedSpeed) {
		t.Error("speeds of runs that shared a device are not told apart from those of runs alone on it")
	}
	more := nanoSpec(60)
	more.Seeds = append(more.Seeds, 7)
	grown, err := Work(context.Background(), more, options(dir, oneThread(t)))
	if err != nil || len(grown) <= len(pairs) {
		t.Fatalf("a third seed: %d rows after %d (%v)", len(grown), len(pairs), err)
	}
	other := nanoSpec(61)
	other.Seeds = more.Seeds
	if _, err := Work(context.Background(), other, options(dir, oneThread(t))); !errors.Is(err, ErrOther) {
		t.Errorf("other steps in the same folder: %v", err)
	}
	if _, err := Work(context.Background(), nanoSpec(60), options(dir, oneThread(t))); !errors.Is(err, ErrOther) {
		t.Errorf("a seed less: %v", err)
	}
	elsewhere := options(t.TempDir(), oneThread(t))
	elsewhere.Have = []string{filepath.Join(dir, rowsName)}
	began := time.Now()
	taken, err := Work(context.Background(), more, elsewhere)
	if err != nil || !bytes.Equal(withoutTimings(t, taken), withoutTimings(t, grown)) {
		t.Errorf("rows from elsewhere: %d of %d (%v)", len(taken), len(grown), err)
	}
	t.Logf("with all rows from elsewhere: %s", time.Since(began))
}

// The page of an experiment that was stopped says how many of its runs there are and which are missing; that of a
// finished one does not.
func TestUnfinishedPage(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	opt := options(dir, oneThread(t))
	opt.Progress = func(p Progress) {
		if p.Finished == 4 { // every rate of both architectures has one seed
			cancel()
		}
	}
	if _, err := Work(ctx, nanoSpec(12), opt); !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("interrupted: %v", err)
	}
	page := func() string {
		b, err := os.ReadFile(filepath.Join(dir, reportName))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := page(); !strings.Contains(s,
		"Unfinished: 4 of 6 runs are there; nano transformer seed 2, nano diff seed 2 missing.") {
		t.Errorf("the page does not say what is missing: %.2000s", s[strings.Index(s, "<body"):])
	}
	opt.Progress = func(Progress) {}
	if _, err := Work(context.Background(), nanoSpec(12), opt); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page(), "Unfinished:") {
		t.Error("the page of a finished experiment calls it unfinished")
	}
}
