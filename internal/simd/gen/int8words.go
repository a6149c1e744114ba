package main

import "fmt"

// wordSteps is the steps of k whose sums have room in 32 bits: 512·127·32767 < 2³¹.
const wordSteps = 8

// fewWords is few of AVX2, where bytes are widened to words and pairs of products summed: a vector of sums is two for each of 4
// columns. Sums of up to 8 steps are split into what is above 2⁸ and what is below, and those added in memory.
// One or two rows take the 16 columns of a tile at once, more of them 8.
func (a *asm) fewWords(rows int) {
	vecs := 4
	if rows > 2 {
		vecs = 2
	}
	a.text(int8Name(rows, 1), 64*rows*vecs+8, 80)
	a.op("MOVQ", "step+16(FP)", "R8")
	a.op("MOVQ", "w+24(FP)", "BX")
	a.op("MOVQ", "head+32(FP)", "R15")
	a.op("MOVQ", "c+40(FP)", "DI")
	a.op("MOVQ", "scale+56(FP)", "R12")
	a.op("MOVQ", "panels+64(FP)", "R14")
	a.op("MOVQ", "stride+72(FP)", "R13")
	a.mark("panel")
	a.op("XORL", "R11", "R11") // which columns
	a.mark("part")
	a.wordsBegin(rows, vecs)
	a.mark("block")
	a.op("MOVQ", "CX", "R10")
	a.op("MOVQ", fmt.Sprintf("$%d", wordSteps), "AX")
	a.op("CMPQ", "R10", "AX")
	a.op("CMOVQGT", "AX", "R10")
	a.op("SUBQ", "R10", "CX")
	for i := range rows * vecs {
		a.op("VPXOR", a.v(i), a.v(i), a.v(i))
	}
	a.mark("step")
	for p := range 16 {
		a.wordLine(rows, vecs, p)
	}
	a.op("ADDQ", "R8", "SI")
	a.op("ADDQ", "$2048", "R9")
	a.op("DECQ", "R10")
	a.op("JNZ", "step")
	a.wordsAside(rows, vecs)
	a.op("TESTQ", "CX", "CX")
	a.op("JNZ", "block")
	a.wordResults(rows, vecs)
	a.op("ADDQ", fmt.Sprintf("$%d", 16*vecs), "DI")
	a.op("INCQ", "R11")
	a.op("CMPQ", "R11", fmt.Sprintf("$%d", 8/vecs))
	a.op("JLT", "part")
	a.op("ADDQ", "R13", "BX")
	a.op("ADDQ", fmt.Sprintf("$%d", int8Head), "R15")
	a.op("DECQ", "R14")
	a.op("JNZ", "panel")
	a.op("VZEROUPPER")
	a.op("RET")
}

// wordsBegin sets R9 to the first line of a part of a panel's columns and the sums in memory to 0.
func (a *asm) wordsBegin(rows, vecs int) {
	a.op("MOVQ", "steps+0(FP)", "CX")
	a.op("MOVQ", "x+8(FP)", "SI")
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", "R11", "AX")
	if vecs == 4 {
		a.op("SHLQ", "$10", "AX")
	} else { // halves of the lines of a tile, then of the other one
		a.op("MOVQ", "R11", "DX")
		a.op("SHRQ", "$1", "AX")
		a.op("SHLQ", "$10", "AX")
		a.op("ANDQ", "$1", "DX")
		a.op("SHLQ", "$5", "DX")
		a.op("ADDQ", "DX", "AX")
	}
	a.op("ADDQ", "AX", "R9")
	a.op("VPXOR", a.v(0), a.v(0), a.v(0))
	for i := range 2 * rows * vecs {
		a.op("VMOVDQU", a.v(0), wordSums(i))
	}
}

// wordSums is the place of vector i: upper parts at even ones, lower parts at odd ones.
func wordSums(i int) string { return fmt.Sprintf("%d(SP)", 32*i) }

// wordLine is 4 elements of k. Registers are rows·vecs sums, rows' words from 8 on, W, products.
func (a *asm) wordLine(rows, vecs, p int) {
	for r := range rows {
		a.op("VPBROADCASTQ", fmt.Sprintf("%d(SI)", 128*r+8*p), a.v(8+r))
	}
	a.op("PREFETCHT0", fmt.Sprintf("%d(R9)", int8Ahead+64*p))
	for i := range vecs {
		w := a.v(12 + i%2)
		a.op("VPMOVSXBW", fmt.Sprintf("%d(R9)", 64*p+16*i), w)
		for r := range rows {
			product := a.v(14 + r%2)
			a.op("VPMADDWD", a.v(8+r), w, product)
			a.op("VPADDD", product, a.v(r*vecs+i), a.v(r*vecs+i))
		}
	}
}

// wordsAside adds the sums of a block to those in memory.
func (a *asm) wordsAside(rows, vecs int) {
	low8 := a.bits(255)
	for i := range rows * vecs {
		a.op("VPSRAD", "$8", a.v(i), a.v(8))
		a.op("VPAND", low8, a.v(i), a.v(i))
		for part, reg := range []string{a.v(8), a.v(i)} {
			a.op("VPADDD", wordSums(2*i+part), reg, reg)
			a.op("VMOVDQU", reg, wordSums(2*i+part))
		}
	}
}

// wordResults turns the sums into y. The two halves of a column's sum lie side by side.
func (a *asm) wordResults(rows, vecs int) {
	a.op("MOVQ", "ldc+48(FP)", "DX")
	a.op("MOVQ", "DI", "R10")
	a.op("MOVQ", "R11", "AX")
	a.op("IMULQ", fmt.Sprintf("$%d", 16*vecs), "AX")
	a.op("ADDQ", "R15", "AX") // scales
	for r := range rows {
		a.op("VBROADCASTSS", fmt.Sprintf("%d(R12)", 4*r), a.v(4))
		for i := 0; i < vecs; i += 2 {
			for part := range 2 {
				a.op("VMOVDQU", wordSums(2*(r*vecs+i)+part), a.v(part))
				a.op("VPHADDD", wordSums(2*(r*vecs+i+1)+part), a.v(part), a.v(part))
				a.op("VPERMQ", "$0xD8", a.v(part), a.v(part))
			}
			a.int8Round(a.v(0), a.v(1), a.v(2), a.bits(255), a.constant(256))
			a.op("VMULPS", fmt.Sprintf("%d(AX)", 16*i), a.v(1), a.v(1))
			a.op("VMULPS", a.v(4), a.v(1), a.v(1))
			a.op("VMOVUPS", a.v(1), fmt.Sprintf("%d(R10)", 16*i))
		}
		if r < rows-1 {
			a.op("LEAQ", "(R10)(DX*4)", "R10")
		}
	}
}
