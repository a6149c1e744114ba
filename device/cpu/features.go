package cpu

import "antiphase/internal/simd"

// Features lists what the kernels use of this processor: the implementation picked first, then the others it can
// run. The environment variable ANTIPHASE_SIMD (avx512, avx2 or generic) picks another one.
func Features() []string {
	picked := simd.Name()
	out := []string{picked}
	for _, n := range simd.Names() {
		if n != picked {
			out = append(out, "("+n+")")
		}
	}
	return out
}
