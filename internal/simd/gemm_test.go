package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// operand is a matrix with gaps between its rows, stored as op(x) asks.
type operand struct {
	x     []float32
	ld    int
	trans bool
}

func newOperand(r *rand.Rand, rows, cols int, trans bool) operand {
	if trans {
		rows, cols = cols, rows
	}
	ld := cols + r.IntN(5)
	return operand{random(r, max(0, (rows-1)*ld+cols), 1), ld, trans}
}

func (o operand) at(i, j int) float64 { return float64(o.x[at(i, j, o.ld, o.trans)]) }

func TestGemm(t *testing.T) {
	shapes := [][3]int{{1, 1, 1}, {14, 32, 8}, {6, 16, 4}, {1, 40, 700}, {13, 31, 5}, {28, 64, 384}, {29, 65, 385},
		{350, 33, 20}, {17, 520, 9}, {3, 5, 0}, {0, 4, 4}, {33, 47, 17}, {45, 90, 130}}
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		var s Scratch
		for _, sh := range shapes {
			for bits := range 8 {
				m, n, k := sh[0], sh[1], sh[2]
				a, b := newOperand(r, m, k, bits&1 != 0), newOperand(r, k, n, bits&2 != 0)
				ldc, acc := n+3, bits&4 != 0
				c := random(r, max(1, m)*ldc, 1)
				if !acc {
					c[0] = float32(math.NaN())
				}
				want := product(m, n, k, a, b, c, ldc, acc)
				Gemm(m, n, k, a.x, a.ld, a.trans, b.x, b.ld, b.trans, c, ldc, acc, &s)
				near(t, "gemm", c, want, 2e-6*math.Sqrt(float64(k+1)))
			}
		}
	})
}

func product(m, n, k int, a, b operand, c []float32, ldc int, acc bool) []float32 {
	want := append([]float32(nil), c...)
	for i := range m {
		for j := range n {
			var sum float64
			if acc {
				sum = float64(c[i*ldc+j])
			}
			for p := range k {
				sum += a.at(i, p) * b.at(p, j)
			}
			want[i*ldc+j] = float32(sum)
		}
	}
	return want
}

// A row has the same bits alone and in any batch; a column too; and k may be cut anywhere.
func TestGemmRowsAndCuts(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 45, 75, 900
		r := rand.New(rand.NewPCG(2, 2))
		var s Scratch
		a, b := random(r, m*k, 1), random(r, n*k, 1)
		whole, part := make([]float32, m*n), make([]float32, m*n)
		Gemm(m, n, k, a, k, false, b, k, true, whole, n, false, &s)
		for i := range m {
			Gemm(1, n, k, a[i*k:], k, false, b, k, true, part[i*n:], n, false, &s)
		}
		near(t, "rows alone", part, whole, 0)
		for j := range n {
			Gemm(m, 1, k, a, k, false, b[j*k:], k, true, part[j:], n, false, &s)
		}
		near(t, "columns alone", part, whole, 0)
		for p := 0; p < k; p += 123 {
			Gemm(m, n, min(123, k-p), a[p:], k, false, b[p:], k, true, part, n, p > 0, &s)
		}
		near(t, "k in pieces", part, whole, 0)
	})
}

// The product without packing has the bits of the packed one.
func TestGemmSkinny(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 4))
		var s Scratch
		for m := 1; m <= SkinnyRows(); m++ {
			for _, nk := range [][2]int{{1, 1}, {16, 16}, {48, 100}, {75, 903}, {40, 3}, {3, 40}, {33, 0}} {
				n, k := nk[0], nk[1]
				for _, acc := range []bool{false, true} {
					a, b := newOperand(r, m, k, false), newOperand(r, k, n, true)
					c := random(r, m*(n+3), 1)
					want := append([]float32(nil), c...)
					Gemm(m, n, k, a.x, a.ld, false, b.x, b.ld, true, want, n+3, acc, &s)
					GemmSkinny(m, n, k, a.x, a.ld, b.x, b.ld, c, n+3, acc, &s)
					near(t, "skinny", c, want, 0)
				}
			}
		}
	})
}

func TestGemmAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var s Scratch
	a, b, c := random(r, 64*64, 1), random(r, 64*64, 1), make([]float32, 64*64)
	if n := testing.AllocsPerRun(10, func() { Gemm(64, 64, 64, a, 64, false, b, 64, true, c, 64, false, &s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
