package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bf16Lists are operands of the vector functions on bfloat16, and the same in float32.
type bf16Lists struct {
	h [6][]uint16
	x [6][]float32
	w [2][]float32
}

// bf16Pairs are the functions on bfloat16 beside those on float32; they return sums.
var bf16Pairs = map[string][2]func(l *bf16Lists) float64{
	"add": {
		func(l *bf16Lists) float64 { AddBF16(l.h[0], l.h[1], l.h[2], 64); return 0 },
		func(l *bf16Lists) float64 { Add(l.x[0], l.x[1], l.x[2]); return 0 },
	},
	"scaleMul": {
		func(l *bf16Lists) float64 { ScaleMulBF16(l.h[0], 0.3, l.h[0], l.w[0]); return 0 },
		func(l *bf16Lists) float64 { ScaleMul(l.x[0], 0.3, l.x[0], l.w[0]); return 0 },
	},
	"mulAxpy": {
		func(l *bf16Lists) float64 { MulAxpyBF16(l.w[0], 0.3, l.h[1], l.h[2]); return 0 },
		func(l *bf16Lists) float64 { MulAxpy(l.w[0], 0.3, l.x[1], l.x[2]); return 0 },
	},
	"normGrad": {
		func(l *bf16Lists) float64 { NormGradBF16(l.h[0], l.h[1], l.w[0], l.h[2], 0.3, -0.7, 64); return 0 },
		func(l *bf16Lists) float64 { NormGrad(l.x[0], l.x[1], l.w[0], l.x[2], 0.3, -0.7); return 0 },
	},
	"dot3": {
		func(l *bf16Lists) float64 { return float64(Dot3BF16(l.h[0], l.w[0], l.h[1], 64)) },
		func(l *bf16Lists) float64 { return float64(Dot3(l.x[0], l.w[0], l.x[1])) },
	},
	"sumSquares": {
		func(l *bf16Lists) float64 { return SumSquaresBF16(l.h[0]) },
		func(l *bf16Lists) float64 { return SumSquares(l.x[0]) },
	},
	"expSum": {
		func(l *bf16Lists) float64 { return float64(ExpSumBF16(l.h[0], l.w[0], 0.7, 0.5)) },
		func(l *bf16Lists) float64 { return float64(ExpSum(l.x[0], l.w[0], 0.7, 0.5)) },
	},
	"siluMul": {
		func(l *bf16Lists) float64 { SiluMulBF16(l.h[0], l.h[1], l.h[2], 1<<40); return 0 },
		func(l *bf16Lists) float64 { SiluMul(l.x[0], l.x[1], l.x[2]); return 0 },
	},
	"siluMulGrad": {
		func(l *bf16Lists) float64 {
			SiluMulGradBF16(l.h[0], l.h[1], l.h[2], l.h[3], l.h[4], l.h[5], 0)
			return 0
		},
		func(l *bf16Lists) float64 { SiluMulGrad(l.x[0], l.x[1], l.x[2], l.x[3], l.x[4], l.x[5]); return 0 },
	},
	"siluMulGrad in place": {
		func(l *bf16Lists) float64 {
			SiluMulGradBF16(l.h[0], l.h[1], l.h[2], l.h[2], l.h[0], l.h[1], 64)
			return 0
		},
		func(l *bf16Lists) float64 { SiluMulGrad(l.x[0], l.x[1], l.x[2], l.x[2], l.x[0], l.x[1]); return 0 },
	},
}

// A function on bfloat16 gives the bits of widening, computing and narrowing, at every length and wherever slices
// begin.
func TestVectorsBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		if !VectorsBF16() {
			t.Skip("not with this implementation")
		}
		for name, pair := range bf16Pairs {
			for _, n := range lengths() {
				short, wide := newBF16Lists(n), newBF16Lists(n)
				got, want := pair[0](short), pair[1](wide)
				if err := short.differ(wide, n); err != nil || got != want {
					t.Fatalf("%s of %d elements: %v; sums %v, %v", name, n, err, got, want)
				}
			}
		}
	})
}

// A step on halves gives the bits of joining, stepping and cutting, subnormal numbers too.
func TestAdamWSplit(t *testing.T) {
	s := &AdamW{Clip: 0.5, Beta1: 0.9, Beta1c: 0.1, Beta2: 0.95, Beta2c: 0.05, Keep: 0.99, Step: 0.3, C2: 2, Eps: 1e-8}
	each(t, func(t *testing.T) {
		if !VectorsBF16() {
			t.Skip("not with this implementation")
		}
		r := rand.New(rand.NewPCG(6, 1))
		for _, n := range lengths() {
			var lists, want [4][]float32 // p, m, v, g
			for i := range lists {
				lists[i] = random(r, n+1, math.Pow(1e-38, float64(i%2)*r.Float64()))
			}
			square(lists[2])
			for i := range lists {
				want[i] = slices.Clone(lists[i])
			}
			up, low, p := make([]uint16, n+1), make([]uint16, n+1), make([]float32, n+1)
			SplitBF16(up, low, lists[0])
			AdamWSplitStep(up[:n], low[:n], lists[1], lists[2], lists[3], s)
			JoinBF16(p, up, low)
			AdamWStep(want[0][:n], want[1], want[2], want[3], s)
			if !slices.Equal(p, want[0]) || !slices.Equal(lists[1], want[1]) || !slices.Equal(lists[2], want[2]) {
				t.Fatalf("%d elements have other bits", n)
			}
		}
	})
}

// newBF16Lists draws operands of n elements, one more behind each.
func newBF16Lists(n int) *bf16Lists {
	r, l := rand.New(rand.NewPCG(5, uint64(n))), new(bf16Lists)
	for i := range l.h {
		at := r.IntN(17)
		l.h[i], l.x[i] = make([]uint16, at+n+1)[at:at+n], make([]float32, at+n+1)[at:at+n]
		for j := range n {
			l.h[i][j] = bf16Of(4 * float32(r.NormFloat64()))
			l.x[i][j] = f32Of(l.h[i][j])
		}
	}
	for i := range l.w {
		l.w[i] = random(r, n, 1)
	}
	return l
}

// differ says where the bfloat16 values of l are not the rounded float32 of o, or something behind them was written.
func (l *bf16Lists) differ(o *bf16Lists, n int) error {
	for i := range l.h {
		for j, x := range o.x[i] {
			if l.h[i][j] != bf16Of(x) {
				return fmt.Errorf("operand %d, element %d: %#x, want %#x", i, j, l.h[i][j], bf16Of(x))
			}
		}
		if l.h[i][:n+1][n] != 0 {
			return fmt.Errorf("operand %d: something was written behind it", i)
		}
	}
	if !slices.Equal(l.w[0], o.w[0]) {
		return fmt.Errorf("the sums differ")
	}
	return nil
}
