package main

import "fmt"

// avxVNNI is AVX2 with VPDPBUSD, as processors without AVX-512 have it.
var avxVNNI = isa{tag: "AVXVNNI", file: "avxvnni", lanes: 8, reg: "Y", regs: 16}

// dotBytes: Y[dst] += products of four bytes each, unsigned ones of Y[x] with signed ones of Y[w]. The assembler knows only AVX-512's form.
func (a *asm) dotBytes(dst, x, w int) {
	code := []byte{0xC4, byte(1-dst>>3)<<7 | 1<<6 | byte(1-w>>3)<<5 | 2, byte(^x&15)<<3 | 1<<2 | 1, 0x50, 0xC0 | byte(dst&7)<<3 | byte(w&7)}
	a.raw(fmt.Sprintf("VPDPBUSD_Y%d_Y%d_Y%d", w, x, dst), code, fmt.Sprintf("{vex} vpdpbusd ymm%d, ymm%d, ymm%d", dst, x, w))
}

// fewAVXVNNI is few for so many rows: a part of a panel's columns at a time, all of them for one row, a tile for two, 8 for more. R14 is where the
// part begins, R15 counts the parts left.
func (a *asm) fewAVXVNNI(rows int) {
	vecs := []int{0, 4, 2, 1, 1}[rows]
	a.fewInt8Begin(rows, 1, 0)
	a.mark("panel")
	a.op("MOVQ", "BX", "R14")
	a.op("MOVQ", fmt.Sprintf("$%d", 4/vecs), "R15")
	a.mark("part")
	a.op("MOVQ", "steps+0(FP)", "CX")
	a.op("MOVQ", "x+8(FP)", "SI")
	a.op("MOVQ", "R14", "AX")
	for i := range 2 * rows * vecs {
		a.op("VPXOR", a.v(i), a.v(i), a.v(i))
	}
	a.mark("step")
	for p := range 16 {
		a.avxLine(rows, vecs, p)
	}
	a.op("ADDQ", "R9", "SI")
	a.op("ADDQ", "$2048", "AX")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.avxResults(rows, vecs)
	a.avxNext(vecs)
	a.op("JNZ", "part")
	a.op("ADDQ", fmt.Sprintf("$%d", int8Head-int8Sums), "R10")
	a.op("ADDQ", "R13", "BX")
	a.op("DECQ", "R11")
	a.op("JNZ", "panel")
	a.op("VZEROUPPER")
	a.op("RET")
}

// avxNext moves on to the next part.
func (a *asm) avxNext(vecs int) {
	a.op("ADDQ", fmt.Sprintf("$%d", 32*vecs), "DI")
	a.op("ADDQ", fmt.Sprintf("$%d", 32*vecs), "R10")
	if vecs == 1 { // halves of the lines of a tile, then of the other one
		a.op("ADDQ", "$32", "R14")
		a.op("CMPQ", "R15", "$3")
		a.op("JNE", "same")
		a.op("ADDQ", "$960", "R14")
		a.mark("same")
	} else {
		a.op("ADDQ", "$1024", "R14")
	}
	a.op("DECQ", "R15")
}

// avxLine is 4 elements of k. Registers are sums, then two for a row's bytes, then W.
func (a *asm) avxLine(rows, vecs, p int) {
	sums := 2 * rows * vecs
	a.op("PREFETCHT0", fmt.Sprintf("%d(AX)", int8Ahead+64*p))
	for i := range vecs {
		a.op("VMOVDQU", fmt.Sprintf("%d(AX)", 64*p+32*(i%2)+1024*(i/2)), a.v(sums+2+i))
	}
	for r := range rows {
		a.op("VPBROADCASTD", fmt.Sprintf("%d(SI)", 64*r+4*p), a.v(sums))
		a.op("VPBROADCASTD", fmt.Sprintf("%d(SI)(R8*1)", 64*r+4*p), a.v(sums+1))
		for i := range vecs {
			a.dotBytes(2*(r*vecs+i), sums, sums+2+i)
			a.dotBytes(2*(r*vecs+i)+1, sums+1, sums+2+i)
		}
	}
}

// avxResults turns the sums into y.
func (a *asm) avxResults(rows, vecs int) {
	tmp, scale := a.v(2*rows*vecs), a.v(2*rows*vecs+1)
	a.op("MOVQ", "ldc+48(FP)", "DX")
	a.op("MOVQ", "DI", "AX")
	for r := range rows {
		a.op("VBROADCASTSS", fmt.Sprintf("%d(R12)", 4*r), scale)
		for i := range vecs {
			hi, lo := a.v(2*(r*vecs+i)), a.v(2*(r*vecs+i)+1)
			a.op("VPADDD", fmt.Sprintf("%d(R10)", int8Sums+32*i), hi, hi)
			a.int8Round(hi, lo, tmp, a.bits(255), a.constant(256))
			a.op("VMULPS", fmt.Sprintf("%d(R10)", 32*i), lo, lo)
			a.op("VMULPS", scale, lo, lo)
			a.op("VMOVUPS", lo, fmt.Sprintf("%d(AX)", 32*i))
		}
		if r < rows-1 {
			a.op("LEAQ", "(AX)(DX*4)", "AX")
		}
	}
}

// splitHalfLines is 64 elements as bytes of two planes, plus 2¹⁵: upper ones at DI, lower ones at DI + R9. Packing works within parts of 16
// bytes; groups of four bytes are put in order at the end.
func (a *asm) splitHalfLines() {
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
func (a *asm) halfOrderTable() {
	for j := 0; j < 8; j += 2 {
		fmt.Fprintf(&a.out, "DATA order%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*j, 4*((j+1)%2)+(j+1)/2, 4*(j%2)+j/2)
	}
	fmt.Fprintf(&a.out, "GLOBL order%s<>(SB), RODATA|NOPTR, $32\n", a.tag)
}
