package cpu

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"antiphase/internal/simd"
)

// Features lists the kernels available on this processor: the selected implementation first, then, in brackets, the
// others that it can run. The environment variable ANTIPHASE_SIMD (amx, avx512bf16, avx512, avxvnni, avx2, neonbf16,
// neon or generic) selects another one; a name that this machine cannot run is listed last and has no effect, see
// Forced.
func Features() []string {
	picked := simd.Name()
	out := []string{picked}
	for _, n := range simd.Names() {
		if n != picked {
			out = append(out, "("+n+")")
		}
	}
	if Forced() != nil {
		out = append(out, "(no "+os.Getenv(simd.Env)+" here)")
	}
	return out
}

// Forced is an error if ANTIPHASE_SIMD names kernels that this machine cannot run.
func Forced() error {
	want := os.Getenv(simd.Env)
	if want == "" || slices.Contains(simd.Names(), want) {
		return nil
	}
	return fmt.Errorf("%s: there is no %q here; there are %s", simd.Env, want, strings.Join(simd.Names(), ", "))
}
