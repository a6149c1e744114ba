package main

import "fmt"

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
	for _, e := range packElems {
		a.packLines(e, false)
		a.packLines(e, true)
		a.packPairs(e)
		a.turnPairs(e)
	}
	a.packDown()
	for _, r := range dotHeights {
		a.dotRows(r)
	}
	narrowOp.emit(a)
	for _, o := range bf16Ops() {
		o.emit(a)
	}
	a.pairTable()
	a.wordTable()
	return a.finish()
}
