package main

import "fmt"

// turnHalves packs 16 rows of bfloat16, steps of 32 elements each, as 16 columns of B: pairs of elements are turned as they are.
func (a *asm) turnHalves() {
	a.text("turnHalves", 0, 32)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "steps+24(FP)", "CX")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	here, next := []string{"SI", "R10", "R11", "R12"}, []string{"R13", "R14", "R15", "DX"}
	for j := 1; j < 4; j++ {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", here[j-1]), here[j])
	}
	for j := range 4 { // the next 16 rows
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*8)", here[j]), next[j])
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*8)", next[j]), next[j])
	}
	a.mark("step")
	for i := range 16 {
		a.op("VMOVDQU64", fmt.Sprintf(rowAddr[i%4], here[i/4]), a.v(i))
		a.op("PREFETCHT0", fmt.Sprintf(rowAddr[i%4], next[i/4]))
	}
	a.turnRegisters()
	for i := range 16 {
		a.op("VMOVDQU64", a.v(i), fmt.Sprintf("%d(DI)", 64*i))
	}
	for _, r := range append(append([]string{}, here...), next...) {
		a.op("ADDQ", "$64", r)
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "DI")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.op("VZEROUPPER")
	a.op("RET")
}

// pairHalves packs 8 rows of bfloat16 of B [k,n] into 4 lines of each tile, panels of 32 columns stride bytes apart.
func (a *asm) pairHalves() {
	a.text("pairHalves", 0, 40)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "panels+24(FP)", "CX")
	a.op("MOVQ", "stride+32(FP)", "DX")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	a.op("LEAQ", "(SI)(R8*4)", "R10")
	a.op("LEAQ", "(SI)(R8*8)", "R11")
	a.op("LEAQ", "(R10)(R8*8)", "R12")
	for i := range 2 {
		a.op("VMOVDQU64", fmt.Sprintf("words%s<>+%d(SB)", a.tag, 64*i), a.v(30+i))
	}
	a.mark("panel")
	for r := range 8 {
		a.op("VMOVDQU64", fmt.Sprintf(rowAddr[r%4], []string{"SI", "R10"}[r/4]), a.v(r))
		a.op("PREFETCHT0", fmt.Sprintf(rowAddr[r%4], []string{"R11", "R12"}[r/4]))
	}
	for i := range 4 {
		a.op("VMOVDQA64", a.v(2*i), a.v(8+i))
		a.op("VPERMT2W", a.v(2*i+1), "Z30", a.v(8+i))
		a.op("VPERMT2W", a.v(2*i+1), "Z31", a.v(2*i))
		a.op("VMOVDQU64", a.v(8+i), fmt.Sprintf("%d(DI)", 64*i))
		a.op("VMOVDQU64", a.v(2*i), fmt.Sprintf("%d(DI)", 1024+64*i))
	}
	for _, r := range []string{"SI", "R10", "R11", "R12"} {
		a.op("ADDQ", "$64", r)
	}
	a.op("ADDQ", "DX", "DI")
	a.op("DECQ", "CX")
	a.op("JNZ", "panel")
	a.op("VZEROUPPER")
	a.op("RET")
}

// wordTable interleaves the words of two vectors: the first 16 of each, then the others.
func (a *asm) wordTable() {
	for i := range 16 {
		fmt.Fprintf(&a.out, "DATA words%s<>+%d(SB)/8, $0x%04X%04X%04X%04X\n", a.tag, 8*i, 33+2*i, 2*i+1, 32+2*i, 2*i)
	}
	fmt.Fprintf(&a.out, "GLOBL words%s<>(SB), RODATA|NOPTR, $128\n", a.tag)
}

// joinRows: row r of x = fx[r]·x + fy[r]·y, 16·vectors elements each.
func (a *asm) joinRows() {
	a.text("joinRows", 0, 8)
	a.op("MOVQ", "p+0(FP)", "AX")
	for i, r := range []string{"DI", "SI", "BX", "DX", "R8", "R9", "CX", "R13"} {
		a.op("MOVQ", fmt.Sprintf("%d(AX)", 8*i), r) // the fields of simd.joinArgs
	}
	a.mark("row")
	a.op("VBROADCASTSS", "(BX)", "Z0")
	a.op("VBROADCASTSS", "(DX)", "Z1")
	a.op("MOVQ", "DI", "R10")
	a.op("MOVQ", "SI", "R11")
	a.op("MOVQ", "R13", "R12")
	a.mark("vector")
	a.op("VMULPS", "(R10)", "Z0", "Z2")
	a.op("VFMADD231PS", "(R11)", "Z1", "Z2")
	a.op("VMOVUPS", "Z2", "(R10)")
	a.op("ADDQ", "$64", "R10")
	a.op("ADDQ", "$64", "R11")
	a.op("DECQ", "R12")
	a.op("JNZ", "vector")
	a.op("ADDQ", "R8", "DI")
	a.op("ADDQ", "R9", "SI")
	a.op("ADDQ", "$4", "BX")
	a.op("ADDQ", "$4", "DX")
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.op("VZEROUPPER")
	a.op("RET")
}

// narrow rounds n floats, a multiple of 32, to bfloat16.
func (a *asm) narrow() {
	a.text("narrow", 0, 24)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "n+16(FP)", "CX")
	a.mark("line")
	a.op("VMOVUPS", "(SI)", "Z0")
	a.op("VMOVUPS", "64(SI)", "Z1")
	a.narrowPair(0, 1, 0)
	a.op("VMOVDQU64", "Z0", "(DI)")
	a.op("ADDQ", "$128", "SI")
	a.op("ADDQ", "$64", "DI")
	a.op("SUBQ", "$32", "CX")
	a.op("JNZ", "line")
	a.op("VZEROUPPER")
	a.op("RET")
}
