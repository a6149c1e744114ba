package simd

import (
	"math"
	"slices"
	"testing"
)

// operandCase is a call on operands of exact length: f takes them in order, all[i] is the length of each. Assembly does
// not check bounds, so that a check that is too weak is a read or a write outside of an operand.
type operandCase struct {
	name   string
	floats []int // operands of float32
	halves []int // operands of uint16
	f      func(x [][]float32, h [][]uint16)
}

// operandCases are the entry points with their smallest operands.
func operandCases() []operandCase { return slices.Concat(productOperands(), vectorOperands()) }

// productOperands are those of products and their packing. Pitches are larger than rows.
func productOperands() []operandCase {
	const m, n, k, lda, ldb, ldc = 5, 7, 9, 11, 13, 10
	var s Scratch
	list := []operandCase{
		{"pack a", []int{SizeA(m, k), (m-1)*lda + k}, nil,
			func(x [][]float32, _ [][]uint16) { PackA(x[0], m, k, x[1], lda, false) }},
		{"pack aᵀ", []int{SizeA(m, k), (k-1)*lda + m}, nil,
			func(x [][]float32, _ [][]uint16) { PackA(x[0], m, k, x[1], lda, true) }},
		{"pack b", []int{SizeB(k, n), (k-1)*ldb + n}, nil,
			func(x [][]float32, _ [][]uint16) { PackB(x[0], k, n, x[1], ldb, false) }},
		{"pack bᵀ", []int{SizeB(k, n), (n-1)*ldb + k}, nil,
			func(x [][]float32, _ [][]uint16) { PackB(x[0], k, n, x[1], ldb, true) }},
		{"packed", []int{m * k, SizeB(k, n), (m-1)*ldc + n}, nil,
			func(x [][]float32, _ [][]uint16) { GemmPacked(m, n, k, x[0], x[1], x[2], ldc, true) }},
		{"plain", []int{(m-1)*lda + k, SizeB(k, n), (m-1)*ldc + n}, nil, func(x [][]float32, _ [][]uint16) {
			GemmPlain(m, n, k, x[0], lda, x[1], k, x[2], ldc, true, NoDiag, &s)
		}},
		{"below", []int{m * k, SizeB(k, n), (m-1)*ldc + n}, nil,
			func(x [][]float32, _ [][]uint16) { GemmBelow(m, n, k, x[0], x[1], x[2], ldc, NoDiag) }},
		{"later", []int{m * k, SizeB(k, n), (m-1)*ldc + n}, nil, func(x [][]float32, _ [][]uint16) {
			GemmLater(m, n, k, x[0], x[1], k, x[2], ldc, NoDiag)
		}},
		{"pack a bf16", []int{(m-1)*lda + k}, []int{SizeBF16(m, k)},
			func(x [][]float32, h [][]uint16) { PackABF16(h[0], m, k, View{X: x[0], Ld: lda}, false) }},
		{"pack b bf16", []int{(k-1)*ldb + n}, []int{SizeBF16(n, k)},
			func(x [][]float32, h [][]uint16) { PackBBF16(h[0], k, n, View{X: x[0], Ld: ldb}, false, k) }},
		{"pack bf16 of halves", nil, []int{SizeBF16(n, k), (n-1)*ldb + k},
			func(_ [][]float32, h [][]uint16) { PackBBF16(h[0], k, n, View{H: h[1], Ld: ldb}, true, k) }},
		{"bf16", []int{(m-1)*ldc + n}, []int{SizeBF16(m, k), SizeBF16(n, k)}, func(x [][]float32, h [][]uint16) {
			GemmBF16(m, n, k, h[0], h[1], k, View{X: x[0], Ld: ldc}, false, false, &s)
		}},
		{"few rows in bf16", []int{2*lda*4 + 32, 2*ldc + n}, []int{SizeBF16(n, k)}, func(x [][]float32, h [][]uint16) {
			GemmFewBF16(3, n, k, x[0], 4*lda, h[0], x[1], ldc, false, &s)
		}},
	}
	if cur.turneds != nil {
		list = append(list,
			operandCase{"turned later", []int{(k-1)*lda + m, SizeB(k, n), (m-1)*ldc + n}, nil,
				func(x [][]float32, _ [][]uint16) {
					GemmTurnedLater(m, n, k, x[0], lda, x[1], x[2], ldc, NoDiag)
				}})
	}
	if PlainA() {
		list = append(list, operandCase{"plain below", []int{(m-1)*lda + k, SizeB(k, n), (m-1)*ldc + n}, nil,
			func(x [][]float32, _ [][]uint16) {
				GemmPlainBelow(m, n, k, x[0], lda, x[1], x[2], ldc, NoDiag)
			}})
	}
	return list
}

