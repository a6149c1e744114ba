package simd

import "fmt"

// vectorKernels are the elementwise and reducing functions of one implementation. Their slices have equal lengths.
type vectorKernels struct {
	add          func(dst, a, b []float32)
	scale        func(y []float32, alpha float32)
	axpy         func(y []float32, alpha float32, x []float32)
	scaleMul     func(dst []float32, alpha float32, a, b []float32)
	mulAxpy      func(y []float32, alpha float32, a, b []float32)
	normGrad     func(dx, dy, w, x []float32, p, q float32)
	rotateHeads  func(x, cos, sin []float32, sign float32) // at least one head
	rotatePairs  func(x, cos, sin []float32, sign float32)
	roundBF16    func(dst, src []float32)
	dot          func(a, b []float32) float32
	dot3         func(a, b, c []float32) float32
	sumSquares   func(x []float32) float64
	max          func(x []float32) float32
	expSum       func(dst, src []float32, scale, shift float32) float32
	softmaxBack  func(p, dp []float32, s *SoftmaxBack)
	softmaxBack2 func(p1, p2, mix, dp []float32, s *SoftmaxBack)
	sigmoid      func(dst, src []float32)
	sigmoidGrad  func(dst, dy, y []float32)
	siluMul      func(dst, g, u []float32)
	siluMulGrad  func(dg, du, y, dy, g, u []float32)
	adamw        func(p, m, v, g []float32, s *AdamW)
}

// Add: dst = a + b.
func Add(dst, a, b []float32) { cur.add(dst, like("add", dst, a), like("add", dst, b)) }

// Scale: y = alpha·y.
func Scale(y []float32, alpha float32) { cur.scale(y, alpha) }

// Axpy: y += alpha·x, in one rounding.
func Axpy(y []float32, alpha float32, x []float32) { cur.axpy(y, alpha, like("axpy", y, x)) }

// ScaleMul: dst = (alpha·a)·b.
func ScaleMul(dst []float32, alpha float32, a, b []float32) {
	cur.scaleMul(dst, alpha, like("scale mul", dst, a), like("scale mul", dst, b))
}

// MulAxpy: y += (alpha·a)·b.
func MulAxpy(y []float32, alpha float32, a, b []float32) {
	cur.mulAxpy(y, alpha, like("mul axpy", y, a), like("mul axpy", y, b))
}

// NormGrad: dx += p·dy·w + q·x.
func NormGrad(dx, dy, w, x []float32, p, q float32) {
	cur.normGrad(dx, like("norm grad", dx, dy), like("norm grad", dx, w), like("norm grad", dx, x), p, q)
}

// SoftmaxBack holds the factors of a row of one or two softmax maps in the backward pass.
type SoftmaxBack struct {
	Scale float32
	LSE   [2]float32
	Delta [2]float32
	Alpha [2]float32
	Lam   float32 // of the second map in mix: −λ
}

// SoftmaxBackward: p = exp(Scale·p − LSE), dp = Alpha·p·(dp − Delta): a row of logits becomes probabilities, and the
// gradient of these becomes that of the logits.
func SoftmaxBackward(p, dp []float32, s *SoftmaxBack) {
	cur.softmaxBack(p, like("softmax backward", p, dp), s)
}

// SoftmaxBackward2 is SoftmaxBackward for two maps that share dp: with p1, p2 the probabilities, mix = p1 + Lam·p2, and
// p1 and p2 are replaced by the gradients of their logits.
func SoftmaxBackward2(p1, p2, mix, dp []float32, s *SoftmaxBack) {
	const op = "softmax backward"
	cur.softmaxBack2(p1, like(op, p1, p2), like(op, p1, mix), like(op, p1, dp), s)
}

// RotateHeads turns the heads in x, of 2·len(cos) elements each, by one position's angles, or back with sign −1: with a
// head's halves a and b, a' = a·cos − sign·b·sin, b' = sign·a·sin + b·cos.
func RotateHeads(x, cos, sin []float32, sign float32) {
	if heads(len(x), cos, sin) > 0 {
		cur.rotateHeads(x, cos, sin, sign)
	}
}

