package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/internal/quiet"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// BenchmarkInt8 times y = x·Wᵀ with weights as bytes on one thread, for prompts and batches of the 160M model, against
// the tile unit's peak on bfloat16: bytes need as many tile products.
func BenchmarkInt8(b *testing.B) {
	i := slices.IndexFunc(simd.Peaks(), func(p simd.PeakLoop) bool { return p.Name == "amx bf16" })
	if i < 0 {
		b.Skip("no AMX here")
	}
	peak := quiet.Loop{Ops: simd.Peaks()[i].Ops, Run: simd.Peaks()[i].Run}
	d := New(Options{Threads: 1, Precision: Int8})
	defer d.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range [][3]int{{512, 4096, 768}, {512, 2304, 768}, {512, 768, 768}, {512, 768, 2048}, {64, 4096, 768},
		{16, 4096, 768}} {
		m, n, k := s[0], s[1], s[2]
		x, w, y := randomTensor(d, r, m, k), randomTensor(d, r, n, k), randomTensor(d, r, m, n)
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			quiet.Time(b, peak, 2*float64(m)*float64(n)*float64(k),
				func() { d.MatMul(y, x, w, device.MatMul{TransB: true}) })
		})
		for _, t := range []tensor.Tensor{x, w, y} {
			d.Free(t.Buf)
		}
	}
}
