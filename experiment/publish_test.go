package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files of the experiment that cannot be written or read are reported once and not as the fault of a run, although each
// finished run writes them and the end of the work does so again.
func TestUnpublishedOnce(t *testing.T) {
	for _, name := range []string{rowsName, csvName, reportName} {
		dir := t.TempDir()
		s := nanoSpec(4)
		s.Probes, s.Every = nil, 0
		opt := options(dir, oneThread(t))
		opt.Progress = func(p Progress) {
			if p.Run != "" { // a folder that is not empty when the work begins is refused
				_ = os.MkdirAll(filepath.Join(dir, name), 0o755)
			}
		}
		_, err := Work(context.Background(), s, opt)
		if err == nil {
			t.Fatalf("%s is a folder, and nothing was said", name)
		}
		if text := err.Error(); strings.Count(text, name) != 1 || strings.Contains(text, "\n") ||
			strings.HasPrefix(text, "nano-") {
			t.Errorf("%s is a folder: %s", name, text)
		}
	}
}

// The same holds for the rows of a finished run that are damaged.
func TestDamagedRowsOnce(t *testing.T) {
	dir := t.TempDir()
	s := nanoSpec(4)
	s.Probes, s.Every = nil, 0
	if _, err := Work(context.Background(), s, options(dir, oneThread(t))); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "runs", runs[0].Name(), rowsName)
	if err := os.WriteFile(name, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Work(context.Background(), s, options(dir, oneThread(t)))
	if err == nil || strings.Count(err.Error(), name) != 1 {
		t.Errorf("damaged rows of a run: %v", err)
	}
}
