package simd

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A turn of each loop counts the operations of the instructions in it: two for each lane's multiply-add, and for int8
// two for a 16-bit with an 8-bit value, which takes two products of bytes.
func TestPeaksCountTheirInstructions(t *testing.T) {
	var text strings.Builder
	for _, file := range []string{"peak_amd64.s", "peak_neon_arm64.s"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	for name, c := range map[string]struct {
		function, instruction string
		ops                   float64 // of one
	}{
		"avx512 fp32": {"peakFMAAVX512", "VFMADD231PS", 16 * 2}, "avx2 fp32": {"peakFMAAVX2", "VFMADD231PS", 8 * 2},
		"vnni int8": {"peakInt8VNNI", "VPDPBUSD", 32 * 2}, "avxvnni int8": {"peakInt8AVXVNNI", "VPDPBUSD", 16 * 2},
		"avx2 int8": {"peakInt8AVX2", "VPMADDWD", 16 * 2},
		"amx bf16":  {"peakBF16AMX", "TDPBF16PS", 16 * 16 * 32 * 2},
		"amx int8":  {"peakInt8AMX", "TDPBSSD", 16 * 16 * 32 * 2},
		"neon fp32": {"peakFMANEON", "FMLA", 4 * 2}, "neon int8": {"peakSMLALNEON", "SMLAL", 4 * 2},
		"neon bf16": {"peakBFMMLANEON", "BFMMLA", 2 * 2 * 4 * 2},
		"sdot int8": {"peakSDOTNEON", "SDOT", 8 * 2}, "smmla int8": {"peakSMMLANEON", "SMMLA", 2 * 2 * 4 * 2},
	} {
		body := regexp.MustCompile(`(?s)TEXT ·` + c.function + `\(SB\).*?RET`).FindString(text.String())
		n := len(regexp.MustCompile(`(?m)^\s*`+c.instruction).FindAllString(body, -1))
		if n == 0 {
			t.Errorf("%s: no %s in %s", name, c.instruction, c.function)
		}
		for _, p := range Peaks() {
			if p.Name == name && p.Ops != float64(n)*c.ops {
				t.Errorf("%s counts %g operations for %d instructions of %g", name, p.Ops, n, c.ops)
			}
		}
	}
	all := Peaks()
	if last := all[len(all)-1]; last.Name != "go fp32" || last.Ops != 12*2 {
		t.Errorf("plain Go comes last: %s of %g", last.Name, last.Ops)
	}
}
