package cpu

import (
	"os"
	"runtime"
	"strings"

	"antiphase/device"
	"antiphase/internal/simd"
)

var _ device.Identified = (*Device)(nil)

// Identity does not include the number of threads, because it does not affect the bits. The sets that only add bfloat16
// products to AVX-512 are AVX-512 at float32. Plain Go may fuse multiply and add on some architectures, so the
// architecture counts.
func (d *Device) Identity() device.Identity {
	set := simd.Name()
	if d.precision == FP32 && (set == "amx" || set == "avx512bf16") {
		set = "avx512"
	}
	return device.Identity{Device: "cpu", Precision: d.precision.String(), Kernels: runtime.GOARCH + " " + set}
}

// Machine is the processor's model if the system reports it, otherwise the architecture.
func (d *Device) Machine() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(b), "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Trim(line, " \t:")
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}
