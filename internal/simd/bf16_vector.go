package simd

import "fmt"

// bf16Vectors are vector functions on slices of bfloat16, in one pass over memory: computed in float32 by the
// instructions of their namesakes in vectorKernels, and rounded as NarrowBF16 does. Only implementations with
// conversion instructions have them.
//
// They consume memory so fast that it must be prefetched early, beyond the page at which the hardware prefetcher stops:
// ahead is the distance in elements from the bfloat16 operands to those of the caller's next call, 0 if there is none.
type bf16Vectors struct {
	add         func(dst, a, b []uint16, ahead int)
	scaleMul    func(dst []uint16, alpha float32, a []uint16, b []float32)
	mulAxpy     func(y []float32, alpha float32, a, b []uint16)
	normGrad    func(dx, dy []uint16, w []float32, x []uint16, p, q float32, ahead int)
	rotateHeads func(x []uint16, cos, sin []float32, sign float32, ahead int)
	rotatePairs func(x []uint16, cos, sin []float32, sign float32, ahead int)
	dot3        func(a []uint16, b []float32, c []uint16, ahead int) float32
	sumSquares  func(x []uint16) float64
	expSum      func(dst []uint16, src []float32, scale, shift float32) float32
	siluMul     func(dst, g, u []uint16, ahead int)
	siluMulGrad func(dg, du, y, dy, g, u []uint16, ahead int)
	adamwSplit  func(up, low []uint16, m, v, g []float32, s *AdamW)
}

// VectorsBF16 reports whether the functions below are available. Without them callers widen, compute and narrow, which
// gives the same bits.
func VectorsBF16() bool { return cur.short.add != nil }

// AddBF16 is Add of bfloat16.
func AddBF16(dst, a, b []uint16, ahead int) {
	cur.short.add(dst, same("add", len(dst), a), same("add", len(dst), b), ahead)
}

// ScaleMulBF16 is ScaleMul with dst and a of bfloat16.
func ScaleMulBF16(dst []uint16, alpha float32, a []uint16, b []float32) {
	cur.short.scaleMul(dst, alpha, same("scale mul", len(dst), a), same("scale mul", len(dst), b))
}

// MulAxpyBF16 is MulAxpy with a and b of bfloat16.
func MulAxpyBF16(y []float32, alpha float32, a, b []uint16) {
	cur.short.mulAxpy(y, alpha, same("mul axpy", len(y), a), same("mul axpy", len(y), b))
}

// NormGradBF16 is NormGrad with dx, dy and x of bfloat16.
func NormGradBF16(dx, dy []uint16, w []float32, x []uint16, p, q float32, ahead int) {
	const op = "norm grad"
	cur.short.normGrad(dx, same(op, len(dx), dy), same(op, len(dx), w), same(op, len(dx), x), p, q, ahead)
}

// RotateHeadsBF16 is RotateHeads of bfloat16.
func RotateHeadsBF16(x []uint16, cos, sin []float32, sign float32, ahead int) {
	if heads(len(x), cos, sin) > 0 {
		cur.short.rotateHeads(x, cos, sin, sign, ahead)
	}
}

// RotatePairsBF16 is RotatePairs of bfloat16.
func RotatePairsBF16(x []uint16, cos, sin []float32, sign float32, ahead int) {
	if heads(len(x), cos, sin) > 0 {
		cur.short.rotatePairs(x, cos, sin, sign, ahead)
	}
}

// Dot3BF16 is Dot3 with a and c of bfloat16.
func Dot3BF16(a []uint16, b []float32, c []uint16, ahead int) float32 {
	return cur.short.dot3(a, same("dot3", len(a), b), same("dot3", len(a), c), ahead)
}

// SumSquaresBF16 is SumSquares of bfloat16.
func SumSquaresBF16(x []uint16) float64 { return cur.short.sumSquares(x) }

// ExpSumBF16 is ExpSum with dst of bfloat16. The sum is of the exponentials before they are rounded.
func ExpSumBF16(dst []uint16, src []float32, scale, shift float32) float32 {
	return cur.short.expSum(dst, same("exp", len(dst), src), scale, shift)
}

// SiluMulBF16 is SiluMul of bfloat16.
func SiluMulBF16(dst, g, u []uint16, ahead int) {
	cur.short.siluMul(dst, same("silu mul", len(dst), g), same("silu mul", len(dst), u), ahead)
}

// SiluMulGradBF16 is SiluMulGrad of bfloat16.
func SiluMulGradBF16(dg, du, y, dy, g, u []uint16, ahead int) {
	const op = "silu mul grad"
	n := len(dg)
	cur.short.siluMulGrad(dg, same(op, n, du), same(op, n, y), same(op, n, dy), same(op, n, g), same(op, n, u), ahead)
}

// AdamWSplitStep is AdamWStep on parameters cut into halves as by SplitBF16.
func AdamWSplitStep(up, low []uint16, m, v, g []float32, s *AdamW) {
	const op = "adamw"
	n := len(up)
	cur.short.adamwSplit(up, same(op, n, low), same(op, n, m), same(op, n, v), same(op, n, g), s)
}

// same cuts x to n elements and panics when it has fewer.
func same[E float32 | uint16](op string, n int, x []E) []E {
	if len(x) < n {
		panic(fmt.Sprintf("simd: bf16 %s of %d and %d elements", op, n, len(x)))
	}
	return x[:n]
}
