//go:build !purego

package simd

import (
	"math/rand/v2"
	"unsafe"

	"golang.org/x/sys/cpu"
)

func peaks() []PeakLoop {
	var out []PeakLoop
	if hasAVX512() {
		out = append(out, PeakLoop{"avx512 fp32", 24 * 16 * 2, peakFMAAVX512})
	}
	if hasAVX512() && cpu.X86.HasAVX512VNNI {
		out = append(out, PeakLoop{"vnni int8", 24 * 64 / 2 * 2, peakInt8VNNI})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, PeakLoop{"avx2 fp32", 24 * 8 * 2, peakFMAAVX2},
			PeakLoop{"avx2 int8", 24 * 16 * 2, peakInt8AVX2})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasAVXVNNI {
		out = append(out, PeakLoop{"avxvnni int8", 24 * 32 / 2 * 2, peakInt8AVXVNNI})
	}
	if hasAMX() {
		// Random data: the tile unit clocks higher on zeros.
		data := make([]uint16, 1024)
		for i := range data {
			data[i] = uint16(rand.Uint32())&0x81FF | 0x3E00
		}
		d := unsafe.Pointer(&data[0])
		out = append(out, PeakLoop{"amx bf16", 4 * 16 * 16 * 32 * 2, func(n int) { peakBF16AMX(&tileConfig[0], n, d) }},
			PeakLoop{"amx int8", 4 * 16 * 16 * 64 / 2 * 2, func(n int) { peakInt8AMX(&tileConfig[0], n, d) }})
	}
	return out
}

func read(x []float32) {
	switch {
	case hasAVX512():
		readMemoryAVX512(&x[0], 4*len(x))
	case cpu.X86.HasAVX2:
		readMemoryAVX2(&x[0], 4*len(x))
	default:
		readGeneric(x)
	}
}

func peakFMAAVX512(n int)

func peakFMAAVX2(n int)

func peakInt8VNNI(n int)

func peakInt8AVXVNNI(n int)

func peakInt8AVX2(n int)

//go:noescape
func peakBF16AMX(cfg *byte, n int, data unsafe.Pointer)

//go:noescape
func peakInt8AMX(cfg *byte, n int, data unsafe.Pointer)

//go:noescape
func readMemoryAVX512(p *float32, n int)

//go:noescape
func readMemoryAVX2(p *float32, n int)
