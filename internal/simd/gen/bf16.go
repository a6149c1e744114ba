package main

import "fmt"

// packTile are the names and programs of the packers of 16 × 32 blocks of float32, one tile of bfloat16 per step of k. A tile
// is 16 lines of 64 bytes: of A, line m holds 32 elements of k of row m; of B, line p holds elements 2p and 2p+1 of
// k of 16 columns, side by side. So of B, and of A given transposed, pairs of rows are interleaved; and one is the
// other's transpose in units of pairs.
//
//	packLines      rows of A as they lie
//	packLinesTurn  columns of B given as rows: [n,k]
//	packPairs      B as it lies: [k,n]
//	packPairsTurn  rows of A given as columns: [k,m]
func (a *asm) packTile(pairs, turn bool) {
	name := "packLines"
	if pairs {
		name = "packPairs"
	}
	if turn {
		name += "Turn"
	}
	a.text(name, 0, 32)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "steps+24(FP)", "CX")
	a.op("SHLQ", "$2", "R8")
	if pairs {
		a.op("VMOVDQU64", "pairs"+a.tag+"<>(SB)", "Z31")
	}
	a.mark("step")
	a.op("MOVQ", "SI", "AX")
	for i := range 16 {
		a.op("VMOVUPS", "(AX)", a.v(i))
		if pairs {
			a.op("ADDQ", "R8", "AX")
			a.op("VMOVUPS", "(AX)", a.v(16))
		} else {
			a.op("PREFETCHT0", "256(AX)")
			a.op("PREFETCHT0", "320(AX)")
			a.op("VMOVUPS", "64(AX)", a.v(16))
		}
		a.narrowPair(i, 16, i)
		if pairs {
			a.op("VPERMW", a.v(i), "Z31", a.v(i))
		}
		if i < 15 {
			a.op("ADDQ", "R8", "AX")
		}
	}
	if turn {
		a.turnRegisters()
	}
	for i := range 16 {
		a.op("VMOVDQU64", a.v(i), fmt.Sprintf("%d(DI)", 64*i))
	}
	if pairs {
		a.op("LEAQ", "(AX)(R8*1)", "SI")
	} else {
		a.op("ADDQ", "$128", "SI")
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "DI")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.op("VZEROUPPER")
	a.op("RET")
}

// pairTable is the permutation that interleaves the halves of a vector of 32 words.
func (a *asm) pairTable() {
	for i := 0; i < 16; i += 2 {
		fmt.Fprintf(&a.out, "DATA pairs%s<>+%d(SB)/8, $0x%04X%04X%04X%04X\n", a.tag, 4*i, 17+i, i+1, 16+i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL pairs%s<>(SB), RODATA|NOPTR, $64\n", a.tag)
}

// dotRows: C[rows, 32] (+)= A·B on packed panels with VDPBF16PS. A's pairs are spread over a register each.
func (a *asm) dotRows(rows int) {
	a.text(fmt.Sprintf("dotRows%dx", rows), 0, 41)
	a.op("MOVQ", "steps+0(FP)", "CX")
	a.op("MOVQ", "a+8(FP)", "SI")
	a.op("MOVQ", "b+16(FP)", "BX")
	a.op("MOVQ", "ldc+32(FP)", "R9")
	a.op("SHLQ", "$2", "R9")
	a.startRows(rows, func(r, i int) string { return a.v(2*r + i) })
	a.mark("step")
	for p := range 16 {
		a.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*p), "Z30")
		a.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*p+1024), "Z31")
		for r := range rows {
			a.op("VPBROADCASTD", fmt.Sprintf("%d(SI)", 64*r+4*p), a.v(28+r%2))
			a.dotPairs(2*r, 28+r%2, 30)
			a.dotPairs(2*r+1, 28+r%2, 31)
		}
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "BX")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.eachRow(rows, func(r, i int, mem string) { a.op("VMOVUPS", a.v(2*r+i), mem) })
	a.op("VZEROUPPER")
	a.op("RET")
}

// startRows sets the accumulators to C, or to zero.
func (a *asm) startRows(rows int, reg func(r, i int) string) {
	a.op("MOVBLZX", "load+40(FP)", "AX")
	a.op("TESTL", "AX", "AX")
	a.op("JZ", "zero")
	a.eachRow(rows, func(r, i int, mem string) { a.op("VMOVUPS", mem, reg(r, i)) })
	a.op("JMP", "begin")
	a.mark("zero")
	for r := range rows {
		for i := range 32 / a.lanes {
			a.op("VXORPS", reg(r, i), reg(r, i), reg(r, i))
		}
	}
	a.mark("begin")
}

// eachRow walks DX over rows of 32 elements of C.
func (a *asm) eachRow(rows int, f func(r, i int, mem string)) {
	a.op("MOVQ", "c+24(FP)", "DX")
	for r := range rows {
		for i := range 32 / a.lanes {
			f(r, i, fmt.Sprintf("%d(DX)", i*a.bytes()))
		}
		if r < rows-1 {
			a.op("ADDQ", "R9", "DX")
		}
	}
}

// dotHeights are the rows of the VDPBF16PS tiles.
var dotHeights = []int{8, 4, 2, 1}

func bf16File() []byte {
	a := newAsm(bf16)
	a.include(missingFile)
	for _, pairs := range []bool{false, true} {
		for _, turn := range []bool{false, true} {
			a.packTile(pairs, turn)
		}
	}
	a.expPack()
	for _, r := range dotHeights {
		a.dotRows(r)
	}
	a.pairTable()
	return a.finish()
}
