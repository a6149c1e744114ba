package main

import "fmt"

// avxVNNI is AVX2 with VPDPBUSD, as processors without AVX-512 have it.
var avxVNNI = isa{tag: "AVXVNNI", file: "avxvnni", lanes: 8, reg: "Y", regs: 16}

// dotBytes: Y[dst] += products of four bytes each, unsigned ones of Y[x] with signed ones of Y[w]. The assembler knows
// only AVX-512's form.
func dotBytes(dst, x, w int) macro {
	code := []byte{0xC4, byte(1-dst>>3)<<7 | 1<<6 | byte(1-w>>3)<<5 | 2, byte(^x&15)<<3 | 1<<2 | 1, 0x50,
		0xC0 | byte(dst&7)<<3 | byte(w&7)}
	return raw(fmt.Sprintf("VPDPBUSD_Y%d_Y%d_Y%d", w, x, dst), code,
		fmt.Sprintf("{vex} vpdpbusd ymm%d, ymm%d, ymm%d", dst, x, w))
}

// avxFew is few with AVX-VNNI: a part of a panel's columns at a time, all of them for one row, a tile for two, 8 for
// more. R14 is where the part begins, R15 counts the parts left.
type avxFew struct {
	*asm
	rows int
	vecs int // vectors of columns of a part
}

func newAVXFew(a *asm, rows int) avxFew { return avxFew{a, rows, []int{0, 4, 2, 1, 1}[rows]} }

func (k avxFew) emit() {
	fewInt8Begin(k.asm, k.rows, 1, 0)
	k.mark("panel")
	k.op("MOVQ", "BX", "R14")
	k.op("MOVQ", imm(4/k.vecs), "R15")
	k.mark("part")
	k.op("MOVQ", "steps+0(FP)", "CX")
	k.op("MOVQ", "x+8(FP)", "SI")
	k.op("MOVQ", "R14", "AX")
	for i := range 2 * k.rows * k.vecs {
		k.op("VPXOR", k.v(i), k.v(i), k.v(i))
	}
	k.mark("step")
	for p := range 16 {
		k.line(p)
	}
	k.op("ADDQ", "R9", "SI")
	k.op("ADDQ", "$2048", "AX")
	k.again("step", "CX")
	k.results()
	k.next()
	k.op("JNZ", "part")
	k.op("ADDQ", imm(int8Head-int8Sums), "R10")
	k.op("ADDQ", "R13", "BX")
	k.again("panel", "R11")
	k.ret()
}

// next moves on to the next part.
func (k avxFew) next() {
	k.op("ADDQ", imm(32*k.vecs), "DI")
	k.op("ADDQ", imm(32*k.vecs), "R10")
	if k.vecs == 1 { // halves of the lines of a tile, then of the other one
		k.op("ADDQ", "$32", "R14")
		k.op("CMPQ", "R15", "$3")
		k.op("JNE", "same")
		k.op("ADDQ", "$960", "R14")
		k.mark("same")
	} else {
		k.op("ADDQ", "$1024", "R14")
	}
	k.op("DECQ", "R15")
}

// line is 4 elements of k. Registers are sums, then two for a row's bytes, then W.
func (k avxFew) line(p int) {
	sums := 2 * k.rows * k.vecs
	k.op("PREFETCHT0", fmt.Sprintf("%d(AX)", int8Ahead+64*p))
	for i := range k.vecs {
		k.op("VMOVDQU", fmt.Sprintf("%d(AX)", 64*p+32*(i%2)+1024*(i/2)), k.v(sums+2+i))
	}
	for r := range k.rows {
		k.op("VPBROADCASTD", fmt.Sprintf("%d(SI)", 64*r+4*p), k.v(sums))
		k.op("VPBROADCASTD", fmt.Sprintf("%d(SI)(R8*1)", 64*r+4*p), k.v(sums+1))
		for i := range k.vecs {
			k.use(dotBytes(2*(r*k.vecs+i), sums, sums+2+i))
			k.use(dotBytes(2*(r*k.vecs+i)+1, sums+1, sums+2+i))
		}
	}
}

// results turns the sums into y.
func (k avxFew) results() {
	tmp, scale := k.v(2*k.rows*k.vecs), k.v(2*k.rows*k.vecs+1)
	k.op("MOVQ", "ldc+48(FP)", "DX")
	k.op("MOVQ", "DI", "AX")
	for r := range k.rows {
		k.op("VBROADCASTSS", fmt.Sprintf("%d(R12)", 4*r), scale)
		for i := range k.vecs {
			hi, lo := k.v(2*(r*k.vecs+i)), k.v(2*(r*k.vecs+i)+1)
			k.op("VPADDD", fmt.Sprintf("%d(R10)", int8Sums+32*i), hi, hi)
			int8Round(k.asm, hi, lo, tmp, k.bits(255), k.constant(256))
			k.op("VMULPS", fmt.Sprintf("%d(R10)", 32*i), lo, lo)
			k.op("VMULPS", scale, lo, lo)
			k.op("VMOVUPS", lo, fmt.Sprintf("%d(AX)", 32*i))
		}
		if r < k.rows-1 {
			k.op("LEAQ", "(AX)(DX*4)", "AX")
		}
	}
}

// splitHalfLines is 64 elements as bytes of two planes, plus 2¹⁵: upper ones at DI, lower ones at DI + R9. Packing
// works within parts of 16 bytes; groups of four bytes are put in order at the end.
func splitHalfLines(a *asm) {
	for half := range 2 {
		for i := range 4 {
			a.op("VMULPS", fmt.Sprintf("%d(SI)", 128*half+32*i), a.v(15), a.v(i))
			a.op("VCVTPS2DQ", a.v(i), a.v(i))
		}
		for i := 0; i < 4; i += 2 {
			a.op("VPACKSSDW", a.v(i+1), a.v(i), a.v(i))
			a.op("VPXOR", a.bits(0x80008000), a.v(i), a.v(i))
			a.op("VPAND", a.bits(0x00FF00FF), a.v(i), a.v(i+1))
			a.op("VPSRLW", "$8", a.v(i), a.v(i))
		}
		for part, mem := range []string{"%d(DI)", "%d(DI)(R9*1)"} {
			a.op("VPACKUSWB", a.v(2+part), a.v(part), a.v(part))
			a.op("VPERMD", a.v(part), a.v(12), a.v(part))
			a.op("VMOVDQU", a.v(part), fmt.Sprintf(mem, 32*half))
		}
	}
}

// halfOrderTable is the order of splitHalfLines: group j comes from part j mod 2.
func halfOrderTable(a *asm) {
	for j := 0; j < 8; j += 2 {
		fmt.Fprintf(&a.out, "DATA order%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*j, 4*((j+1)%2)+(j+1)/2, 4*(j%2)+j/2)
	}
	fmt.Fprintf(&a.out, "GLOBL order%s<>(SB), RODATA|NOPTR, $32\n", a.tag)
}
