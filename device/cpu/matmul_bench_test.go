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

// BenchmarkLinear times the three products of linear layers on one thread, as a training step makes them: weights
// packed before, activations in the call where they are.
func BenchmarkLinear(b *testing.B) {
	for _, p := range []Precision{FP32, BF16} {
		for _, s := range [][3]int{{1024, 768, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {4096, 2048, 384},
			{4096, 384, 1024}, {1000, 770, 1001}, {2048, 688, 128}} {
			benchLinear(b, p, s[0], s[1], s[2])
		}
	}
}

func benchLinear(b *testing.B, p Precision, n, out, in int) {
	name := PeakOf(p)
	i := slices.IndexFunc(simd.Peaks(), func(p simd.PeakLoop) bool { return p.Name == name })
	if i < 0 {
		b.Skip("no " + name + " here")
	}
	d := New(Options{Threads: 1, Precision: p})
	defer d.Close()
	r := rand.New(rand.NewPCG(1, 1))
	act := func(cols int) tensor.Tensor { return randomTensor(d, r, n, d.Types().Stride(cols)).Columns(0, cols) }
	x, w, y, dw := act(in), randomTensor(d, r, out, in), act(out), randomOf(d, tensor.F32, r, out, in)
	dx := device.EmptyAct(d, n, in)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"y", func() { d.MatMul(y, x, w, device.MatMul{TransB: true}) }},
		{"dx", func() { d.MatMul(dx, y, w, device.MatMul{}) }},
		{"dw", func() { d.MatMul(dw, y, x, device.MatMul{TransA: true, Accumulate: true}) }},
	} {
		b.Run(fmt.Sprintf("%v/%dx%dx%d/%s", p, n, out, in, c.name), func(b *testing.B) {
			quiet.Time(b, quiet.Loop{Ops: simd.Peaks()[i].Ops, Run: simd.Peaks()[i].Run},
				2*float64(n)*float64(out)*float64(in), c.f)
		})
	}
	for _, t := range []tensor.Tensor{x, w, y, dw, dx} {
		d.Free(t.Buf)
	}
}
