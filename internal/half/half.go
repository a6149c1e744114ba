// Package half converts between float32 and the two 16-bit floats of model files.
//
//	bf16  1 sign, 8 exponent, 7 mantissa bits: the upper half of a float32
//	f16   1 sign, 5 exponent, 10 mantissa bits: IEEE 754 binary16
//
// Narrowing rounds to nearest, ties to even, overflows to infinity and keeps NaN a (quiet) NaN with its
// sign and the payload bits that fit. Widening is exact. These are the plain definitions: device code has faster ones.
package half

import "math"

// F32ToBF16 rounds f to the nearest bfloat16, ties to even.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40 // rounding could carry a NaN into infinity; the quiet bit cannot be lost
	}
	// Adding 0x7FFF plus the lowest kept bit carries exactly when the cut part is above half, or at half with an odd
	// kept part.
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

// BF16ToF32 widens a bfloat16 exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToF16 rounds f to the nearest binary16, ties to even, through subnormals to zero and past 65504 to infinity.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7FFFFFFF
	switch {
	case b > 0x7F800000: // NaN
		return sign | 0x7E00 | uint16(b>>13&0x1FF)
	case b >= 0x47800000: // 65536 and above, infinity
		return sign | 0x7C00
	case b >= 0x38800000: // 2^-14 and above: normal; a carry walks into the exponent, up to infinity, as it should
		b -= 112 << 23 // exponent bias 127 → 15
		return sign | uint16((b+0xFFF+b>>13&1)>>13)
	}
	// Subnormal: the value is m·2^-24. Adding 0.5 puts m into the lowest bits of a float32 whose unit in the last
	// place is 2^-24, so that the addition itself does the rounding.
	sum := math.Float32frombits(b) + 0.5
	return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
}

// F16ToF32 widens a binary16 exactly.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&0x1F), uint32(h&0x3FF)
	switch exp {
	case 0x1F: // infinity and NaN
		return math.Float32frombits(sign | 0x7F800000 | man<<13)
	case 0: // zero and subnormal: m·2^-24
		v := math.Float32bits(float32(man) * (1.0 / (1 << 24)))
		return math.Float32frombits(sign | v)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}
