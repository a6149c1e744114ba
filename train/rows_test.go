package train

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"antiphase/data"
)

// What OpenRows says of a step is what the step was given, in both orders, before and after there is a checkpoint.
func TestRowsAreTheSteps(t *testing.T) {
	for _, order := range []string{"random", "stream"} {
		r := nano(t, "diff", "train.steps=9", "train.save_every=4", "data.sources=synthetic:docs=6,len=128", "data.held_out=0.2", "data.order="+order)
		opt := options(t, t.TempDir())
		opt.Say = func(string, ...any) {}
		run, err := newRun(context.Background(), r, &opt)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := OpenRows(opt.Dir, "", data.Train, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 9; n++ {
			if err := run.step(); err != nil {
				t.Fatal(err)
			}
			if err := rows.At(n); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rows.IDs, run.batch.IDs) || !slices.Equal(rows.Targets, run.batch.Targets) || !slices.Equal(rows.Starts, run.starts) {
				t.Fatalf("%s: step %d saw other rows", order, n)
			}
			if n == 3 {
				if err := rows.At(7); err != nil { // ahead, and back at the next step
					t.Fatal(err)
				}
			}
		}
		if err := run.saver.save(true); err != nil {
			t.Fatal(err)
		}
		run.close()
		valid, err := OpenRows(opt.Dir, filepath.Join(opt.Dir, "data"), data.Valid, nil)
		if err != nil || valid.B != r.Train.MicroBatch || valid.At(2) != nil {
			t.Fatalf("%v, %+v", err, valid)
		}
		if err := valid.Close(); err != nil {
			t.Error(err)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}
