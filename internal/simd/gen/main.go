// Command gen writes the assembly of package simd, for AVX-512 and AVX2 from one description of each kernel.
//
// A vector op is a short program over registers (vector.go, exp.go) that a frame (loop.go) runs over whole vectors
// and, with a mask, over the rest. Matrix tiles and packing (gemm.go, pack.go) are written out for each number of
// rows. Run it with go generate in the folder above; a test checks that the files there are what it writes.
package main

import (
	"fmt"
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
	files := map[string][]byte{"stubs_amd64.go": stubs(), "peak_amd64.s": peakFile(),
		"gemm_amx_amd64.s": amxFile(), "bf16_amd64.s": bf16File(),
		"attn_amd64.s": attnFile(), "stretch_amd64.s": stretchFile(), "fetch_amd64.s": fetchFile(),
		"int8_amx_amd64.s": int8AMXFile(), "int8_vnni_amd64.s": int8File(vnni), "int8_avx2_amd64.s": int8File(avx2)}
	for _, i := range []isa{avx512, avx2} {
		files["vector_"+i.file+"_amd64.s"] = vectorFile(i)
		files["few_"+i.file+"_amd64.s"] = fewFile(i)
		files["gemm_"+i.file+"_amd64.s"] = gemmFile(i)
	}
	files[missingFile] = missingHeader() // last: it holds what the others used
	return files
}
