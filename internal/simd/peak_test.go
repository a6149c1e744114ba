package simd

import (
	"testing"
)

// Every loop runs, and reports what it counts.
func TestPeaks(t *testing.T) {
	for _, p := range Peaks() {
		if p.Run(100); p.Ops <= 0 {
			t.Errorf("%s counts %v operations a turn", p.Name, p.Ops)
		}
	}
	for _, n := range []int{0, 1, 255, 256, 1000} {
		ReadLoop(make([]float32, n))
	}
}

func BenchmarkPeak(b *testing.B) {
	for _, p := range Peaks() {
		b.Run(p.Name, func(b *testing.B) {
			for b.Loop() {
				p.Run(1000)
			}
			b.ReportMetric(1000*p.Ops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
	x := Aligned(64 << 20)
	for i := range x { // memory never written is one page of zeros
		x[i] = 1
	}
	b.Run("read 256 MiB", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		for b.Loop() {
			ReadLoop(x)
		}
	})
}
