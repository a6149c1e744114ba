package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// counted are the products whose inner loops docs/arm.md counts, and the instruction that each is made of.
var counted = []struct {
	file, name, multiply string
	label                string
	each                 int // multiply-adds of one of them
}{
	{"gemm_neon_arm64.s", "tile6xNEON", "fmla", "`tile6x` float32, 6 × 16", 4},
	{"gemm_neon_arm64.s", "skinny1xNEON", "fmla", "`skinny1x` float32, one row, 16 columns", 4},
	{"few_neon_arm64.s", "fewBF16x1NEON", "fmla", "`fewBF16x1` one float32 row, bf16 weights", 4},
	{"int8_sdot_arm64.s", "fewInt8x1SDOT", "sdot", "`fewInt8x1` one row, int8 weights", 16},
	{"int8_sdot_arm64.s", "fewInt8x4SDOT", "sdot", "`fewInt8x4` four rows, int8 weights", 16},
	{"int8_smmla_arm64.s", "fewInt8x4SMMLA", "smmla", "`fewInt8x4` four rows, with i8mm", 32},
	{"bf16_neon_arm64.s", "mmlaNEONBF16", "bfmmla", "`mmla` bf16, 8 × 8", 16},
}

// cores are published rates, see docs/arm.md: instructions, vector instructions and 16-byte loads per cycle, and the
// cycles from one sum to the next in the same register. An instruction that is not listed has no published rate, or the
// core lacks it.
var cores = []struct {
	name                string
	issue, pipes, loads float64
	chain               map[string]float64
}{
	{"Neoverse V1", 8, 4, 3, map[string]float64{"fmla": 2, "bfmmla": 3, "sdot": 1, "smmla": 1}},
	{"Apple M1", 8, 4, 3, map[string]float64{"fmla": 4, "sdot": 3}},
}

// loop counts what one iteration of an inner loop executes.
type loop struct{ instructions, vector, loads, multiplies, chain int }

// share is the time of the multiplications alone divided by the time of an iteration, which is the slowest of issue,
// vector pipes, loads and dependency chains of sums.
func (l loop) share(issue, pipes, loads, latency float64) float64 {
	ideal := float64(l.multiplies) / pipes
	return ideal / max(ideal, float64(l.instructions)/issue, float64(l.vector)/pipes, float64(l.loads)/loads,
		float64(l.chain)*latency)
}

// The tables of docs/arm.md are counted from the disassembly of the assembled kernels.
func TestCountsARM(t *testing.T) {
	tool, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("no aarch64-linux-gnu-objdump here (Debian: binutils-aarch64-linux-gnu)")
	}
	counts := "| kernel | instruction | multiply-adds per iteration | instructions | on vector pipes | loads of 16 " +
		"bytes | instructions per multiply-add instruction |\n|---|---|---|---|---|---|---|\n"
	shares := "| kernel | instruction |"
	for _, c := range cores {
		shares += " " + c.name + " |"
	}
	shares += "\n|---|---|" + strings.Repeat("---|", len(cores)) + "\n"
	for _, k := range counted {
		l := innerLoop(t, disassemble(t, tool, k.file, k.name), k.multiply)
		counts += fmt.Sprintf("| %s | %d `%s` | %d | %d | %d | %d | %.2f |\n", k.label, l.multiplies, k.multiply,
			l.multiplies*k.each, l.instructions, l.vector, l.loads, float64(l.instructions)/float64(l.multiplies))
		shares += fmt.Sprintf("| %s | `%s` |", k.label, k.multiply)
		for _, c := range cores {
			latency, ok := c.chain[k.multiply]
			if !ok {
				shares += " – |"
				continue
			}
			share := l.share(c.issue, c.pipes, c.loads, latency)
			shares += fmt.Sprintf(" %.2f |", share)
			if least := map[string]float64{"tile6xNEON": 0.8, "mmlaNEONBF16": 0.7}[k.name]; share < least {
				t.Errorf("%s allows %.2f of the peak of %s, want %.2f", k.name, share, c.name, least)
			}
		}
		shares += "\n"
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "arm.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{counts, shares} {
		if !strings.Contains(string(page), table) {
			t.Errorf("docs/arm.md lacks this table:\n%s", table)
		}
	}
}

// disassemble assembles a file of the parent package and returns the instructions of a kernel as binutils shows them.
func disassemble(t *testing.T, tool, file, name string) []string {
	t.Helper()
	object := filepath.Join(t.TempDir(), "object")
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	root := strings.TrimSpace(run("go", "env", "GOROOT"))
	run("go", "tool", "asm", "-p", "simd", "-I", filepath.Join(root, "pkg", "include"), "-o", object, file)
	var code []byte
	word := regexp.MustCompile(`\t0x[0-9a-f]+\t+([0-9a-f]{8})\t`)
	for _, m := range word.FindAllStringSubmatch(run("go", "tool", "objdump", "-s", "simd."+name+"$", object), -1) {
		b, err := hex.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, b[3], b[2], b[1], b[0])
	}
	raw := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(raw, code, 0o644); err != nil {
		t.Fatal(err)
	}
	all := instructions([]byte(run(tool, "-D", "-z", "-b", "binary", "-m", "aarch64", raw)))
	if len(all) == 0 || len(all) != len(code)/4 {
		t.Fatalf("%s: %d instructions in %d bytes (%s)", name, len(all), len(code), runtime.Version())
	}
	return all
}

// innerLoop is the innermost loop with the most of the given multiplications.
func innerLoop(t *testing.T, code []string, multiply string) (best loop) {
	t.Helper()
	back := regexp.MustCompile(`^(?:b\.\w+|cbnz \w+,|cbz \w+,) 0x([0-9a-f]+)`)
	begin := 0 // of the last loop that ended: one that reaches further back has it inside
	for i, text := range code {
		m := back.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		to, err := strconv.ParseInt(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if from := int(to / 4); from <= i && from >= begin {
			begin = i
			if l := countLoop(code[from:i+1], multiply); l.multiplies > best.multiplies {
				best = l
			}
		}
	}
	if best.multiplies == 0 {
		t.Fatalf("no loop with %s", multiply)
	}
	return best
}

// countLoop counts the instructions of a loop by kind. chain is the largest number of multiplications into one
// register.
func countLoop(code []string, multiply string) (l loop) {
	sums := map[string]int{}
	for _, text := range code {
		name, operands, _ := strings.Cut(text, " ")
		first, _, _ := strings.Cut(operands, ",")
		l.instructions++
		switch {
		case name == "ldp" && strings.HasPrefix(first, "q"):
			l.loads += 2
		case strings.HasPrefix(name, "ld"):
			l.loads++
		case strings.HasPrefix(first, "v"):
			l.vector++
		}
		if name == multiply {
			l.multiplies++
			sums[first]++
			l.chain = max(l.chain, sums[first])
		}
	}
	return l
}