// vectorOperands are those of ops on vectors of m elements.
func vectorOperands() []operandCase {
	const m = 5
	return []operandCase{
		{"add", []int{m, m}, nil, func(x [][]float32, _ [][]uint16) { Add(make([]float32, m), x[0], x[1]) }},
		{"axpy", []int{m}, nil, func(x [][]float32, _ [][]uint16) { Axpy(make([]float32, m), 2, x[0]) }},
		{"dot", []int{m}, nil, func(x [][]float32, _ [][]uint16) { Dot(make([]float32, m), x[0]) }},
		{"dot3", []int{m, m}, nil, func(x [][]float32, _ [][]uint16) { Dot3(make([]float32, m), x[0], x[1]) }},
		{"silu", []int{m, m}, nil, func(x [][]float32, _ [][]uint16) { SiluMul(make([]float32, m), x[0], x[1]) }},
		{"silu grad", []int{m, m, m, m, m}, nil,
			func(x [][]float32, _ [][]uint16) { SiluMulGrad(make([]float32, m), x[0], x[1], x[2], x[3], x[4]) }},
		{"adamw", []int{m, m, m}, nil,
			func(x [][]float32, _ [][]uint16) { AdamWStep(make([]float32, m), x[0], x[1], x[2], &AdamW{}) }},
		{"norm grad", []int{m, m, m}, nil,
			func(x [][]float32, _ [][]uint16) { NormGrad(make([]float32, m), x[0], x[1], x[2], 1, 1) }},
		{"widen", []int{m}, []int{m}, func(x [][]float32, h [][]uint16) { WidenBF16(x[0], h[0][:m:m]) }},
		{"narrow", []int{m}, []int{m}, func(x [][]float32, h [][]uint16) { NarrowBF16(h[0], x[0][:m:m]) }},
		{"join", []int{m}, []int{m, m}, func(x [][]float32, h [][]uint16) { JoinBF16(x[0], h[0][:m:m], h[1]) }},
		{"split", []int{m}, []int{m, m}, func(x [][]float32, h [][]uint16) { SplitBF16(h[0], h[1], x[0][:m:m]) }},
	}
}

// Every entry point takes operands of exactly the length it needs, and refuses each one that is an element shorter.
func TestOperandLengths(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, c := range operandCases() {
			for short := -1; short < len(c.floats)+len(c.halves); short++ {
				var x [][]float32
				var h [][]uint16
				for i, n := range c.floats {
					if i == short {
						n--
					}
					x = append(x, Aligned(n))
				}
				for i, n := range c.halves {
					if i+len(c.floats) == short {
						n--
					}
					h = append(h, make([]uint16, n))
				}
				if refused := panics(func() { c.f(x, h) }); refused != (short >= 0) {
					t.Errorf("%s: operand %d an element short is refused: %v", c.name, short, refused)
				}
			}
		}
	})
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// emptyProducts are the products of m × k and k × n, one of which may be 0, into c of pitch ldc.
func emptyProducts(m, n, k, ldc int) map[string]func(c []float32, acc bool) {
	var s Scratch
	a, pb := make([]float32, 64), make([]float32, max(SizeB(max(k, 1), max(n, 1)), 64))
	ph := make([]uint16, 64*64)
	return map[string]func(c []float32, acc bool){
		"gemm":   func(c []float32, acc bool) { Gemm(m, n, k, a, 8, false, a, 8, false, c, ldc, acc, &s) },
		"packed": func(c []float32, acc bool) { GemmPacked(m, n, k, a, pb, c, ldc, acc) },
		"plain": func(c []float32, acc bool) {
			GemmPlain(m, n, k, a, 8, pb, max(k, 1), c, ldc, acc, NoDiag, &s)
		},
		"bf16": func(c []float32, acc bool) {
			GemmBF16(m, n, k, ph, ph, k, View{X: c, Ld: ldc}, acc, false, &s)
		},
		"few": func(c []float32, acc bool) { GemmFewBF16(m, n, k, a, 32, ph, c, ldc, acc, &s) },
		"skinny": func(c []float32, acc bool) {
			if SkinnyRows() >= m {
				GemmSkinny(m, n, k, a, 8, a, 8, c, ldc, acc, &s)
			} else {
				Gemm(m, n, k, a, 8, false, a, 8, true, c, ldc, acc, &s)
			}
		},
		"below": func(c []float32, acc bool) {
			if !acc {
				GemmBelow(m, n, k, a, pb, c, ldc, NoDiag)
			}
		},
		"later": func(c []float32, acc bool) {
			if acc {
				GemmLater(m, n, k, a, pb, max(k, 1), c, ldc, NoDiag)
			} else {
				GemmPacked(m, n, k, a, pb, c, ldc, false)
			}
		},
	}
}

