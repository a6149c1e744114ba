package cpu

import (
	"cmp"
	"runtime"

	"antiphase/device"
	"antiphase/internal/simd"
)

var _ device.Identified = (*Device)(nil)

// sameFloats are the sets of kernels that compute float32 with those of another one and add products of bfloat16, and
// sameAll those that add int8 products only, whose bits are the same on every machine.
var (
	sameFloats = map[string]string{"amx": "avx512", "avx512bf16": "avx512", "neonbf16": "neon"}
	sameAll    = map[string]string{"avxvnni": "avx2"}
)

// Identity does not include the number of threads, because it does not affect the bits. Plain Go may fuse multiply and
// add on some architectures, so the architecture counts.
func (d *Device) Identity() device.Identity {
	return device.Identity{Device: "cpu", Precision: d.precision.String(), Kernels: runtime.GOARCH + " " +
		sameBitsAs(simd.Name(), d.precision)}
}

// sameBitsAs is the first set of kernels that computes the same bits as set at a precision.
func sameBitsAs(set string, p Precision) string {
	if same, ok := sameAll[set]; ok {
		set = same
	}
	if same, ok := sameFloats[set]; ok && p == FP32 {
		set = same
	}
	return set
}

// Machine is the processor's model if the system reports it, otherwise the architecture.
func (d *Device) Machine() string {
	return cmp.Or(processor(), runtime.GOOS+"/"+runtime.GOARCH)
}
