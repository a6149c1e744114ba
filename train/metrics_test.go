package train

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// full is a disk without room for a row.
type full struct{ rowWriter }

func (full) Write(*Row) error { return fmt.Errorf("metrics: %w", syscall.ENOSPC) }

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
	run.metrics = full{run.metrics}
	if res, err := run.loop(context.Background()); err != nil || res.Steps != 3 {
		t.Errorf("ended at step %d: %v", res.Steps, err)
	}
	if strings.Count(said.String(), "not written") != 3 {
		t.Errorf("said %q", said.String())
	}
}
