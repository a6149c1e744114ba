package train

import (
	"context"
	"errors"
	"math"
	"testing"

	"antiphase/recipe"
)

// Trials grow to the step itself, whatever its shape, and the time of a trial is scaled by operations, not by tokens:
// a token of a longer row costs more.
func TestTrialsGrowToTheStep(t *testing.T) {
	for _, full := range []trial{{1, 1, 1}, {1, 32, 1}, {7, 33, 7}, {32, 2048, 4}, {1, 65536, 1}, {512, 16, 512},
		{24, 16, 6}, {30, 16, 3}} {
		n, last := 0, 0
		for x := full.first(); ; x = x.larger(full) {
			if x.rows > full.rows || x.tokens > full.tokens || x.rows*x.tokens <= last || x.rows > 1 &&
				x.tokens != full.tokens {
				t.Fatalf("%v: trial %v after one of %d tokens", full, x, last)
			}
			if last = x.rows * x.tokens; n > 0 && x != full && x.rows%min(x.rows, full.micro) != 0 {
				t.Fatalf("%v: trial %v", full, x)
			}
			if n++; x == full {
				break
			}
		}
		if n > 12 {
			t.Errorf("%v takes %d trials", full, n)
		}
	}
	r, err := recipe.Named("160m", "diff")
	if err != nil {
		t.Fatal(err)
	}
	row, rows, long := trial{1, 512, 1}.flops(r.Model), trial{3, 512, 1}.flops(r.Model),
		trial{1, 1536, 1}.flops(r.Model)
	if rows != 3*row || long <= rows {
		t.Errorf("operations of one row %g, three %g, one of three times the length %g", row, rows, long)
	}
}

// Every batch and micro-batch that a recipe may have can be measured.
func TestMeasureOfEveryMicroBatch(t *testing.T) {
	d, most := options(t, "").Device, 24
	if testing.Short() {
		most = 8
	}
	for batch := 1; batch <= most; batch++ {
		for micro := 1; micro <= batch; micro++ {
			if batch%micro != 0 {
				continue
			}
			r := nano(t, "diff")
			r.Train.Batch, r.Train.MicroBatch, r.Train.SeqLen = batch, micro, 4
			if took, err := Measure(t.Context(), d, r); err != nil || took <= 0 {
				t.Errorf("%d rows by %d: %v, %v", batch, micro, took, err)
			}
		}
	}
}

// A model whose weights, gradients and moments need more than half of the free memory is not made: a step's time is
// then that of its operations. A cancelled measurement ends before its next step.
func TestMeasureOfLargeModels(t *testing.T) {
	t.Setenv(homeEnv, t.TempDir())
	d, r := options(t, "").Device, nano(t, "diff")
	state := MemoryOf(r, d.Types(), Layout{}).State
	for spare, tried := range map[int64]bool{2*state + 1: true, 2 * state: true, 2*state - 2: false, 0: false} {
		small := cramped{d, spare}
		if Measurable(small, r) != tried {
			t.Errorf("%d bytes are free, a model has %d: tried is %v", spare, state, !tried)
		}
		took, err := Measure(t.Context(), small, r)
		if want := Expected(small, r); err != nil || !tried && took != want {
			t.Errorf("%d bytes: %v, %v, want %v", spare, took, err, want)
		}
	}
	_, perToken := r.Model.FLOPs(r.Train.SeqLen)
	flops := perToken * float64(r.Train.Batch*r.Train.SeqLen)
	if got, want := Expected(d, r).Seconds(), flops/MachinePeak(d)*2; math.Abs(got-want) > 1e-6*want+1e-9 {
		t.Errorf("%g operations are expected to take %g s, want %g", flops, got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, d, r); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled measurement: %v", err)
	}
}
