package train

import (
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
			if took, err := Measure(d, r); err != nil || took <= 0 {
				t.Errorf("%d rows by %d: %v, %v", batch, micro, took, err)
			}
		}
	}
}
