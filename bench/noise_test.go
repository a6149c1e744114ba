package bench

import (
	"context"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// Values are noise of the mean and deviation asked for, the same at every call; a tensor larger than the noise repeats
// it.
func TestDraw(t *testing.T) {
	d := open(t).Device
	stats := func(rows, cols int, mean, std float64) []float32 {
		x := device.Empty(d, tensor.F32, rows, cols)
		defer release(d, x)
		draw(d, x, mean, std)
		out := make([]float32, rows*cols)
		device.ReadFloats(d, out, x)
		return out
	}
	x := stats(100, 100, 3, 0.5)
	sum, square, distinct := 0.0, 0.0, map[float32]bool{}
	for _, v := range x {
		sum, square, distinct[v] = sum+float64(v), square+float64(v)*float64(v), true
	}
	mean := sum / 1e4
	if std := math.Sqrt(square/1e4 - mean*mean); !(math.Abs(mean-3) <= 0.03) || !(math.Abs(std-0.5) <= 0.02) ||
		len(distinct) < 9000 {
		t.Errorf("mean %g, deviation %g, %d values", mean, std, len(distinct))
	}
	for i, v := range stats(100, 100, 3, 0.5) {
		if v != x[i] {
			t.Fatal("a second call draws other values")
		}
	}
	const cols = 300_000 // three rows are all the noise there is
	y := stats(7, cols, 0, 1)
	for _, row := range []int{3, 4, 6} {
		if y[row*cols+5] != y[(row%3)*cols+5] {
			t.Errorf("row %d does not repeat row %d", row, row%3)
		}
	}
	ids := randomIDs(1000, 7)
	seen := map[int32]int{}
	for _, id := range ids {
		seen[id]++
	}
	if len(seen) != 7 || seen[0] < 100 || seen[6] < 100 {
		t.Errorf("%v", seen)
	}
}

// A prompt is measured at most five times, after two: it is long. Steps are measured as often as asked, of the largest
// batch too, wherever it stands: while its last prompts are computed the first sequences continue.
func TestRepetitionsOfPrompts(t *testing.T) {
	for _, x := range []struct{ reps, warmup, prompts, before int }{{7, 3, 5, 2}, {3, 1, 3, 1}} {
		c := quick(t)
		c.Reps, c.Warmup = x.reps, x.warmup
		var rows []Row
		o := DecodeOptions{Geometry: Geometry{Size: "nano", Arch: "diff"}, Batch: []int{9, 1}, Prompt: 4, Chunk: 1}
		if err := c.Decode(context.Background(), o, func(r Row) { rows = append(rows, r) }); err != nil ||
			len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if rows[0].Reps != x.prompts || rows[0].Warmup != x.before {
			t.Errorf("%+v: prompts %d after %d", x, rows[0].Reps, rows[0].Warmup)
		}
		for _, row := range rows[1:] {
			if row.Reps != x.reps || row.Warmup != x.warmup {
				t.Errorf("%+v: %s %d after %d", x, row.Name, row.Reps, row.Warmup)
			}
		}
	}
}
