package main

import "fmt"

// transpose: dst[p·stride+i] = src[i·ld+p] for i < rows ≤ lanes, p < k, k a multiple of 4. It reads all lanes' rows,
// stored or not. R8 is the distance of rows, R9 three times that; each base is 4 rows further than the one before.
func (a *asm) transpose() {
	bases := []string{"SI", "R10", "R11", "R12"}[:a.lanes/4]
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
	for i := 1; i < len(bases); i++ {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i-1]), bases[i])
	}
	if a.wide() {
		a.transposeLines(bases)
	}
	a.mark("block")
	a.op("SUBQ", "$4", "CX")
	a.op("JLT", "done")
	a.transposeFours(bases)
	a.op("JMP", "block")
	a.mark("done")
	a.op("VZEROUPPER")
	a.op("RET")
}

// rowAddr are the four rows of one base.
var rowAddr = []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R9*1)"}

// transposeLines turns 16 rows × 16 elements at a time, so that each cache line is touched once: rows that lie a
// power of two apart share a few places in the first cache and would push each other out. 64 shuffles for 1 KiB.
func (a *asm) transposeLines(bases []string) {
	a.mark("line")
	a.op("SUBQ", "$16", "CX")
	a.op("JLT", "fours")
	for i := range 16 {
		row := fmt.Sprintf(rowAddr[i%4], bases[i/4])
		a.op("VMOVUPS", row, a.v(i))
		a.op("PREFETCHT0", "256"+row)
	}
	// Pairs, then fours within 128 bits: register 16+4q+e is element e (mod 4) of rows 4q…4q+3.
	for q := range 4 {
		r, t := 4*q, 16+4*q
		a.op("VUNPCKLPS", a.v(r+1), a.v(r), a.v(t))
		a.op("VUNPCKHPS", a.v(r+1), a.v(r), a.v(t+1))
		a.op("VUNPCKLPS", a.v(r+3), a.v(r+2), a.v(t+2))
		a.op("VUNPCKHPS", a.v(r+3), a.v(r+2), a.v(t+3))
		a.op("VUNPCKLPD", a.v(t+2), a.v(t), a.v(r))
		a.op("VUNPCKHPD", a.v(t+2), a.v(t), a.v(r+1))
		a.op("VUNPCKLPD", a.v(t+3), a.v(t+1), a.v(r+2))
		a.op("VUNPCKHPD", a.v(t+3), a.v(t+1), a.v(r+3))
	}
	// Register 4q+e holds, in its 128-bit part s, elements 4s+e of rows 4q…: a 4 × 4 transpose of parts for each e.
	for e := range 4 {
		a.op("VSHUFF32X4", "$0x44", a.v(4+e), a.v(e), a.v(16+e))     // q0s0 q0s1 q1s0 q1s1
		a.op("VSHUFF32X4", "$0xEE", a.v(4+e), a.v(e), a.v(20+e))     // q0s2 q0s3 q1s2 q1s3
		a.op("VSHUFF32X4", "$0x44", a.v(12+e), a.v(8+e), a.v(24+e))  // q2s0 q2s1 q3s0 q3s1
		a.op("VSHUFF32X4", "$0xEE", a.v(12+e), a.v(8+e), a.v(28+e))  // q2s2 q2s3 q3s2 q3s3
		a.op("VSHUFF32X4", "$0x88", a.v(24+e), a.v(16+e), a.v(e))    // s0
		a.op("VSHUFF32X4", "$0xDD", a.v(24+e), a.v(16+e), a.v(4+e))  // s1
		a.op("VSHUFF32X4", "$0x88", a.v(28+e), a.v(20+e), a.v(8+e))  // s2
		a.op("VSHUFF32X4", "$0xDD", a.v(28+e), a.v(20+e), a.v(12+e)) // s3
	}
	for p := range 16 {
		a.storeMasked(0, 14, a.v(p), "(DI)")
		a.op("ADDQ", "BX", "DI")
	}
	for _, b := range bases {
		a.op("ADDQ", "$64", b)
	}
	a.op("JMP", "line")
	a.mark("fours")
	a.op("ADDQ", "$16", "CX")
}

// transposeFours turns all rows × 4 elements. Rows i, i+4, i+8 … meet in one register, 4 elements each, straight from
// memory; then the four registers are turned within each 128 bits.
func (a *asm) transposeFours(bases []string) {
	insert := "VINSERTF128"
	if a.wide() {
		insert = "VINSERTF32X4"
	}
	for r, addr := range rowAddr {
		a.op("VMOVUPS", fmt.Sprintf(addr, bases[0]), fmt.Sprintf("X%d", r))
		for g := 1; g < len(bases); g++ {
			a.op(insert, fmt.Sprintf("$%d", g), fmt.Sprintf(addr, bases[g]), a.v(r), a.v(r))
		}
		if !a.wide() {
			for _, b := range bases {
				a.op("PREFETCHT0", "256"+fmt.Sprintf(addr, b))
			}
		}
	}
	a.op("VUNPCKLPS", a.v(1), a.v(0), a.v(4))
	a.op("VUNPCKHPS", a.v(1), a.v(0), a.v(5))
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
