package simd

import (
	"encoding/binary"
	"os"
)

// hasBF16 reads the system's list of processor features, because golang.org/x/sys/cpu does not report this one.
func hasBF16() bool {
	const hwcap2, bf16 = 26, 1 << 14
	auxv, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return false
	}
	for ; len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == hwcap2 {
			return binary.LittleEndian.Uint64(auxv[8:])&bf16 != 0
		}
	}
	return false
}