// RotatePairs is RotateHeads for adjacent pairs: a = x[2j], b = x[2j+1] of each head.
func RotatePairs(x, cos, sin []float32, sign float32) {
	if heads(len(x), cos, sin) > 0 {
		cur.rotatePairs(x, cos, sin, sign)
	}
}

// heads is how many there are in n elements, and panics where they are not whole.
func heads(n int, cos, sin []float32) int {
	if len(cos) == 0 || len(sin) != len(cos) || n%(2*len(cos)) != 0 {
		panic(fmt.Sprintf("simd: rotation of %d elements by %d cos and %d sin", n, len(cos), len(sin)))
	}
	return n / (2 * len(cos))
}

// RoundBF16: dst = src rounded to the nearest bfloat16 value, ties to even. A NaN stays one.
func RoundBF16(dst, src []float32) { cur.roundBF16(dst, like("round", dst, src)) }

// Dot is Σ a·b.
func Dot(a, b []float32) float32 { return cur.dot(a, like("dot", a, b)) }

// Dot3 is Σ a·b·c.
func Dot3(a, b, c []float32) float32 { return cur.dot3(a, like("dot3", a, b), like("dot3", a, c)) }

// SumSquares is Σ x², summed in float64.
func SumSquares(x []float32) float64 { return cur.sumSquares(x) }

// Max is the largest element, −Inf for none. Elements must not be NaN.
func Max(x []float32) float32 { return cur.max(x) }

// ExpSum: dst = exp(scale·src − shift); the sum of dst is returned. Results below the smallest normal
// number are 0, so exp(−Inf) = 0; an argument of NaN gives NaN.
func ExpSum(dst, src []float32, scale, shift float32) float32 {
	return cur.expSum(dst, like("exp", dst, src), scale, shift)
}

// Sigmoid: dst = 1/(1+e^−src).
func Sigmoid(dst, src []float32) { cur.sigmoid(dst, like("sigmoid", dst, src)) }

// SigmoidGrad: dst = dy·y·(1−y).
func SigmoidGrad(dst, dy, y []float32) {
	cur.sigmoidGrad(dst, like("sigmoid grad", dst, dy), like("sigmoid grad", dst, y))
}

// SiluMul: dst = g·σ(g)·u.
func SiluMul(dst, g, u []float32) {
	cur.siluMul(dst, like("silu mul", dst, g), like("silu mul", dst, u))
}

// SiluMulGrad: with σ = σ(g), du = dy·g·σ and dg = dy·u·σ·(1 + g·(1−σ)), and y = g·σ·u, the bits of SiluMul. dg, du may
// be g, u, and y may be dy.
func SiluMulGrad(dg, du, y, dy, g, u []float32) {
	const op = "silu mul grad"
	cur.siluMulGrad(dg, like(op, dg, du), like(op, dg, y), like(op, dg, dy), like(op, dg, g), like(op, dg, u))
}

// AdamW holds the factors of one step: with ĝ = Clip·g, m = Beta1·m + Beta1c·ĝ, v = Beta2·v + Beta2c·ĝ²,
// p = Keep·p − Step·m/(√(C2·v) + Eps). Keep = 1 − lr·decay, Step = lr/c1, C2 = 1/c2 in the notation of device.AdamW.
type AdamW struct {
	Clip, Beta1, Beta1c, Beta2, Beta2c, Keep, Step, C2, Eps float32
}

// AdamWStep updates p, m and v in place. The assembly takes subnormal numbers for 0: the moments of a parameter without
// gradient decay into that range, never leave it by rounding, and would cost a hundred cycles each from then on.
func AdamWStep(p, m, v, g []float32, s *AdamW) {
	cur.adamw(p, like("adamw", p, m), like("adamw", p, v), like("adamw", p, g), s)
}

// like cuts x to dst's length and panics when it is shorter.
func like(op string, dst, x []float32) []float32 {
	if len(x) < len(dst) {
		panic(fmt.Sprintf("simd: %s of %d and %d elements", op, len(dst), len(x)))
	}
	return x[:len(dst)]
}
