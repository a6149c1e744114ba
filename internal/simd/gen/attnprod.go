package main

import "fmt"

// unitProduct multiplies the panel of A at R8 with the panel of B at BX, depth steps of k, into the unit at R11. With two steps A stays in its tiles.
func (a *asm) unitProduct(depth int) {
	end, long := a.fresh("multiplied"), a.fresh("long")
	a.op("MOVQ", "$64", "R10")
	a.op("MOVQ", fmt.Sprintf("$%d", unitRow), "R12")
	a.op("CMPQ", arg(depth), "$2")
	a.op("JNE", long)
	a.shallowProduct()
	a.op("JMP", end)
	a.mark(long)
	for half := range 2 {
		a.tileZero(2 * half)
		a.tileZero(2*half + 1)
		a.op("LEAQ", fmt.Sprintf("%d(R8)", 1024*half), "SI")
		a.halfProduct(half, depth, true)
		a.tileStore(2*half, "R11", "R12", half*16*unitRow)
		a.tileStore(2*half+1, "R11", "R12", half*16*unitRow+64)
	}
	a.mark(end)
}

// shallowProduct is unitProduct of two steps of k: tiles 2 and 3 hold those of the first 16 rows, 4 and 5 of the others.
func (a *asm) shallowProduct() {
	for t := range 4 {
		a.tileLoad(2+t, "R8", "R10", t/2*1024+t%2*panelStep)
	}
	for col := range 2 {
		a.tileZero(0)
		a.tileZero(1)
		for step := range 2 {
			a.tileStream(6, "BX", "R10", step*panelStep+1024*col)
			a.gap()
			for half := range 2 {
				a.tileProduct(half, 2+2*half+step, 6)
				a.gap()
			}
		}
		for half := range 2 {
			a.tileStore(half, "R11", "R12", half*16*unitRow+64*col)
		}
	}
}

// halfProduct adds the product of 16 rows of A at SI with the panel of B at BX to tiles 2·half and 2·half+1: few tiles in use, kept
// apart, see gemmTiles, and a result can be stored while the next half multiplies. What streams past, B or else A, is loaded so as
// not to push the rest out of the first cache.
func (a *asm) halfProduct(half, depth int, streamB bool) {
	loadA, loadB := a.tileStream, a.tileLoad
	if streamB {
		loadA, loadB = a.tileLoad, a.tileStream
	}
	step := a.fresh("step")
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", arg(depth), "CX")
	a.mark(step)
	loadA(4, "SI", "R10", 0)
	a.gap()
	for col := range 2 {
		loadB(6, "R9", "R10", 1024*col)
		a.gap()
		a.tileProduct(2*half+col, 4, 6)
		a.gap()
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R9")
	a.op("DECQ", "CX")
	a.op("JNZ", step)
}

// startSums sets tiles 2·half and 2·half+1 to 16 rows of C, at R11 or R14, R12 bytes apart; or to zero, where the jump is taken
// on comparing the argument with 0. endSums writes them back.
func (a *asm) startSums(half, off int, jump string) {
	zero, begin, at := a.fresh("zero"), a.fresh("begin"), []string{"R11", "R14"}[half]
	a.op("CMPQ", arg(off), "$0")
	a.op(jump, zero)
	a.tileLoad(2*half, at, "R12", 0)
	a.tileLoad(2*half+1, at, "R12", 64)
	a.op("JMP", begin)
	a.mark(zero)
	a.tileZero(2 * half)
	a.tileZero(2*half + 1)
	a.mark(begin)
}

func (a *asm) endSums(half int) {
	at := []string{"R11", "R14"}[half]
	a.tileStore(2*half, at, "R12", 0)
	a.tileStore(2*half+1, at, "R12", 64)
}

// Byte offsets of the fields of simd.productArgs, the kernel's own from prodNext on.
const (
	prodA, prodB, prodC, prodConfig, prodLdc, prodSteps  = 0, 8, 16, 24, 32, 40
	prodRows, prodCols, prodStrideA, prodStrideB, prodLd = 48, 56, 64, 72, 80
	prodLater, prodLonger                                = 88, 96
	prodNext, prodFrom, prodNow                          = 104, 112, 120 // column of C, its first panel of A, steps
)

// productTiles emits C[32·rows, 32·cols] (+)= A·B for operands and a C that the first two caches hold: a finished tile goes straight to C.
// On the diagonal, where a triangle of A or B is zeros, a column begins one step of k later than the one before, or a row ends one
// step later.
func (a *asm) productTiles() {
	a.text("product", 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(prodConfig), "AX")
	a.tileConfig("AX")
	a.op("MOVQ", arg(prodB), "BX")
	a.op("MOVQ", arg(prodLdc), "R12")
	a.op("MOVQ", "R12", "R15")
	a.op("SHLQ", "$4", "R15")
	a.op("MOVQ", "$64", "R10")
	a.move(prodC, prodNext, prodA, prodFrom)
	a.mark("column")
	a.op("MOVQ", arg(prodFrom), "R8")
	a.op("MOVQ", arg(prodNext), "R11")
	a.op("MOVQ", arg(prodRows), "R13")
	a.move(prodSteps, prodNow)
	a.op("CMPQ", arg(prodLonger), "$0")
	a.op("JEQ", "panel")
	a.move(prodLonger, prodNow)
	a.mark("panel")
	a.op("LEAQ", "(R11)(R15*1)", "R14")
	for half := range 2 {
		a.startSums(half, prodLd, "JEQ")
		a.op("LEAQ", fmt.Sprintf("%d(R8)", 1024*half), "SI")
		a.halfProduct(half, prodNow, false)
		a.endSums(half)
	}
	a.op("LEAQ", "(R14)(R15*1)", "R11")
	a.op("ADDQ", arg(prodStrideA), "R8")
	a.op("MOVQ", arg(prodNow), "AX")
	a.op("CMPQ", "AX", arg(prodSteps))
	a.op("JGE", "long")
	a.op("INCQ", arg(prodNow))
	a.mark("long")
	a.op("DECQ", "R13")
	a.op("JNZ", "panel")
	a.op("ADDQ", "$128", arg(prodNext))
	a.op("ADDQ", arg(prodStrideB), "BX")
	a.op("CMPQ", arg(prodLater), "$0")
	a.op("JEQ", "whole")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "BX")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), arg(prodFrom))
	a.op("DECQ", arg(prodSteps))
	a.mark("whole")
	a.op("DECQ", arg(prodCols))
	a.op("JNZ", "column")
	a.tileRelease()
	a.op("RET")
}
