package train

import (
	"testing"

	"antiphase/recipe"
)

// Trials grow to the step itself, whatever its shape, and the time of a trial is scaled by operations, not by tokens:
// a token of a longer row costs more.
func TestTrialsGrowToTheStep(t *testing.T) {
	for _, full := range []trial{{1, 1}, {1, 32}, {7, 33}, {32, 2048}, {1, 65536}, {512, 16}} {
		n, last := 0, 0
		for x := full.first(); ; x = x.larger(full) {
			if x.rows > full.rows || x.tokens > full.tokens || x.rows*x.tokens <= last || x.rows > 1 && x.tokens != full.tokens {
				t.Fatalf("%v: trial %v after one of %d tokens", full, x, last)
			}
			if last = x.rows * x.tokens; n > 0 && x != full && x.tokens == full.tokens && x.rows > 1 && x.rows%4 != 0 {
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
	row, rows, long := trial{1, 512}.flops(r.Model), trial{3, 512}.flops(r.Model), trial{1, 1536}.flops(r.Model)
	if rows != 3*row || long <= rows {
		t.Errorf("operations of one row %g, three %g, one of three times the length %g", row, rows, long)
	}
}
