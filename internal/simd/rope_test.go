package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A row's heads are turned as the plain formula says, there and back, the same bits for a head alone and among others,
// and nothing behind them.
func TestRotate(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, half := range append(lengths(), 96)[1:] {
			for _, heads := range []int{1, 2, 6} {
				if half > 0 {
					testRotate(t, r, half, heads, RotateHeads, rotateHeadsGeneric, RotateHeadsBF16)
					testRotate(t, r, half, heads, RotatePairs, rotatePairsGeneric, RotatePairsBF16)
				}
			}
		}
	})
}

func testRotate(t *testing.T, r *rand.Rand, half, heads int, f, want func(x, cos, sin []float32, sign float32),
	short func(x []uint16, cos, sin []float32, sign float32, ahead int)) {
	t.Helper()
	what := fmt.Sprintf("%d heads of %d", heads, 2*half)
	n, cos, sin := 2*half*heads, random(r, half, 1), random(r, half, 1)
	x, h := random(r, n+1, 1), make([]uint16, n+1)
	for i, v := range x {
		h[i] = bf16Of(v)
		x[i] = f32Of(h[i])
	}
	for _, sign := range []float32{1, -1} {
		plain, whole, alone := slices.Clone(x), slices.Clone(x), slices.Clone(x)
		want(plain[:n], cos, sin, sign)
		f(whole[:n], cos, sin, sign)
		near(t, what, whole, plain, 1e-6)
		for c := 0; c < n; c += 2 * half {
			f(alone[c:c+2*half], cos, sin, sign)
		}
		if !slices.Equal(alone, whole) {
			t.Fatalf("%s: a head alone has other bits", what)
		}
		if VectorsBF16() {
			got := slices.Clone(h)
			short(got[:n], cos, sin, sign, n)
			for i, v := range whole {
				if got[i] != bf16Of(v) {
					t.Fatalf("%s in bf16: element %d is %#x, want %#x", what, i, got[i], bf16Of(v))
				}
			}
		}
	}
}
