package cpu

import (
	"runtime"

	"antiphase/device"
	"antiphase/internal/simd"
)

var _ device.Identified = (*Device)(nil)

// Identity does not name the number of threads: it does not show in the bits. The sets that add only products of bfloat16
// to AVX-512 are AVX-512 at float32. Plain Go may fuse multiply and add on some architectures, so the architecture counts.
func (d *Device) Identity() device.Identity {
	set := simd.Name()
	if d.precision == FP32 && (set == "amx" || set == "avx512bf16") {
		set = "avx512"
	}
	return device.Identity{Device: "cpu", Precision: d.precision.String(), Kernels: runtime.GOARCH + " " + set}
}
