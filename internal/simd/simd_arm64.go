//go:build !purego

package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// native lists the assembly that this processor runs: every one has NEON.
var native = sync.OnceValue(func() []*kernels {
	if cpu.ARM64.HasASIMDDP {
		neon.bytes = bytesSDOT
	}
	if !hasBF16() {
		return []*kernels{&neon}
	}
	neonBF16 = withMMLA(neon)
	return []*kernels{&neonBF16, &neon}
})

// chooser has nothing to choose from here.
type chooser struct{}
