// Command gen writes the assembly of package simd, for AVX-512, AVX2 and NEON from one description of each kernel where
// they share its form.
//
// asm.go collects the text of a file. A kernel is a type that embeds it, or a function over it; instructions that the
// assembler lacks are values (missing.go, missingarm.go).
//
// A vector op is a short program over registers (vector.go, exp.go) in instructions that every set has (ops.go). A
// frame (loop.go) runs it over whole vectors and over the rest, with a mask (loopavx.go) or, in NEON, one by one
// (neon.go). Matrix tiles and packing (gemm.go, pack.go) are written out for each number of rows.
//
// Kernels on AMX tiles (amx*.go, attn*.go, stretch*.go, int8amx.go) take a struct of arguments: args.txt declares it
// once, for Go and for the assembly (layout.go). They hold registers by name, and the generator refuses conflicts
// (regs.go).
//
// Run it with go generate in the folder above; a test checks that the files there are what it writes.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, text := range generate() {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate gives every file by name.
func generate() map[string][]byte {
	files := map[string][]byte{"args.go": argsFile(), "peak_amd64.s": peakFile(),
		"gemm_amx_amd64.s": amxFile(), "bf16_amd64.s": bf16File(),
		"attn_amd64.s": attnFile(), "attn_avx2_amd64.s": softFile(), "stretch_amd64.s": stretchFile(),
		"fetch_amd64.s":    fetchFile(),
		"int8_amx_amd64.s": int8AMXFile(), "int8_vnni_amd64.s": int8File(vnni), "int8_avx2_amd64.s": int8File(avx2),
		"int8_avxvnni_amd64.s": int8File(avxVNNI)}
	maps.Copy(files, declarations())
	for _, i := range []isa{avx512, avx2} {
		files["vector_"+i.file+"_amd64.s"] = vectorFile(i)
		files["few_"+i.file+"_amd64.s"] = fewFile(i)
		files["gemm_"+i.file+"_amd64.s"] = gemmFile(i)
	}
	files["vector_neon_arm64.s"], files["gemm_neon_arm64.s"] = vectorFile(neon), neonGemmFile()
	files["few_neon_arm64.s"], files["int8_neon_arm64.s"], files["int8_sdot_arm64.s"] = neonFewFile(),
		neonInt8File(neon), neonInt8File(dotARM)
	files["int8_smmla_arm64.s"] = neonInt8File(matrixARM)
	files["bf16_neon_arm64.s"], files["peak_neon_arm64.s"], files["decls_arm64.go"] = neonBF16File(), neonPeakFile(),
		declarationsARM()
	for _, header := range []string{missingFile, missingARM} { // last: they hold what the others used
		files[header] = missingHeader(header)
	}
	return files
}
