package train

import (
	"context"
	"os"
	"strings"
	"testing"
)

// A disk that is full when a row is written costs that row, not the run.
func TestFullDiskCostsRowsOnly(t *testing.T) {
	opt := options(t, t.TempDir())
	var said strings.Builder
	opt.Say = func(f string, _ ...any) { said.WriteString(f) }
	run, err := newRun(context.Background(), nano(t, "diff", "train.steps=3"), &opt)
	if err != nil {
		t.Fatal(err)
	}
	defer run.close()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	run.metrics.close()
	run.metrics.f = full
	if res, err := run.loop(context.Background()); err != nil || res.Steps != 3 {
		t.Errorf("ended at step %d: %v", res.Steps, err)
	}
	if !strings.Contains(said.String(), "not written") || run.metrics.end != 0 {
		t.Errorf("said %q, %d bytes counted as written", said.String(), run.metrics.end)
	}
}
