//go:build !purego

package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// native lists the assembly that this processor runs: every one has NEON.
var native = sync.OnceValue(func() []*kernels {
	neon.bytes = int8Sets()[0]
	if !hasBF16() {
		return []*kernels{&neon}
	}
	neonBF16 = withMMLA(neon)
	return []*kernels{&neonBF16, &neon}
})

// int8Sets are the int8 products that this processor runs, best first.
func int8Sets() []int8Kernels {
	sets := []int8Kernels{neonBytes}
	if cpu.ARM64.HasASIMDDP {
		sets = append([]int8Kernels{bytesSDOT}, sets...)
		if hasI8MM() {
			sets = append([]int8Kernels{bytesSMMLA}, sets...)
		}
	}
	return sets
}

// neonBytes are those of NEON alone.
var neonBytes = neon.bytes

// chooser has nothing to choose from here.
type chooser struct{}
