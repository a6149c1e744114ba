package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/internal/quiet"
)

// A product of bytes is that of the values they stand for, whichever way it is taken.
func TestGemmInt8(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 8))
		var s Scratch
		for _, sh := range [][3]int{{1, 1, 1}, {1, 64, 96}, {3, 70, 300}, {1, 600, 160}, {1, 256, 64}, {9, 33, 65}, {4, 31, 40}, {2, 5, 0}} {
			m, n, k := sh[0], sh[1], sh[2]
			w, x, lda := random(r, n*k, 0.3), make([]float32, m*up32(k)), up32(k)
			for i := range m {
				copy(x[i*lda:][:k], random(r, k, 1))
			}
			RoundBF16(x, x)
			pb, scale := make([]int8, SizeInt8(n, k)), make([]float32, n)
			PackInt8(pb, scale, n, k, w, k)
			c := random(r, m*(n+3), 1)
			want := append([]float32(nil), c...)
			for i := range m {
				for j := range n {
					var sum float64
					for p := range k {
						sum += float64(x[i*lda+p]) * math.RoundToEven(float64(w[j*k+p]/scale[j]))
					}
					want[i*(n+3)+j] = float32(sum * float64(scale[j]))
				}
			}
			GemmInt8(m, n, k, x, lda, pb, scale, c, n+3, &s)
			near(t, "int8", c, want, 2e-6*math.Sqrt(float64(k+1)))

			pa, wide, d := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k)), append([]float32(nil), c...)
			PackABF16(pa, m, k, x, lda, false)
			WidenInt8(wide, pb)
			GemmBF16(m, n, k, pa, wide, k, d, n+3, false, false, &s)
			ScaleColumns(m, n, d, n+3, scale)
			if Name() == "avx512bf16" { // VDPBF16PS sums in an order of its own, and bytes never go that way
				near(t, "widened", d, c, 2e-6*math.Sqrt(float64(k+1)))
			} else {
				near(t, "widened", d, c, 0)
			}
		}
	})
}

// Bytes are as near to the weights as a scale for each row allows; a row of zeros stays zero.
func TestPackInt8(t *testing.T) {
	const n, k = 40, 70
	r := rand.New(rand.NewPCG(2, 8))
	w := random(r, n*k, 1)
	clear(w[3*k : 4*k])
	pb, scale, wide := make([]int8, SizeInt8(n, k)), make([]float32, n), make([]uint16, SizeBF16(n, k))
	PackInt8(pb, scale, n, k, w, k)
	WidenInt8(wide, pb)
	generic := make([]uint16, len(wide))
	widenInt8Generic(generic, pb)
	if !slices.Equal(wide, generic) {
		t.Error("widened bytes differ from the plain form")
	}
	for j := range n {
		for p := range k {
			q := f32Of(wide[j/32*SizeBF16(32, k)+p/32*1024+j%32/16*512+p%32/2*32+j%16*2+p%2])
			if d := math.Abs(float64(q*scale[j] - w[j*k+p])); d > 0.5001*float64(scale[j]) {
				t.Fatalf("w[%d,%d] = %v became %v", j, p, w[j*k+p], q*scale[j])
			}
		}
	}
}

// BenchmarkDecode times the product of one row with 256 MiB of weights against reading as many bytes: GB/s, and the share of the
// read loop's.
func BenchmarkDecode(b *testing.B) {
	const n, k = 32768, 2048
	x, memory := huge(b, k), huge(b, n*k)
	y, scale := make([]float32, 4*n), huge(b, 4*n)
	var s Scratch
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"f32", func() { GemmSkinny(1, n, k, x, k, memory, k, y, n, false, &s) }},
		{"bf16", func() { GemmFewBF16(1, 2*n, k, x, k, asBF16(memory), y, n, false, &s) }},
		{"int8", func() { GemmInt8(1, 4*n, k, x, k, asInt8(memory), scale, y, n, &s) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			read := quiet.Loop{Ops: 4 * n * k / 64, Run: func(turns int) { ReadLoop(memory[:turns*n*k/64]) }}
			quiet.Time(b, read, 4*n*k, c.f)
		})
	}
}
