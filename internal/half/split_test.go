package half

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Join undoes Split for every kind of number, and the upper half is no further away than any other bfloat16.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bits := []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0x3f800000, 0x3f807fff, 0x3f808000, 0x3f80ffff, 0x7f7fffff,
		0x7f800000, 0xff800000, 0x80000000, 0x80008000, 0xffffffff}
	for range 100000 {
		bits = append(bits, r.Uint32())
	}
	for _, b := range bits {
		f := math.Float32frombits(b)
		upper, lower := Split(f)
		if got := math.Float32bits(Join(upper, lower)); got != b {
			t.Fatalf("%08x becomes %04x and %04x and then %08x", b, upper, lower, got)
		}
		near := float64(BF16ToF32(F32ToBF16(f)))
		x := float64(f)
		if math.IsNaN(x) || math.IsInf(near, 0) {
			continue
		}
		if math.Abs(float64(BF16ToF32(upper))-x) > math.Abs(near-x) {
			t.Fatalf("%g is rounded to %g, %g is nearer", f, BF16ToF32(upper), near)
		}
	}
}
