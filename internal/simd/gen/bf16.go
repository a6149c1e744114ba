package main

import "fmt"

// rowDots: C[rows, 32] (+)= A·B on packed panels with VDPBF16PS. A's pairs are spread over a register each.
type rowDots struct {
	*asm
	rows int
}

func (k rowDots) emit() {
	k.text(fmt.Sprintf("dotRows%dx", k.rows), 0, 41)
	loadArgs(k.asm, "steps+0", "CX", "a+8", "SI", "b+16", "BX", "ldc+32", "R9")
	k.op("SHLQ", "$2", "R9")
	k.start(func(r, i int) string { return k.v(2*r + i) })
	k.mark("step")
	for p := range 16 {
		k.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*p), "Z30")
		k.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*p+1024), "Z31")
		for r := range k.rows {
			k.op("VPBROADCASTD", fmt.Sprintf("%d(SI)", 64*r+4*p), k.v(28+r%2))
			k.use(dotPairs(2*r, 28+r%2, 30))
			k.use(dotPairs(2*r+1, 28+r%2, 31))
		}
	}
	k.op("ADDQ", imm(panelStep), "SI")
	k.op("ADDQ", imm(panelStep), "BX")
	k.again("step", "CX")
	k.eachRow(func(r, i int, mem string) { k.op("VMOVUPS", k.v(2*r+i), mem) })
	k.ret()
}

// startRows sets the accumulators to C, or to zero.
func (k rowDots) start(reg func(r, i int) string) {
	k.op("MOVBLZX", "load+40(FP)", "AX")
	k.op("TESTL", "AX", "AX")
	k.op("JZ", "zero")
	k.eachRow(func(r, i int, mem string) { k.op("VMOVUPS", mem, reg(r, i)) })
	k.op("JMP", "begin")
	k.mark("zero")
	for r := range k.rows {
		for i := range 32 / k.lanes {
			k.op("VXORPS", reg(r, i), reg(r, i), reg(r, i))
		}
	}
	k.mark("begin")
}

// eachRow walks DX over rows of 32 elements of C.
func (k rowDots) eachRow(f func(r, i int, mem string)) {
	k.op("MOVQ", "c+24(FP)", "DX")
	for r := range k.rows {
		for i := range 32 / k.lanes {
			f(r, i, fmt.Sprintf("%d(DX)", i*k.bytes()))
		}
		if r < k.rows-1 {
			k.op("ADDQ", "R9", "DX")
		}
	}
}

// dotHeights are the rows of the VDPBF16PS tiles.
var dotHeights = []int{8, 4, 2, 1}

func bf16File() []byte {
	a := newAsm(bf16)
	a.include(missingFile)
	for _, e := range packElems {
		pairPacker{a, e}.emitLines(false)
		pairPacker{a, e}.emitLines(true)
		pairPacker{a, e}.emitPairs()
		pairPacker{a, e}.emitTurn()
	}
	packDown(a)
	for _, r := range dotHeights {
		rowDots{a, r}.emit()
	}
	narrowOp.emit(a)
	for _, o := range bf16Ops() {
		o.emit(a)
	}
	pairTable(a)
	wordTable(a)
	return a.finish()
}
