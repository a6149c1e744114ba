package train

import (
	"context"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"

	"antiphase/layer"
)

// full is a disk without room for a row.
type full struct{ rowWriter }

func (full) Write(*Row) error { return fmt.Errorf("metrics: %w", syscall.ENOSPC) }

// A disk that is full when a row is written costs that row, not the run, and is reported once.
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
	if strings.Count(said.String(), "not written") != 1 {
		t.Errorf("said %q", said.String())
	}
}

// Every train.log_every steps a row has gradient norms by kind of parameter; together they are the gradient's norm.
func TestGradientGroups(t *testing.T) {
	for _, a := range layer.Archs() {
		arch := a.Name
		opt := options(t, t.TempDir())
		rows := 0
		opt.Report = func(r Row) {
			if (r.Step%2 == 0) != (len(r.Groups) > 0) {
				t.Errorf("%s: step %d has %d groups", arch, r.Step, len(r.Groups))
			}
			sum := 0.0
			for _, g := range r.Groups {
				sum += g.Norm * g.Norm
			}
			if rows++; len(r.Groups) > 0 && !(math.Abs(math.Sqrt(sum)-r.GradNorm) <= 1e-5*r.GradNorm) {
				t.Errorf("%s: step %d: groups have a norm of %g, the gradient %g", arch, r.Step,
					math.Sqrt(sum), r.GradNorm)
			}
		}
		mustRun(t, nano(t, arch, "train.steps=4", "train.log_every=2"), opt)
		if rows != 4 {
			t.Errorf("%s: %d rows", arch, rows)
		}
	}
}
