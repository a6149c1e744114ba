package simd

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// rounded are the bfloat16 values of a matrix.
func (o operand) rounded() operand {
	x := append([]float32(nil), o.x...)
	roundBF16Generic(x, x)
	return operand{x, o.ld, o.trans}
}

// halves is the same in bfloat16.
func (o operand) halves() View {
	h := make([]uint16, len(o.x))
	NarrowBF16(h, o.x)
	return View{H: h, Ld: o.ld}
}

// Packing puts every element in its place, zeros around it, in all implementations alike.
func TestPackBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, sh := range [][2]int{{1, 1}, {16, 32}, {32, 32}, {33, 65}, {17, 31}, {64, 96}, {5, 130}, {100, 7},
			{49, 74}, {33, 129}, {15, 59}} {
			for bits := range 4 {
				across, k, down, b := sh[0], sh[1], bits&1 != 0, bits&2 != 0
				x := newOperand(r, across, k, down)
				want := packedBF16(across, k, x, b)
				for kind, view := range []View{{X: x.x, Ld: x.ld}, x.halves()} {
					dst := make([]uint16, SizeBF16(across, k)+1)
					for i := range dst {
						dst[i] = 0x7FC0
					}
					if b {
						PackBBF16(dst, k, across, view, !down, k)
					} else {
						PackABF16(dst, across, k, view, down)
					}
					if !slices.Equal(dst[:len(want)], want) || dst[len(want)] != 0x7FC0 {
						t.Fatalf("%d×%d, down %v, as B %v, of %s: wrong", across, k, down, b,
							[]string{"floats", "halves"}[kind])
					}
				}
			}
		}
	})
}

// packedBF16 is the packed operand by its definition.
func packedBF16(across, k int, x operand, b bool) []uint16 {
	out := make([]uint16, SizeBF16(across, k))
	for i := range across {
		for p := range k {
			at := i/32*SizeBF16(32, k) + p/32*1024 + i%32/16*512
			if b {
				at += p%32/2*32 + i%16*2 + p%2
			} else {
				at += i%16*32 + p%32
			}
			out[at] = bf16Of(float32(x.at(i, p)))
		}
	}
	return out
}

var bf16Shapes = [][3]int{{1, 1, 1}, {32, 32, 32}, {64, 64, 64}, {16, 96, 40}, {17, 33, 65}, {5, 70, 300}, {33, 31, 5},
	{40, 33, 1100}, {33, 40, 2100}, {96, 32, 544}, {3, 5, 0}, {0, 4, 4}, {13, 64, 160}}

func TestGemmBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 1))
		var s Scratch
		for _, sh := range bf16Shapes {
			for bits := range 8 {
				m, n, k := sh[0], sh[1], sh[2]
				a, b := newOperand(r, m, k, bits&1 != 0), newOperand(r, k, n, bits&2 != 0)
				ldc, acc := n+bits%3*16, bits&4 != 0
				c := Aligned(max(1, m) * ldc)
				copy(c, random(r, len(c), 1))
				if !acc {
					c[0] = float32(math.NaN())
				}
				want := product(m, n, k, a.rounded(), b.rounded(), c, ldc, acc)
				pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
				PackABF16(pa, m, k, View{X: a.x, Ld: a.ld}, a.trans)
				PackBBF16(pb, k, n, View{X: b.x, Ld: b.ld}, b.trans, k)
				GemmBF16(m, n, k, pa, pb, k, View{X: c, Ld: ldc}, acc, bits&1 != 0, &s)
				near(t, "gemm", c, want, 2e-6*math.Sqrt(float64(k+1)))
			}
		}
	})
}

// A row or a column has the same bits alone and in a batch, and k may be cut at any step.
func TestGemmBF16RowsAndCuts(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 40, 203, 1100 // a whole group of panels for a single row, and an edge
		r := rand.New(rand.NewPCG(2, 2))
		var s Scratch
		a, b := random(r, m*k, 1), random(r, n*k, 1)
		pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
		PackABF16(pa, m, k, View{X: a, Ld: k}, false)
		PackBBF16(pb, k, n, View{X: b, Ld: k}, true, k)
		whole, part := make([]float32, m*n), make([]float32, m*n)
		GemmBF16(m, n, k, pa, pb, k, View{X: whole, Ld: n}, false, false, &s)
		one := make([]uint16, SizeBF16(1, k))
		for i := range m {
			PackABF16(one, 1, k, View{X: a[i*k:], Ld: k}, false)
			GemmBF16(1, n, k, one, pb, k, View{X: part[i*n:], Ld: n}, false, false, &s)
		}
		near(t, "rows alone", part, whole, 0)
		step := 1
		if testing.Short() {
			step = 5 // every place in a panel of 32 still comes up
		}
		copy(part, whole)
		for j := 0; j < n; j += step {
			for i := range m {
				part[i*n+j] = float32(math.NaN())
			}
			PackBBF16(one, k, 1, View{X: b[j*k:], Ld: k}, true, k)
			GemmBF16(m, 1, k, pa, one, k, View{X: part[j:], Ld: n}, false, false, &s)
		}
		near(t, "columns alone", part, whole, 0)
		for i := range min(m, FewBF16()) {
			wide := make([]float32, up32(k))
			RoundBF16(wide[:k], a[i*k:])
			GemmFewBF16(1, n, k, wide, len(wide), pb, part[i*n:], n, false, &s)
		}
		near(t, "rows that are not packed", part, whole, 0)
		for p := 0; p < k; p += 160 {
			depth := min(160, k-p)
			PackABF16(pa, m, depth, View{X: a[p:], Ld: k}, false)
			GemmBF16(m, n, depth, pa, pb[32*p:], k, View{X: part, Ld: n}, p > 0, false, &s)
		}
		near(t, "k in pieces", part, whole, 0)
		for p := 0; p < k; p += 544 {
			depth := min(544, k-p)
			PackABF16(pa, m, depth, View{X: a[p:], Ld: k}, false)
			GemmPartBF16(m, n, depth, pa, pb[32*p:], k, View{X: part, Ld: n}, false, p > 0, p == 0, p+depth == k, &s)
		}
		near(t, "k in parts", part, whole, 0)
	})
}

// A machine whose processor has tiles must run them: nothing here may pass because they were left out.
func TestAMXRuns(t *testing.T) {
	if !processorHasAMX() || runtime.GOOS != "linux" {
		t.Skip("no tiles in this processor, or a system that does not grant them")
	}
	if !slices.Contains(Names(), "amx") {
		t.Fatalf("the processor has AMX, but only %v run", Names())
	}
}
