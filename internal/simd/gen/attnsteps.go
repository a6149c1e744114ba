package main

import "fmt"

// The tiles' unit of work beside a softmax is a step: 16 rows of A meet 32 of k of a panel of B. A list of steps is written first; then the vectors'
// code takes one or two after each row, so that tiles multiply in the shadow of the exponentials. Steps of one 16 × 32 piece of C follow each
// other; the first says where the sums begin and the last where they go.
//
// R10 holds 64, R8 is the next step, R15 the end of the list.
const (
	stepA, stepB, stepStart, stepC, stepLd = 0, 8, 16, 24, 32
	stepSize                               = 40

	startKeep, startZero = 0, 1 // of stepStart; else where C is
)

// takeStep does the next step. It uses R9, R11, AX and CX.
func (a *asm) takeStep() {
	for _, piece := range a.stepPieces() {
		piece()
	}
}

// stepPieces are the parts of takeStep.
func (a *asm) stepPieces() []func() {
	return []func(){
		a.stepBegin,
		func() { a.tileStream(6, "R11", "R10", 0) },
		func() { a.tileProduct(0, 4, 6) },
		func() { a.tileStream(6, "R11", "R10", 1024) },
		a.stepEnd,
	}
}

func (a *asm) stepBegin() {
	begun, zero := a.fresh("begun"), a.fresh("zero")
	a.op("MOVQ", step(stepStart), "CX")
	a.op("MOVQ", step(stepA), "R9")
	a.op("MOVQ", step(stepB), "R11")
	a.op("CMPQ", "CX", fmt.Sprintf("$%d", startZero))
	a.op("JLT", begun)
	a.op("JEQ", zero)
	a.op("MOVQ", step(stepLd), "AX")
	for col := range 2 {
		a.tileLoad(col, "CX", "AX", 64*col)
	}
	a.op("JMP", begun)
	a.mark(zero)
	for col := range 2 {
		a.tileZero(col)
	}
	a.mark(begun)
	a.tileLoad(4, "R9", "R10", 0)
}

func (a *asm) stepEnd() {
	kept := a.fresh("kept")
	a.tileProduct(1, 4, 6)
	a.op("MOVQ", step(stepC), "CX")
	a.op("TESTQ", "CX", "CX")
	a.op("JZ", kept)
	a.op("MOVQ", step(stepLd), "AX")
	for col := range 2 {
		a.tileStore(col, "CX", "AX", 64*col)
	}
	a.mark(kept)
	a.op("ADDQ", fmt.Sprintf("$%d", stepSize), "R8")
}

func step(off int) string { return fmt.Sprintf("%d(R8)", off) }

// takeUntil does steps up to the one at the address that an operand holds, or all.
func (a *asm) takeUntil(end string) {
	again, done := a.fresh("take"), a.fresh("taken")
	a.mark(again)
	a.op("CMPQ", "R8", end)
	a.op("JGE", done)
	a.takeStep()
	a.op("JMP", again)
	a.mark(done)
}

// addSteps lists the steps of CX panels of B from BX on, strideB further on each: R13 steps of k, A from SI on, sizeA bytes apart. C is at R11 with
// rows ld apart, and begins with start, or itself where that is negative.
// It uses AX, DX, R9, R12 and R14.
func (a *asm) addSteps(sizeA int, strideB, ld, start string) {
	panel, one, fresh := a.fresh("addpanel"), a.fresh("addstep"), a.fresh("addfresh")
	a.mark(panel)
	a.op("MOVQ", start, "AX")
	a.op("TESTQ", "AX", "AX")
	a.op("JGE", fresh)
	a.op("MOVQ", "R11", "AX")
	a.mark(fresh)
	a.op("MOVQ", "SI", "R9")
	a.op("MOVQ", "BX", "R12")
	a.op("MOVQ", "R13", "R14")
	a.op("MOVQ", ld, "DX")
	a.mark(one)
	for i, r := range []string{"R9", "R12", "AX"} {
		a.op("MOVQ", r, fmt.Sprintf("%d(R15)", 8*i)) // stepA, stepB, stepStart
	}
	a.op("XORL", "AX", "AX") // startKeep
	a.op("MOVQ", "AX", fmt.Sprintf("%d(R15)", stepC))
	a.op("MOVQ", "DX", fmt.Sprintf("%d(R15)", stepLd))
	a.op("ADDQ", fmt.Sprintf("$%d", sizeA), "R9")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R12")
	a.op("ADDQ", fmt.Sprintf("$%d", stepSize), "R15")
	a.op("DECQ", "R14")
	a.op("JNZ", one)
	a.op("MOVQ", "R11", fmt.Sprintf("%d(R15)", stepC-stepSize))
	a.op("ADDQ", "$128", "R11")
	a.op("ADDQ", strideB, "BX")
	a.op("DECQ", "CX")
	a.op("JNZ", panel)
}

// fetchSome fetches n rows of those that will be wanted soon, into the second cache: the argument says where a pointer to them is. It uses AX, CX,
// R9 and R11.
func (a *asm) fetchSome(off, n int) {
	same := a.fresh("same")
	a.op("MOVQ", arg(off), "AX")
	a.op("MOVQ", "(AX)", "CX")
	a.op("MOVQ", "(CX)", "R9")
	a.op("MOVQ", "8(CX)", "R11")
	for range n {
		a.op("PREFETCHT1", "(R9)")
		a.op("PREFETCHT1", "64(R9)")
		a.op("ADDQ", "R11", "R9")
	}
	a.op("MOVQ", "R9", "(CX)")
	a.op("SUBQ", fmt.Sprintf("$%d", n), "16(CX)")
	a.op("JGT", same)
	a.op("ADDQ", "$24", "(AX)")
	a.mark(same)
}
