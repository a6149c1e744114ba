package simd

import "fmt"

// bf16Vectors are vector functions on slices of bfloat16, in one pass over memory: computed in float32 by the instructions of their
// namesakes in vectorKernels, and rounded as NarrowBF16 does. Only the implementations with a conversion of their own have them.
type bf16Vectors struct {
	add         func(dst, a, b []uint16)
	scaleMul    func(dst []uint16, alpha float32, a []uint16, b []float32)
	mulAxpy     func(y []float32, alpha float32, a, b []uint16)
	normGrad    func(dx, dy []uint16, w []float32, x []uint16, p, q float32)
	rotate      func(a, b []uint16, cos, sin []float32)
	dot3        func(a []uint16, b []float32, c []uint16) float32
	sumSquares  func(x []uint16) float64
	siluMul     func(dst, g, u []uint16)
	siluMulGrad func(dg, du, y, dy, g, u []uint16)
}

// VectorsBF16 says that the functions below are there. Others widen, compute and narrow, which gives the same bits.
func VectorsBF16() bool { return cur.short.add != nil }

// AddBF16 is Add of bfloat16.
func AddBF16(dst, a, b []uint16) {
	cur.short.add(dst, same("add", len(dst), a), same("add", len(dst), b))
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
func NormGradBF16(dx, dy []uint16, w []float32, x []uint16, p, q float32) {
	const op = "norm grad"
	cur.short.normGrad(dx, same(op, len(dx), dy), same(op, len(dx), w), same(op, len(dx), x), p, q)
}

// RotateBF16 is Rotate with a and b of bfloat16.
func RotateBF16(a, b []uint16, cos, sin []float32) {
	cur.short.rotate(a, same("rotate", len(a), b), same("rotate", len(a), cos), same("rotate", len(a), sin))
}

// Dot3BF16 is Dot3 with a and c of bfloat16.
func Dot3BF16(a []uint16, b []float32, c []uint16) float32 {
	return cur.short.dot3(a, same("dot3", len(a), b), same("dot3", len(a), c))
}

// SumSquaresBF16 is SumSquares of bfloat16.
func SumSquaresBF16(x []uint16) float64 { return cur.short.sumSquares(x) }

// SiluMulBF16 is SiluMul of bfloat16.
func SiluMulBF16(dst, g, u []uint16) {
	cur.short.siluMul(dst, same("silu mul", len(dst), g), same("silu mul", len(dst), u))
}

// SiluMulGradBF16 is SiluMulGrad of bfloat16.
func SiluMulGradBF16(dg, du, y, dy, g, u []uint16) {
	const op = "silu mul grad"
	n := len(dg)
	cur.short.siluMulGrad(dg, same(op, n, du), same(op, n, y), same(op, n, dy), same(op, n, g), same(op, n, u))
}

// same cuts x to n elements and panics when it has fewer.
func same[E float32 | uint16](op string, n int, x []E) []E {
	if len(x) < n {
		panic(fmt.Sprintf("simd: bf16 %s of %d and %d elements", op, n, len(x)))
	}
	return x[:n]
}
