package cpu

import (
	"os"
	"slices"

	"antiphase/internal/simd"
)

// Features lists the kernels available on this processor: the selected implementation first, then, in brackets, the
// others that it can run. The environment variable ANTIPHASE_SIMD (amx, avx512bf16, avx512, avxvnni, avx2, neonbf16,
// neon or generic) selects another one; a name that this machine cannot run is listed last and has no effect.
func Features() []string {
	picked := simd.Name()
	out := []string{picked}
	for _, n := range simd.Names() {
		if n != picked {
			out = append(out, "("+n+")")
		}
	}
	if want := os.Getenv(simd.Env); want != "" && !slices.Contains(simd.Names(), want) {
		out = append(out, "(no "+want+" here)")
	}
	return out
}
