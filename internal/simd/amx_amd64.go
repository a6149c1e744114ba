//go:build !purego

package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// tileConfig is the one shape that kernels use: palette 1, eight tiles of 16 rows of 64 bytes.
var tileConfig = func() (c [64]byte) {
	c[0] = 1
	for t := range 8 {
		c[16+2*t], c[48+t] = 64, 16
	}
	return c
}()

// hasAMX reports whether tile instructions may run: the processor has them, the system saves their registers (XCR0) and
// has granted this process their use. Without that permission the first one would raise SIGILL, which Go cannot
// survive. Tiles belong to a thread and a goroutine may move, so every kernel configures and releases them within one
// call.
var hasAMX = sync.OnceValue(func() bool {
	x := &cpu.X86
	const tileState = 3 << 17 // configuration and data
	return x.HasAMXTile && x.HasAMXBF16 && x.HasAMXInt8 && hasAVX512() && x.HasAVX512BF16 && x.HasAVX512VBMI &&
		x.HasOSXSAVE && xgetbv()&tileState == tileState && allowTiles()
})

func hasAVX512() bool {
	x := &cpu.X86
	return x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
}

// xgetbv is the low half of XCR0.
func xgetbv() uint32
