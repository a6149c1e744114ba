//go:build !purego

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The narrow kernels give the bits of the wide ones, on every number of steps, with sums put aside and without.
func TestInt8Narrow(t *testing.T) {
	if !hasAMX() {
		t.Skip("no AMX here; where the processor has it, TestAMXRuns fails instead")
	}
	r := rand.New(rand.NewPCG(5, 9))
	const n = 300
	for steps := 1; steps <= 36; steps++ {
		m, k := 5+65*(steps%2)+r.IntN(40), stepInt8*steps-r.IntN(stepInt8)
		var s Scratch
		x, w := packInt8(m, n, k, random(r, m*k, 1), random(r, n*k, 1), &s)
		want := make([]float32, m*n)
		g := gemmInt8{&amx.bytes, x, w, m, 0, n, upInt8(k), want, n, false, &s}
		g.panels()
		for kernel := range 2 {
			for _, far := range []bool{false, true} {
				c := Aligned(m * n)
				s := Scratch{picks: chooser{kernel: kernel}}
				g := gemmInt8{&amx.bytes, x, w, m, 0, n, upInt8(k), c, n, far, &s}
				tilesInt8(&g)
				near(t, fmt.Sprintf("kernel %d, %d steps, far %v", kernel, steps, far), c, want, 0)
			}
		}
	}
}
