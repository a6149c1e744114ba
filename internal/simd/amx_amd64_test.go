//go:build !purego

package simd

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"
)

func processorHasAMX() bool { return cpu.X86.HasAMXBF16 }

// The sums of a tile are those of the kernels for few rows, bit for bit, subnormal numbers included.
func TestTilesAreFew(t *testing.T) {
	if !hasAMX() {
		t.Skip("no AMX here; where the processor has it, TestAMXRuns fails instead")
	}
	const m, n, k = 45, 70, 700
	r := rand.New(rand.NewPCG(3, 3))
	var s Scratch
	for _, scale := range []float64{1, 1e-19, 1e19} {
		a, b := random(r, m*k, scale), random(r, n*k, scale)
		pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
		PackABF16(pa, m, k, View{X: a, Ld: k}, false)
		PackBBF16(pb, k, n, View{X: b, Ld: k}, true, k)
		c := [3][]float32{make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)}
		for i, x := range []*kernels{&amx, &avx512, &avx2} {
			g := &s.bf16
			*g = gemmBF16{&x.bf16Kernels, m, n, (k + 31) / 32, pa, pb, SizeBF16(32, k), SizeBF16(32, k), c[i], n, false,
				&s, false, true, true, 0, nil}
			x.product(g)
		}
		near(t, "avx512", c[1], c[0], 0)
		near(t, "avx2", c[2], c[0], 0)
	}
}

// The narrow kernels give the bits of the wide ones, on every number of steps.
func TestNarrowIsWide(t *testing.T) {
	if !hasAMX() {
		t.Skip("no AMX here; where the processor has it, TestAMXRuns fails instead")
	}
	r := rand.New(rand.NewPCG(5, 5))
	const m, n = 96, 64
	for steps := 2; steps <= 36; steps++ {
		k := 32 * steps
		a, b := random(r, m*k, 1), random(r, n*k, 1)
		pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
		PackABF16(pa, m, k, View{X: a, Ld: k}, false)
		PackBBF16(pb, k, n, View{X: b, Ld: k}, true, k)
		for bits := range 8 {
			var c [2][]float32
			start := random(r, m*n, 1)
			for kernel := range c {
				c[kernel] = Aligned(m * n)
				copy(c[kernel], start)
				var h []uint16 // the first half of c
				if bits&4 != 0 {
					h = asBF16(c[kernel])
				}
				s := Scratch{chooser: chooser{kernel: kernel, count: 1}}
				g := &s.bf16
				*g = gemmBF16{&amx.bf16Kernels, m, n, steps, pa, pb, SizeBF16(32, k), SizeBF16(32, k), c[kernel], n,
					bits&1 != 0, &s, bits&2 != 0, true, true, 0, h}
				productAMX(g)
			}
			if !slices.Equal(asBF16(c[0]), asBF16(c[1])) {
				t.Fatalf("%d steps, kind %d: the narrow kernel gives other bits", steps, bits)
			}
		}
	}
}
