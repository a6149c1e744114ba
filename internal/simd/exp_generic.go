package simd

import "math"

// e^x = 2^n·e^r with n = round(x·log2 e) and r = x − n·ln 2 in two parts, |r| ≤ ln2/2; e^r by a polynomial
// of sixth degree, 1 + r·(1 + r·q(r)), whose relative error is below 2^−28.
// Below expMin the result would be subnormal and is 0; from expMax on it is +Inf.
const (
	expMin = -87.33654
	expMax = 89
	log2e  = 1.44269504088896340736
	ln2Hi  = 0.693359375 // few bits: n·ln2Hi is exact
	ln2Lo  = -2.12194440e-4
	expC2  = 4.9999993432e-1
	expC3  = 1.6666520399e-1
	expC4  = 4.1668390788e-2
	expC5  = 8.3687451165e-3
	expC6  = 1.3814539972e-3
)

// expRound added to a float32 below 2^22 rounds it to the nearest integer, ties to even: the sum's last bit counts
// ones.
const expRound = 1.5 * (1 << 23)

func expGeneric(x float32) float32 {
	if !(x >= expMin) { // NaN too
		if x != x {
			return x
		}
		return 0
	}
	if x > expMax {
		x = expMax
	}
	rounded := float32(x*log2e) + expRound
	n := rounded - expRound
	r := x - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	q := float32(expC6)
	q = float32(q*r) + expC5
	q = float32(q*r) + expC4
	q = float32(q*r) + expC3
	q = float32(q*r) + expC2
	p := float32((float32(q*r)+1)*r) + 1
	// n reaches 128, whose power is not a float32: scale in two halves.
	whole := int32(math.Float32bits(rounded)) - int32(math.Float32bits(expRound))
	half := whole >> 1
	return p * pow2(half) * pow2(whole-half)
}

// pow2 is 2^n for −127 < n < 128.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func expSumGeneric(dst, src []float32, scale, shift float32) float32 {
	var sum float32
	dst = dst[:len(src)]
	for i, x := range src {
		e := expGeneric(float32(scale*x) - shift)
		dst[i] = e
		sum += e
	}
	return sum
}

func sigmoidGeneric(dst, src []float32) {
	for i, x := range src {
		dst[i] = 1 / (1 + expGeneric(-x))
	}
}

func siluMulGeneric(dst, g, u []float32) {
	dst, u = dst[:len(g)], u[:len(g)]
	for i, x := range g {
		dst[i] = x / (1 + expGeneric(-x)) * u[i]
	}
}

func siluMulGradGeneric(dg, du, y, dy, g, u []float32) {
	dg, du, y, dy, u = dg[:len(g)], du[:len(g)], y[:len(g)], dy[:len(g)], u[:len(g)]
	for i, x := range g {
		e := 1 + expGeneric(-x)
		s := 1 / e
		t := dy[i] * s
		ui := u[i]
		y[i] = x / e * ui
		du[i] = t * x
		dg[i] = t * ui * (float32(x*(1-s)) + 1)
	}
}
