package simd

import "math"

var generic = kernels{
	name:        "generic",
	gemmKernels: genericGemm,
	vectorKernels: vectorKernels{
		add: addGeneric, scale: scaleGeneric, axpy: axpyGeneric, scaleMul: scaleMulGeneric, mulAxpy: mulAxpyGeneric,
		normGrad:    normGradGeneric,
		softmaxBack: softmaxBackGeneric, softmaxBack2: softmaxBack2Generic, rotateHeads: rotateHeadsGeneric,
		rotatePairs: rotatePairsGeneric, roundBF16: roundBF16Generic,
		dot: dotGeneric, dot3: dot3Generic, sumSquares: sumSquaresGeneric, max: maxGeneric,
		expSum: expSumGeneric, sigmoid: sigmoidGeneric, sigmoidGrad: sigmoidGradGeneric,
		siluMul: siluMulGeneric, siluMulGrad: siluMulGradGeneric, adamw: adamwGeneric,
	},
	halfKernels: genericHalf,
	bf16Kernels: genericBF16,
	bytes:       genericInt8,
}

// Products are wrapped in float32() wherever they are added, so that no compiler fuses them in one place and not in
// another. Slices are cut to one length at the start, which takes bounds checks out of the loops.

func addGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func scaleGeneric(y []float32, alpha float32) {
	for i := range y {
		y[i] *= alpha
	}
}

func axpyGeneric(y []float32, alpha float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(alpha * x[i])
	}
}

func scaleMulGeneric(dst []float32, alpha float32, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = alpha * a[i] * b[i]
	}
}

func mulAxpyGeneric(y []float32, alpha float32, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] += float32(alpha * a[i] * b[i])
	}
}

func normGradGeneric(dx, dy, w, x []float32, p, q float32) {
	dy, w, x = dy[:len(dx)], w[:len(dx)], x[:len(dx)]
	for i := range dx {
		dx[i] += float32(p*dy[i]*w[i]) + float32(q*x[i])
	}
}

func softmaxBackGeneric(p, dp []float32, s *SoftmaxBack) {
	dp = dp[:len(p)]
	for i, x := range p {
		e := expGeneric(float32(s.Scale*x) - s.LSE[0])
		p[i] = e
		dp[i] = s.Alpha[0] * e * (dp[i] - s.Delta[0])
	}
}

func softmaxBack2Generic(p1, p2, mix, dp []float32, s *SoftmaxBack) {
	p2, mix, dp = p2[:len(p1)], mix[:len(p1)], dp[:len(p1)]
	for i, x := range p1 {
		e1, e2 := expGeneric(float32(s.Scale*x)-s.LSE[0]), expGeneric(float32(s.Scale*p2[i])-s.LSE[1])
		mix[i] = e1 + float32(s.Lam*e2)
		p1[i] = s.Alpha[0] * e1 * (dp[i] - s.Delta[0])
		p2[i] = s.Alpha[1] * e2 * (dp[i] - s.Delta[1])
	}
}

func rotateHeadsGeneric(x, cos, sin []float32, sign float32) {
	sin = sin[:len(cos)]
	for half := len(cos); len(x) > 0; x = x[2*half:] {
		a, b := x[:half][:len(cos)], x[half:][:len(cos)]
		for j, c := range cos {
			a[j], b[j] = rotated(a[j], b[j], c, sign*sin[j])
		}
	}
}

func rotatePairsGeneric(x, cos, sin []float32, sign float32) {
	for ; len(x) > 0; x = x[2*len(cos):] {
		for j, c := range cos {
			x[2*j], x[2*j+1] = rotated(x[2*j], x[2*j+1], c, sign*sin[j])
		}
	}
}

func rotated(a, b, cos, sin float32) (x, y float32) {
	return float32(a*cos) - float32(b*sin), float32(a*sin) + float32(b*cos)
}

func roundBF16Generic(dst, src []float32) {
	for i, x := range src {
		b := math.Float32bits(x)
		if x == x {
			b += 0x7FFF + b>>16&1
		} else {
			b |= 0x400000 // the quiet bit survives the cut, so a NaN stays one
		}
		dst[i] = math.Float32frombits(b &^ 0xFFFF)
	}
}

func dotGeneric(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float32(a[i] * b[i])
		s1 += float32(a[i+1] * b[i+1])
		s2 += float32(a[i+2] * b[i+2])
		s3 += float32(a[i+3] * b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float32(a[i] * b[i])
	}
	return s0 + s2 + (s1 + s3)
}

func dot3Generic(a, b, c []float32) float32 {
	b, c = b[:len(a)], c[:len(a)]
	var s0, s1 float32
	i := 0
	for ; i+2 <= len(a); i += 2 {
		s0 += float32(a[i] * b[i] * c[i])
		s1 += float32(a[i+1] * b[i+1] * c[i+1])
	}
	for ; i < len(a); i++ {
		s0 += float32(a[i] * b[i] * c[i])
	}
	return s0 + s1
}

func sumSquaresGeneric(x []float32) float64 {
	var s0, s1 float64
	i := 0
	for ; i+2 <= len(x); i += 2 {
		a, b := float64(x[i]), float64(x[i+1])
		s0 += float64(a * a)
		s1 += float64(b * b)
	}
	for ; i < len(x); i++ {
		a := float64(x[i])
		s0 += float64(a * a)
	}
	return s0 + s1
}

func maxGeneric(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m { // the built-in max looks for NaN and signed zeros, at three times the cost
			m = v
		}
	}
	return m
}

func sigmoidGradGeneric(dst, dy, y []float32) {
	dy, y = dy[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = dy[i] * y[i] * (1 - y[i])
	}
}

func adamwGeneric(p, m, v, g []float32, s *AdamW) {
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	for i := range p {
		gi := s.Clip * g[i]
		mi := float32(s.Beta1*m[i]) + float32(s.Beta1c*gi)
		vi := float32(s.Beta2*v[i]) + float32(s.Beta2c*gi*gi)
		m[i], v[i] = mi, vi
		root := float32(math.Sqrt(float64(s.C2 * vi)))
		p[i] = float32(s.Keep*p[i]) - float32(s.Step*mi/(root+s.Eps))
	}
}
