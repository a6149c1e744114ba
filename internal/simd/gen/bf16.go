package main

import "fmt"

// packLines packs 16 rows of k elements of float32, one tile of bfloat16 for every 32 of them, zeros behind the last. A tile is 16 lines of
// 64 bytes: of A, line m holds 32 elements of k of row m; of B, line p holds elements 2p and 2p+1 of k of 16 columns, side
// by side. One is the other's transpose in units of pairs.
//
//	packLines      rows of A as they lie
//	packLinesTurn  columns of B given as rows: [n,k]
func (a *asm) packLines(turn bool) {
	name := "packLines"
	if turn {
		name += "Turn"
	}
	a.text(name, 0, 32)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "k+24(FP)", "BX")
	a.op("SHLQ", "$2", "R8")
	a.op("MOVQ", "$256", "R9") // what is fetched: two steps ahead, at the end those of the next 16 rows
	a.op("MOVQ", "R8", "R10")
	a.op("SHLQ", "$4", "R10")
	a.op("ADDQ", "R9", "R10")
	a.op("LEAQ", "31(BX)", "AX")
	a.op("ANDQ", "$-32", "AX")
	a.op("SHLQ", "$2", "AX")
	a.op("SUBQ", "AX", "R10")
	a.op("KXNORW", "K1", "K1", "K1")
	a.op("KXNORW", "K2", "K2", "K2")
	a.mark("step")
	a.op("CMPQ", "BX", "$64")
	a.op("JGT", "whole")
	a.op("MOVQ", "R10", "R9")
	a.op("CMPQ", "BX", "$32")
	a.op("JGE", "whole")
	a.op("MOVQ", "BX", "CX")
	a.laneMasks(0)
	a.mark("whole")
	a.op("MOVQ", "SI", "AX")
	for i := range 16 {
		a.op("VMOVUPS.Z", "(AX)", "K1", a.v(i))
		a.op("PREFETCHT0", "(AX)(R9*1)")
		a.op("PREFETCHT0", "64(AX)(R9*1)")
		a.op("VMOVUPS.Z", "64(AX)", "K2", a.v(16))
		a.narrowPair(i, 16, i)
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
	a.op("ADDQ", "$128", "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "DI")
	a.op("SUBQ", "$32", "BX")
	a.op("JGT", "step")
	a.op("VZEROUPPER")
	a.op("RET")
}

// packPairs packs 8 rows of B [k,n] into 4 lines of each tile, panels stride bytes apart, zeros behind its cols columns. It goes along
// the rows, 8 streams that the processor sees and follows; memory is the bound.
func (a *asm) packPairs() {
	a.text("packPairs", 0, 40)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "cols+24(FP)", "BX")
	a.op("MOVQ", "stride+32(FP)", "DX")
	a.op("SHLQ", "$2", "R8")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	a.op("LEAQ", "(SI)(R8*4)", "R10")
	a.op("LEAQ", "(SI)(R8*8)", "R11")
	a.op("LEAQ", "(R10)(R8*8)", "R12")
	a.op("VMOVDQU64", "pairs"+a.tag+"<>(SB)", "Z31")
	a.op("KXNORW", "K1", "K1", "K1")
	a.op("KXNORW", "K2", "K2", "K2")
	a.op("SUBQ", "$32", "BX")
	a.op("JLT", "last")
	a.mark("panel")
	for r := range 8 {
		row := fmt.Sprintf(rowAddr[r%4], []string{"SI", "R10"}[r/4])
		for h := range 2 {
			a.op("VMOVUPS.Z", fmt.Sprintf("%d%s", 64*h, row), fmt.Sprintf("K%d", h+1), a.v(2*r+h))
			a.op("PREFETCHT0", fmt.Sprintf("%d"+rowAddr[r%4], 64*h, []string{"R11", "R12"}[r/4]))
		}
	}
	for i := range 8 { // lines i/2 of both tiles
		from := 4*(i/2) + i%2
		a.narrowPair(from, from+2, from)
		a.op("VPERMW", a.v(from), "Z31", a.v(from))
		a.op("VMOVDQU64", a.v(from), fmt.Sprintf("%d(DI)", 1024*(i%2)+64*(i/2)))
	}
	a.op("ADDQ", "$128", "SI")
	a.op("ADDQ", "$128", "R10")
	a.op("ADDQ", "$128", "R11")
	a.op("ADDQ", "$128", "R12")
	a.op("ADDQ", "DX", "DI")
	a.op("SUBQ", "$32", "BX")
	a.op("JGE", "panel")
	a.mark("last")
	a.op("MOVQ", "BX", "CX")
	a.op("ADDQ", "$32", "CX")
	a.op("JLE", "done") // none left, or these were the last
	a.laneMasks(0)
	a.op("XORL", "BX", "BX") // one more turn
	a.op("JMP", "panel")
	a.mark("done")
	a.op("VZEROUPPER")
	a.op("RET")
}

// turnPairs makes tiles of A out of tiles of B, in place: one step of panels that lie stride bytes apart. Meanwhile it fetches 8 of the rows
// that packPairs will want then: those after the ones it has fetched itself, the next of src's.
func (a *asm) turnPairs() {
	a.text("turnPairs", 0, 40)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "panels+8(FP)", "CX")
	a.op("MOVQ", "stride+16(FP)", "DX")
	a.op("MOVQ", "src+24(FP)", "R11")
	a.op("MOVQ", "ld+32(FP)", "R8")
	a.op("SHLQ", "$2", "R8")
	a.op("LEAQ", "(R8)(R8*4)", "R9")
	a.op("LEAQ", "(R11)(R9*8)", "R11")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	a.op("LEAQ", "(R11)(R8*4)", "R12")
	a.mark("panel")
	for h := range 2 {
		for i := range 16 {
			a.op("VMOVDQU64", fmt.Sprintf("%d(DI)", 1024*h+64*i), a.v(i))
			if i%2 == 0 {
				a.op("PREFETCHT0", fmt.Sprintf("%d"+rowAddr[i/2%4], 64*h, []string{"R11", "R12"}[i/8]))
			}
		}
		a.turnRegisters()
		for i := range 16 {
			a.op("VMOVDQU64", a.v(i), fmt.Sprintf("%d(DI)", 1024*h+64*i))
		}
	}
	a.op("ADDQ", "$128", "R11")
	a.op("ADDQ", "$128", "R12")
	a.op("ADDQ", "DX", "DI")
	a.op("DECQ", "CX")
	a.op("JNZ", "panel")
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
	a.packLines(false)
	a.packLines(true)
	a.packPairs()
	a.turnPairs()
	for _, r := range dotHeights {
		a.dotRows(r)
	}
	a.pairTable()
	return a.finish()
}
