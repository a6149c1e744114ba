package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// alignedHalves are n bfloat16 values that begin on a cache line, random ones.
func alignedHalves(r *rand.Rand, n int) []uint16 {
	x := asBF16(Aligned(n/2 + 1))[:n]
	NarrowBF16(x, random(r, n, 1))
	return x
}

// A product into bfloat16 is the one into float32, rounded once: accumulated, cut into parts of k, near and far, on A
// packed and as it lies.
func TestGemmToHalves(t *testing.T) {
	shapes := append([][3]int{{64, 32, 768}, {40, 70, 96}, {32, 64, 1088}, {300, 64, 32}, {33, 33, 672}}, bf16Shapes...)
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 1))
		var s Scratch
		for i, sh := range shapes {
			for bits := range 16 {
				if testing.Short() && (bits+i)%3 != 0 {
					continue // the other variants have other shapes
				}
				m, n, k, acc, far, cut := sh[0], sh[1], sh[2], bits&1 != 0, bits&2 != 0, bits&4 != 0
				lda, ldc := up32(k)+32, up32(n)+bits>>3*7
				a, pb := View{H: alignedHalves(r, max(1, m*lda)), Ld: lda}, make([]uint16, SizeBF16(n, k))
				PackBBF16(pb, k, n, View{X: random(r, n*k, 1), Ld: k}, true, k)
				c := alignedHalves(r, max(1, m*ldc))
				wide := make([]float32, len(c))
				WidenBF16(wide, c)
				run := max(1, k)
				if cut {
					run = 128
				}
				pa := make([]uint16, SizeBF16(m, run))
				in, as := slices.Clone(c), alignedHalves(r, len(c))
				copy(as, c)
				for p := 0; p < max(1, k); p += run {
					d := min(run, k-p)
					first, last := p == 0, p+d == k
					PackABF16(pa, m, d, a.From(0, p), false)
					GemmPartBF16(m, n, d, pa, pb[min(len(pb), 32*p):], k, View{X: wide, Ld: ldc}, acc, false,
						first, last, &s)
				}
				for p := 0; p < max(1, k); p += run {
					d := min(run, k-p)
					PackABF16(pa, m, d, a.From(0, p), false)
					GemmPartBF16(m, n, d, pa, pb[min(len(pb), 32*p):], k, View{H: in, Ld: ldc}, acc, far,
						p == 0, p+d == k, &s)
				}
				want := make([]uint16, len(c))
				NarrowBF16(want, wide)
				what := fmt.Sprintf("%v, accumulate %v, far %v, in parts %v", sh, acc, far, cut)
				if !slices.Equal(in, want) {
					t.Fatalf("%s: not the rounded sums", what)
				}
				if m == 0 || k == 0 || !RowsBF16(a, k) {
					continue
				}
				for p := 0; p < k; p += run {
					d := min(run, k-p)
					GemmRowsBF16(m, n, d, a.From(0, p), pb[32*p:], k, View{H: as, Ld: ldc}, acc, far,
						p == 0, p+d == k, &s)
				}
				if !slices.Equal(as, want) {
					t.Fatalf("%s: other sums for rows as they lie", what)
				}
			}
		}
	})
}
