package cpu

import (
	"slices"
	"testing"
)

// A thread reads its part in pieces, counted in bytes, and begins again at its end.
func TestReaderCountsBytes(t *testing.T) {
	const part = 64<<10 + 100
	x := make([]float32, 2*part)
	r := newReader(x, 2)
	if slices.Contains(x, 0) {
		t.Error("a part of the array was not written")
	}
	for w := range 2 {
		var got []float64
		for range 4 {
			got = append(got, r.next(w))
		}
		if want := []float64{256 << 10, 400, 256 << 10, 400}; !slices.Equal(got, want) {
			t.Errorf("thread %d: %g bytes, want %g", w, got, want)
		}
	}
}