// Products without rows, columns or terms: nothing is written but zeros, and not even these when they are added to.
func TestEmptyProducts(t *testing.T) {
	each(t, func(t *testing.T) {
		const ldc = 6
		for _, sh := range [][3]int{{0, 4, 3}, {2, 0, 3}, {2, 4, 0}} {
			m, n, k := sh[0], sh[1], sh[2]
			for name, f := range emptyProducts(m, n, k, ldc) {
				for _, acc := range []bool{false, true} {
					if name == "bf16" && acc { // covered by the others; its sums may begin in tiles
						continue
					}
					c := make([]float32, 2*ldc)
					for i := range c {
						c[i] = 7
					}
					f(c, acc)
					for i, x := range c {
						want := float32(7)
						if k == 0 && !acc && i/ldc < m && i%ldc < n {
							want = 0
						}
						if x != want {
							t.Fatalf("%s of %d×%d×%d, adding %v: element %d is %g, want %g", name, m, n, k,
								acc, i, x, want)
						}
					}
				}
			}
		}
		if got := Max(nil); !math.IsInf(float64(got), -1) {
			t.Errorf("the largest of nothing is %g", got)
		}
	})
}

// Sizes of packed operands by hand, and heads that are not whole.
func TestSizes(t *testing.T) {
	for _, c := range []struct{ got, want int }{
		{SizeA(5, 7), 35}, {SizeB(7, 1), 7 * NR()}, {SizeB(7, NR()), 7 * NR()}, {SizeB(7, NR()+1), 14 * NR()},
		{SizeBF16(1, 1), 1024}, {SizeBF16(32, 32), 1024}, {SizeBF16(33, 32), 2048}, {SizeBF16(32, 33), 2048},
		{FloatsBF16(33, 33), 2048},
		{up32(0), 0}, {up32(1), 32}, {up32(32), 32}, {up32(33), 64},
	} {
		if c.got != c.want {
			t.Errorf("%d, want %d", c.got, c.want)
		}
	}
	buf := Aligned(20)
	if a, b := Cut(&buf, 5), Cut(&buf, 7); len(a) != 5 || cap(a) != 5 || len(b) != 7 || len(buf) != 8 {
		t.Errorf("%d, %d, %d are left", len(a), len(b), len(buf))
	}
	for _, n := range []int{1, 5, 100} {
		grown := Grow(&buf, n)
		if len(grown) != n || cap(buf) < n {
			t.Errorf("%d of %d", len(grown), n)
		}
	}
	x, two, three := make([]float32, 12), make([]float32, 2), make([]float32, 3)
	for name, c := range map[string]struct {
		f    func()
		good bool
	}{
		"three heads of 4": {func() { RotateHeads(x, two, two, 1) }, true},
		"two heads of 6":   {func() { RotatePairs(x, three, three, 1) }, true},
		"not whole":        {func() { RotateHeads(x[:10], two, two, 1) }, false},
		"no angles":        {func() { RotateHeads(x, nil, nil, 1) }, false},
		"other sines":      {func() { RotatePairs(x, two, three, 1) }, false},
		"no heads":         {func() { RotatePairs(nil, two, two, 1) }, true},
	} {
		if panics(c.f) == c.good {
			t.Errorf("%s: refused %v", name, c.good)
		}
	}
}
