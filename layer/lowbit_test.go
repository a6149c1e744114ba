package layer

import (
	"math"
	"testing"
)

func TestQuantise(t *testing.T) {
	// 3 bits: levels −3…3 of step 6/3 = 2; 1 and −5 lie between two levels and go to the even one.
	x := []float64{6, -6, 2.9, 3.1, 1, -5, 0}
	quantise(x, 3, absmax(x))
	for i, want := range []float64{6, -6, 2, 4, 0, -4, 0} {
		if x[i] != want {
			t.Errorf("entry %d: %g, want %g", i, x[i], want)
		}
	}
	for _, top := range []float64{0, math.Inf(1), math.NaN()} {
		y := []float64{1.5}
		if quantise(y, 4, top); y[0] != 1.5 {
			t.Errorf("with a largest of %g: %g", top, y[0])
		}
	}
}

// Which numbers of two tokens with two heads of width 2 share a scale: with 2 bits a number becomes −top, 0 or top.
func TestQuantiseRows(t *testing.T) {
	for per, want := range map[Granularity][]float64{
		PerTensor: {0, 0, 8, -8, 0, 0, 0, 8},
		PerHead:   {0, 0, 8, -8, 4, 0, 0, 8},
		PerRow:    {1, 1, 8, -8, 4, 0, 0, 5},
		"":        {1, 1, 8, -8, 4, 0, 0, 5},
	} {
		x := []float64{1, 0.9, 8, -5, 4, 1, 0, 5}
		quantiseRows(x, 4, 2, 2, per)
		for i := range want {
			if x[i] != want[i] {
				t.Errorf("per %q: %v, want %v", per, x, want)
				break
			}
		}
	}
}
