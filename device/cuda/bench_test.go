package cuda

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// report times f on the GPU, b.N times in a row after a first one, and gives TFLOP/s or GB/s of one.
func report(b *testing.B, d *Device, flops, bytes float64, f func()) {
	b.Helper()
	f()
	if err := d.Sync(); err != nil {
		b.Fatal(err)
	}
	ms, err := d.Time(func() {
		for range b.N {
			f()
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	seconds := ms / 1e3 / float64(b.N)
	b.ReportMetric(seconds*1e6, "gpu-µs/op")
	if flops > 0 {
		b.ReportMetric(flops/seconds/1e12, "TFLOP/s")
	}
	if bytes > 0 {
		b.ReportMetric(bytes/seconds/1e9, "GB/s")
	}
}

// noise fills a tensor, so that no product is timed on zeros.
func noise(b *testing.B, d *Device, dt tensor.DType, rows, cols int) tensor.Tensor {
	b.Helper()
	x := on(d, dt, rows, cols, cols)
	v := make([]float32, 1<<16)
	for i := range v {
		v[i] = float32((i*2654435761)>>7%2001-1000) / 1000
	}
	for at := 0; at < x.Len(); at += len(v) {
		n := min(len(v), x.Len()-at)
		device.WriteFloats(d, x.Reshape(1, x.Len()).Columns(at, at+n), v[:n])
	}
	return x
}

// sizes are the models that training is measured on: rows of a step, width, inner width.
var sizes = []struct {
	name    string
	n, c, f int
}{{"160m", 32768, 768, 2048}, {"830m", 16384, 1536, 4096}, {"1.4b", 16384, 2048, 5632}}

// BenchmarkProducts times a linear layer's three products and decoding's.
func BenchmarkProducts(b *testing.B) {
	d := gpu(b, nil)
	for _, s := range sizes {
		x, w := noise(b, d, tensor.BF16, s.n, s.c), noise(b, d, tensor.BF16, 2*s.f, s.c)
		y, dw := noise(b, d, tensor.BF16, s.n, 2*s.f), noise(b, d, tensor.F32, 2*s.f, s.c)
		flops := 2 * float64(s.n) * float64(s.c) * float64(2*s.f)
		b.Run(s.name+"/forward", func(b *testing.B) {
			report(b, d, flops, 0, func() { d.MatMul(y, x, w, device.MatMul{TransB: true}) })
		})
		b.Run(s.name+"/dx", func(b *testing.B) {
			report(b, d, flops, 0,
				func() { d.MatMul(x, y, w, device.MatMul{}) })
		})
		b.Run(s.name+"/dw", func(b *testing.B) {
			report(b, d, flops, 0, func() { d.MatMul(dw, y, x, device.MatMul{TransA: true, Accumulate: true}) })
		})
		for _, m := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/decode%d", s.name, m), func(b *testing.B) {
				few, out := x.RowRange(0, m), y.RowRange(0, m)
				report(b, d, 0, float64(w.Len()*2), func() { d.MatMul(out, few, w, device.MatMul{TransB: true}) })
			})
		}
		for _, t := range []tensor.Tensor{x, w, y, dw} {
			d.Free(t.Buf)
		}
	}
}

// BenchmarkMemory times what is bound by memory, counting each byte that must move once.
func BenchmarkMemory(b *testing.B) {
	d := gpu(b, nil)
	for _, s := range sizes {
		x, dy, dx := noise(b, d, tensor.BF16, s.n, s.c), noise(b, d, tensor.BF16, s.n, s.c),
			noise(b, d, tensor.BF16, s.n, s.c)
		w, dw, rstd := noise(b, d, tensor.BF16, 1, s.c), stat(d, 1, s.c), stat(d, 1, s.n)
		gu, h := noise(b, d, tensor.BF16, s.n, 2*s.f), noise(b, d, tensor.BF16, s.n, s.f)
		one, inner := float64(2*s.n*s.c), float64(2*s.n*s.f)
		run := func(name string, bytes float64, f func()) {
			b.Run(s.name+"/"+name, func(b *testing.B) { report(b, d, 0, bytes, f) })
		}
		run("copy", 2*one, func() { d.Copy(dy, x) })
		run("rmsnorm", 4*one, func() { d.RMSNorm(dy, rstd, x, x, dx, w, 1e-5) })
		run("rmsnormbackward", 4*one, func() { d.RMSNormBackward(dx, dw, dy, x, w, rstd) })
		run("swiglu", 3*inner, func() { d.SwiGLU(h, gu) })
		run("swiglubackward", 6*inner, func() { d.SwiGLUBackward(gu, h, h, gu) })
		lam, dlam, dgu := stat(d, s.n, s.f/64), stat(d, s.n, s.f/64), act(d, s.n, 2*s.f)
		run("subtractheads", 3*inner, func() { d.SubtractHeads(h, gu, lam, s.f/64) })
		run("subtractheadsbackward", 4*inner, func() { d.SubtractHeadsBackward(dgu, dlam, h, gu, lam, s.f/64) })
		table, pos := stat(d, 4096, 64), ints(d, s.n)
		run("rope", 2*one, func() { d.Rope(x, table, pos, device.Rope{Heads: s.c / 64, Dim: 64}) })
		for _, t := range []tensor.Tensor{x, dy, dx, gu, h, table, lam, dlam, dgu} {
			d.Free(t.Buf)
		}
	}
}

// BenchmarkUpdate times the ops of a step that go over all parameters or the vocabulary.
func BenchmarkUpdate(b *testing.B) {
	d := gpu(b, nil)
	n := 160 << 20
	a := &device.AdamW{W: act(d, 1, n), Master: on(d, tensor.I16, 1, n, n), M: stat(d, 1, n), V: stat(d, 1, n),
		G: noise(b, d, tensor.F32, 1, n), Rate: stat(d, 1, 3), GradSq: stat(d, 1, 1), Beta1: 0.9, Beta2: 0.95,
		Eps: 1e-8, MaxNorm: 1}
	device.WriteFloats(d, a.Rate, []float32{1e-3, 0.1, 0.05})
	b.Run("adamw", func(b *testing.B) { report(b, d, 0, 28*float64(n), func() { d.AdamW(a) }) })
	b.Run("sumsquares", func(b *testing.B) { report(b, d, 0, 4*float64(n), func() { d.SumSquares(a.GradSq, a.G) }) })
	for _, t := range []tensor.Tensor{a.W, a.Master, a.M, a.V, a.G} {
		d.Free(t.Buf)
	}
	rows, vocab, c := 32768, 32000, 768
	cl := &device.Classifier{X: noise(b, d, tensor.BF16, rows, c), W: noise(b, d, tensor.BF16, vocab, c),
		Targets: ints(d, rows), Loss: stat(d, 1, rows), DX: act(d, rows, c), DW: stat(d, vocab, c),
		Scale: 1 / float64(rows)}
	b.Run("classify", func(b *testing.B) {
		report(b, d, 6*float64(rows)*float64(vocab)*float64(c), 0, func() { d.Classify(cl) })
	})
	b.Run("embedbackward", func(b *testing.B) {
		report(b, d, 0, float64(2*rows*c), func() { d.EmbedBackward(cl.DW, cl.DX, cl.Targets) })
	})
}
