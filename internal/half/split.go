package half

import "math"

// Split divides f into a bfloat16, f rounded to nearest with ties away from zero, and the lower half of its bits.
// Together they determine f.
func Split(f float32) (upper, lower uint16) {
	b := math.Float32bits(f)
	return uint16((b + 0x8000) >> 16), uint16(b)
}

// Join is the inverse of Split: if the lower half is at least one half, the upper one was rounded up.
func Join(upper, lower uint16) float32 {
	return math.Float32frombits((uint32(upper)-uint32(lower>>15))<<16 | uint32(lower))
}
