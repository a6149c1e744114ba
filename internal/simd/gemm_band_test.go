package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Products with a triangle of zeros have the bits of the product that multiplies them, and read none of them.
func TestGemmBands(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 5))
		var s Scratch
		for _, sh := range [][4]int{{1, 1, 1, 0}, {64, 64, 32, 0}, {64, 32, 128, 64}, {61, 45, 77, 0},
			{64, 128, 64, 64}, {37, 50, 41, 3}, {20, 33, 70, NoDiag}, {64, 40, 30, -9}, {64, 40, 30, -70}} {
			m, n, k, diag := sh[0], sh[1], sh[2], sh[3]
			a, b := newOperand(r, m, k, false), newOperand(r, k, n, false)
			c := random(r, m*(n+3), 1)
			for _, band := range []func(){
				func() { plainBand(t, m, n, k, diag, a, b, c, &s) },
				func() { belowBand(t, m, n, k, diag, a, b, &s) },
				func() { laterBand(t, m, n, k, diag, a, b, c, &s) },
				func() { turnedBand(t, m, n, k, diag, r, &s) },
			} {
				band()
			}
		}
	})
}

// banded is x with zeros at (i,j), j > i + diag, and with NaN there: what a kernel must not read.
func banded(x operand, rows, cols, diag int) (zeros, nans operand) {
	zeros, nans = x, x
	zeros.x, nans.x = append([]float32(nil), x.x...), append([]float32(nil), x.x...)
	for i := range rows {
		for j := max(0, i+diag+1); j < cols; j++ {
			zeros.x[i*x.ld+j], nans.x[i*x.ld+j] = 0, float32(math.NaN())
		}
	}
	return zeros, nans
}

func plainBand(t *testing.T, m, n, k, diag int, a, b operand, c []float32, s *Scratch) {
	for _, acc := range []bool{false, true} {
		zeros, nans := banded(a, m, k, diag)
		// Zeros within a tile that the diagonal crosses are read: a tile has at most mr rows.
		for i := range m {
			for j := max(0, i+diag+1); j < min(k, i+diag+cur.mr); j++ {
				nans.x[i*a.ld+j] = 0
			}
		}
		want, got := append([]float32(nil), c...), append([]float32(nil), c...)
		Gemm(m, n, k, zeros.x, a.ld, false, b.x, b.ld, false, want, n+3, acc, s)
		const extra = 5 // b's panels may be longer than k
		pb := make([]float32, SizeB(k+extra, n))
		long := append(append([]float32(nil), b.x...), make([]float32, extra*b.ld+n)...)
		PackB(pb, k+extra, n, long, b.ld, false)
		GemmPlain(m, n, k, nans.x, a.ld, pb, k+extra, got, n+3, acc, diag, s)
		near(t, "plain", got, want, 0)
	}
}

func belowBand(t *testing.T, m, n, k, diag int, a, b operand, s *Scratch) {
	want, got := make([]float32, m*(n+3)), make([]float32, m*(n+3))
	Gemm(m, n, k, a.x, a.ld, false, b.x, b.ld, false, want, n+3, false, s)
	pa, pb := make([]float32, SizeA(m, k)), make([]float32, SizeB(k, n))
	PackA(pa, m, k, a.x, a.ld, false)
	PackB(pb, k, n, b.x, b.ld, false)
	check := func() {
		for i := range m {
			end := max(0, min(n, i+1+diag))
			near(t, "below", got[i*(n+3):][:end], want[i*(n+3):][:end], 0)
			near(t, "beside it", got[i*(n+3)+n:][:3], want[i*(n+3)+n:][:3], 0)
		}
	}
	GemmBelow(m, n, k, pa, pb, got, n+3, diag)
	check()
	if PlainA() {
		clear(got)
		GemmPlainBelow(m, n, k, a.x, a.ld, pb, got, n+3, diag)
		check()
	}
}

func laterBand(t *testing.T, m, n, k, diag int, a, b operand, c []float32, s *Scratch) {
	zeros, nans := banded(b, k, n, diag)
	for p := range k { // and here at most nr columns
		for j := max(0, p+diag+1); j < min(n, p+diag+cur.nr); j++ {
			nans.x[p*b.ld+j] = 0
		}
	}
	want, got := append([]float32(nil), c...), append([]float32(nil), c...)
	Gemm(m, n, k, a.x, a.ld, false, zeros.x, b.ld, false, want, n+3, true, s)
	pa, pb := make([]float32, SizeA(m, k)), make([]float32, SizeB(k, n))
	PackA(pa, m, k, a.x, a.ld, false)
	PackB(pb, k, n, nans.x, b.ld, false)
	GemmLater(m, n, k, pa, pb, k, got, n+3, diag)
	near(t, "later", got, want, 0)
}

// turnedBand multiplies the transpose of a [k,m] that has zeros after the diagonal.
func turnedBand(t *testing.T, m, n, k, diag int, r *rand.Rand, s *Scratch) {
	if cur.turneds == nil {
		return
	}
	a, b, c := newOperand(r, k, m, false), newOperand(r, k, n, false), random(r, m*(n+3), 1)
	zeros, nans := banded(a, k, m, diag)
	for p := range k { // a tile has at most mr rows
		for j := max(0, p+diag+1); j < min(m, p+diag+cur.mr); j++ {
			nans.x[p*a.ld+j] = 0
		}
	}
	want, got := append([]float32(nil), c...), append([]float32(nil), c...)
	Gemm(m, n, k, zeros.x, a.ld, true, b.x, b.ld, false, want, n+3, true, s)
	pb := make([]float32, SizeB(k, n))
	PackB(pb, k, n, b.x, b.ld, false)
	GemmTurnedLater(m, n, k, nans.x, a.ld, pb, got, n+3, diag)
	near(t, "turned later", got, want, 0)
}
