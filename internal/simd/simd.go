// Package simd holds the single-threaded kernels of the CPU device: vectors, reductions and matrix tiles in float32,
// products of bfloat16 values with float32 sums, and of 16-bit with int8 values with exact ones.
//
// Every kernel exists in plain Go (the oracle, always compiled) and in assembly: on amd64 for AVX-512 and AVX2+FMA, on
// arm64 for NEON. Products of bfloat16 also have AVX512_BF16, AMX tiles and BFMMLA, in addition to AVX-512 and NEON for
// the rest; those of int8 AVX512_VNNI, AVX-VNNI, AMX, SDOT and SMMLA. One table of functions is selected at start by
// CPU flags; Use switches it for tests or manually. The exported functions check lengths and call through the table,
// and allocate nothing. Each result is a pure function of the arguments of one call: an element's bits do not depend on
// other elements or, in a matrix product, on m and n.
package simd

import (
	"fmt"
	"os"
	"strings"
)

// kernels is one implementation of everything the package does.
type kernels struct {
	name string
	gemmKernels
	vectorKernels
	halfKernels
	bf16Kernels
	attnKernels
	stretchKernels
	bytes int8Kernels
	short bf16Vectors
}

// Env is the environment variable that picks an implementation by name.
const Env = "ANTIPHASE_SIMD"

// cur is the implementation in use.
var cur = pick(os.Getenv(Env))

// implementations are those this machine can run, best first; the generic one is always last.
func implementations() []*kernels { return append(native(), &generic) }

func pick(name string) *kernels {
	all := implementations()
	for _, k := range all {
		if k.name == name {
			return k
		}
	}
	return all[0]
}

// Name is the implementation in use: amx, avx512bf16, avx512, avxvnni, avx2, neonbf16, neon or generic.
func Name() string { return cur.name }

// Names are the implementations that this machine can run, best first.
func Names() []string {
	var names []string
	for _, k := range implementations() {
		names = append(names, k.name)
	}
	return names
}

// Use switches to an implementation. No kernel may be running, and packed operands become invalid.
func Use(name string) error {
	k := pick(name)
	if k.name != name {
		return fmt.Errorf("simd: no implementation %q here (have %s)", name, strings.Join(Names(), ", "))
	}
	cur = k
	return nil
}
