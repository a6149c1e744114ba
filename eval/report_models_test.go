package eval

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"antiphase/device/cpu"
)

// The whole way: two models, every task, one report in three forms.
func TestReportOfModels(t *testing.T) {
	ctx := context.Background()
	sp := heldOut(t)
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	report := &Report{Title: "Two tiny models"}
	for _, arch := range []string{"transformer", "diff"} {
		s := subject(t, d, arch, 320)
		side := Side{Name: s.Name, Arch: arch}
		steps := []func() error{
			func() (err error) { side.Loss, err = Loss(ctx, s, sp, LossOptions{SeqLen: 64, Batches: 2}); return },
			func() error {
				n, err := Needle(ctx, s, NeedleOptions{Needles: 1, Queries: 1, Depths: Depths, Samples: 1, Bytes: 220, Digits: 3})
				side.Needles = append(side.Needles, n)
				return err
			},
			func() (err error) { side.Attention, err = Attention(ctx, s, smallNeedle); return },
			func() (err error) { side.Outliers, err = Outliers(ctx, s, sp, 32, 2); return },
			func() error {
				m, err := Maps(ctx, s, shortNeedle(), MapOptions{})
				side.Maps = append(side.Maps, m)
				return err
			},
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatalf("%s: task %d: %v", arch, i, err)
			}
		}
		side.Lambda = s.Model.Lambdas(nil)
		report.Sides = append(report.Sides, side)
	}
	if err := report.JSON(new(bytes.Buffer)); err != nil {
		t.Error(err)
	}
	page := render(t, report)
	wellFormed(t, page)
	if n := strings.Count(page, "<svg"); n != 1+1+3+1+1+3+1+1 { // position, needle, panels, layers, maps, scale, λ
		t.Errorf("%d drawings", n)
	}
	if table := report.Table(false); !strings.Contains(table, "attention to the answer") || strings.Contains(table, "NaN") {
		t.Errorf("table:\n%s", table)
	}
}
