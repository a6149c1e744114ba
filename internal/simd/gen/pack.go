package main

import "fmt"

// transpose: dst[p·stride+i] = src[i·ld+p] for i < rows ≤ lanes, p < k, k a multiple of 4. It reads all lanes' rows,
// stored or not. Rows i, i+4, i+8 … meet in one register, 4 elements each, straight from memory; then the four
// registers of a group are turned within each 128 bits. AVX-512 spends 8 shuffles and 12 loads-with-insert on 64 elements.
func (a *asm) transpose() {
	groups := a.lanes / 4
	bases := []string{"SI", "R10", "R11", "R12"}[:groups]
	a.text("transpose", 48)
	a.op("MOVQ", "rows+32(FP)", "CX")
	a.laneMasks(14)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "stride+8(FP)", "BX")
	a.op("MOVQ", "src+16(FP)", "SI")
	a.op("MOVQ", "ld+24(FP)", "R8")
	a.op("MOVQ", "k+40(FP)", "CX")
	a.op("SHLQ", "$2", "BX")
	a.op("SHLQ", "$2", "R8")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	for i := 1; i < groups; i++ {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i-1]), bases[i])
	}
	a.mark("block")
	for r, addr := range []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R9*1)"} {
		a.op("VMOVUPS", fmt.Sprintf(addr, bases[0]), fmt.Sprintf("X%d", r))
		for g := 1; g < groups; g++ {
			ins := "VINSERTF128"
			if a.wide() {
				ins = "VINSERTF32X4"
			}
			a.op(ins, fmt.Sprintf("$%d", g), fmt.Sprintf(addr, bases[g]), a.v(r), a.v(r))
		}
	}
	// Registers 0…3 are rows a b c d of each 4 × 4 square.
	a.op("VUNPCKLPS", a.v(1), a.v(0), a.v(4)) // a0 b0 a1 b1
	a.op("VUNPCKHPS", a.v(1), a.v(0), a.v(5)) // a2 b2 a3 b3
	a.op("VUNPCKLPS", a.v(3), a.v(2), a.v(6))
	a.op("VUNPCKHPS", a.v(3), a.v(2), a.v(7))
	a.op("VUNPCKLPD", a.v(6), a.v(4), a.v(0))
	a.op("VUNPCKHPD", a.v(6), a.v(4), a.v(1))
	a.op("VUNPCKLPD", a.v(7), a.v(5), a.v(2))
	a.op("VUNPCKHPD", a.v(7), a.v(5), a.v(3))
	for r := range 4 {
		a.storeMasked(0, 14, a.v(r), "(DI)")
		a.op("ADDQ", "BX", "DI")
	}
	for _, b := range bases {
		a.op("ADDQ", "$16", b)
	}
	a.op("SUBQ", "$4", "CX")
	a.op("JNZ", "block")
	a.op("VZEROUPPER")
	a.op("RET")
}

// copyPanel: dst[p·stride+i] = src[p·ld+i] for i < width ≤ 2 vectors, p < k.
func (a *asm) copyPanel() {
	a.text("copyPanel", 48)
	a.op("MOVQ", "width+32(FP)", "CX")
	a.laneMasks(14)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "stride+8(FP)", "BX")
	a.op("MOVQ", "src+16(FP)", "SI")
	a.op("MOVQ", "ld+24(FP)", "R8")
	a.op("MOVQ", "width+32(FP)", "AX")
	a.op("MOVQ", "k+40(FP)", "CX")
	a.op("SHLQ", "$2", "BX")
	a.op("SHLQ", "$2", "R8")
	for _, vectors := range []int{1, 2} {
		if vectors == 1 {
			a.op("CMPQ", "AX", fmt.Sprintf("$%d", a.lanes))
			a.op("JGT", "two")
		}
		label := []string{"", "one", "two"}[vectors]
		a.mark(label)
		for i := range vectors {
			a.loadMasked(i, 14, fmt.Sprintf("%d(SI)", i*a.bytes()), a.v(i))
			a.storeMasked(i, 14, a.v(i), fmt.Sprintf("%d(DI)", i*a.bytes()))
		}
		a.op("ADDQ", "R8", "SI")
		a.op("ADDQ", "BX", "DI")
		a.op("DECQ", "CX")
		a.op("JNZ", label)
		a.op("VZEROUPPER")
		a.op("RET")
	}
}
