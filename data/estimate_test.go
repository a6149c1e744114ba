package data

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
)

// A look at the beginning tells within a fifth how much text there is.
func TestEstimateText(t *testing.T) {
	dir := t.TempDir()
	text := prose(100000)
	for i, name := range []string{"a.txt", "b.txt.gz", "c.txt.zst"} {
		b := text
		switch i {
		case 1:
			b = gz(text)
		case 2:
			b = zst(text)
		}
		write(t, filepath.Join(dir, name), b)
	}
	for spec, want := range map[string]float64{
		filepath.Join(dir, "a.txt"): float64(len(text)), filepath.Join(dir, "b.txt.gz"): float64(len(text)),
		dir: 3 * float64(len(text)),
	} {
		for _, most := range []int64{2 << 20, 1 << 40} {
			e, err := EstimateText(t.Context(), open(t, spec), most)
			if off := float64(e.Bytes)/want - 1; err != nil || !(math.Abs(off) <= 0.2) || e.Whole != (most > 1<<30) ||
				len(e.Sample) < sampleBytes {
				t.Errorf("%s, %d: %+.3f off, whole %v, %v", spec, most, off, e.Whole, err)
			}
		}
	}
	all, err := EstimateText(t.Context(), open(t, "synthetic:docs=2000"), 1<<40)
	some, err2 := EstimateText(t.Context(), open(t, "synthetic:docs=2000"), 1<<18)
	if off := float64(some.Bytes)/float64(all.Bytes) - 1; err != nil || err2 != nil || !(math.Abs(off) <= 0.1) ||
		!all.Whole || some.Whole {
		t.Error(fmt.Sprint(off, err, err2))
	}
}
