package simd

import (
	"fmt"
	"math"
)

// halfKernels convert between float32 and 16-bit halves of it. Their slices have equal lengths, at least leastHalves.
type halfKernels struct {
	widen       func(dst []float32, src []uint16)
	narrow      func(dst []uint16, src []float32)
	joinHalves  func(dst []float32, up, low []uint16)
	splitHalves func(up, low []uint16, src []float32)
}

var genericHalf = halfKernels{widenGeneric, narrowGeneric, joinHalvesGeneric, splitHalvesGeneric}

// leastHalves is the shortest slice that goes to a kernel: AVX2 has no masks for words, and does the last vector twice
// instead.
func leastHalves() int {
	if cur.lanes == 8 {
		return 8
	}
	return 0
}

// WidenBF16: dst = src, which is exact.
func WidenBF16(dst []float32, src []uint16) {
	kernel := cur.widen
	if len(src) < leastHalves() {
		kernel = widenGeneric
	}
	kernel(dst[:sameHalves("widen", len(src), len(dst))], src)
}

// NarrowBF16 rounds src to the nearest bfloat16, ties to even; a NaN stays one. The processor's own conversion takes
// subnormal numbers for 0.
func NarrowBF16(dst []uint16, src []float32) {
	kernel := cur.narrow
	if len(src) < leastHalves() {
		kernel = narrowGeneric
	}
	kernel(dst[:sameHalves("narrow", len(src), len(dst))], src)
}

// JoinBF16: dst = the numbers that SplitBF16 has cut.
func JoinBF16(dst []float32, up, low []uint16) {
	kernel, n := cur.joinHalves, sameHalves("join", len(up), len(low))
	if n < leastHalves() {
		kernel = joinHalvesGeneric
	}
	kernel(dst[:sameHalves("join", n, len(dst))], up, low[:n])
}

// SplitBF16 cuts src into bfloat16 values, rounded to nearest with ties away from zero, and the lower halves of its
// bits (see half.Split).
func SplitBF16(up, low []uint16, src []float32) {
	kernel, n := cur.splitHalves, sameHalves("split", len(src), len(up))
	if n < leastHalves() {
		kernel = splitHalvesGeneric
	}
	kernel(up[:n], low[:sameHalves("split", n, len(low))], src)
}

// sameHalves is n, and panics when the other slice is shorter.
func sameHalves(op string, n, other int) int {
	if other < n {
		panic(fmt.Sprintf("simd: %s of %d and %d elements", op, n, other))
	}
	return n
}

func widenGeneric(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = f32Of(h)
	}
}

func narrowGeneric(dst []uint16, src []float32) {
	for i, x := range src {
		dst[i] = bf16Of(x)
	}
}

func joinHalvesGeneric(dst []float32, up, low []uint16) {
	for i, h := range up {
		dst[i] = math.Float32frombits(uint32(h)<<16 + uint32(int16(low[i])))
	}
}

func splitHalvesGeneric(up, low []uint16, src []float32) {
	for i, x := range src {
		b := math.Float32bits(x)
		up[i], low[i] = uint16((b+0x8000)>>16), uint16(b)
	}
}
