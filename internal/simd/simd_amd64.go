//go:build !purego

package simd

import "golang.org/x/sys/cpu"

//go:generate go run ./gen .

// native lists the assembly that this processor runs and the system saves the registers of.
func native() []*kernels {
	var out []*kernels
	x := &cpu.X86
	if hasAMX() {
		out = append(out, withoutVNNI(&amx))
	}
	if hasAVX512() && x.HasAVX512BF16 {
		out = append(out, withoutVNNI(&avx512bf16))
	}
	if hasAVX512() {
		out = append(out, withoutVNNI(&avx512))
	}
	if x.HasAVX2 && x.HasFMA && x.HasAVXVNNI {
		out = append(out, &avxvnni)
	}
	if x.HasAVX2 && x.HasFMA {
		out = append(out, &avx2)
	}
	return out
}

// avxvnni is avx2 with int8 products by VPDPBUSD, which processors without AVX-512 may have too.
var avxvnni = func() kernels {
	k := avx2
	k.name, k.bytes = "avxvnni", bytesAVXVNNI
	return k
}()
