package devicetest

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// floats are the dtypes that Copy and Add take, as pairs.
func floats(f func(dst, src kind)) {
	for _, dst := range []kind{act, stat, f32, bf16} {
		for _, src := range []kind{act, stat, f32, bf16} {
			f(dst, src)
		}
	}
}

func copyCase(dst, src kind, n, c int) *Case {
	cs := newCase("%v=%v,N=%d,C=%d", dst, src, n, c)
	y := cs.out("dst", dst, n, c, exact, perRow(1))
	s := cs.in("src", src, n, c, perRow(1))
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Copy(x[y], x[s]) })
}

func copyCases() (all []*Case) {
	floats(func(dst, src kind) {
		for _, s := range [][2]int{{1, 1}, {5, 67}, {3, 1000}} {
			all = append(all, copyCase(dst, src, s[0], s[1]))
		}
	})
	for _, s := range edges {
		all = append(all, copyCase(act, act, s[0], s[1]), copyCase(f32, bf16, s[0], s[1]),
			copyCase(bf16, f32, s[0], s[1]))
	}
	return all
}

// copyExtra: rounding to bf16 goes to the nearest, ties to even, and infinities and NaN survive.
func copyExtra(t *testing.T, d device.Device) {
	in := []float32{1, 1 + 1.0/256, 1 + 3.0/256, 1 + 1.0/256 + 1.0/4096, 3.4e38, float32(math.Inf(-1)),
		float32(math.NaN()), 1e-40, -0.1}
	want := []float64{1, 1, 1 + 4.0/256, 1 + 2.0/256, math.Inf(1), math.Inf(-1), math.NaN(), 9.183549615799121e-41,
		-0.10009765625}
	src, dst := device.Empty(d, tensor.F32, 1, len(in)), device.Empty(d, tensor.BF16, 1, len(in))
	device.WriteFloats(d, src, in)
	d.Copy(dst, src)
	got := make([]float64, len(in))
	device.ReadFloats(d, got, dst)
	for i := range in {
		if got[i] != want[i] && !(math.IsNaN(want[i]) && math.IsNaN(got[i])) {
			t.Errorf("%v became %v, want %v", in[i], got[i], want[i])
		}
	}
}

func copyBench() []*Case {
	return []*Case{copyCase(f32, f32, 1024, 1024), copyCase(bf16, f32, 1024, 1024)}
}
