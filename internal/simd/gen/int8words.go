package main

import "fmt"

// wordSteps is the steps of k whose sums have room in 32 bits: 512·127·32767 < 2³¹.
const wordSteps = 8

// wordFew is few of AVX2, where bytes are widened to words and pairs of products summed: a vector of sums is two for
// each of 4 columns. Sums of up to 8 steps are split into what is above 2⁸ and what is below, and those added in
// memory. One or two rows take the 16 columns of a tile at once, more of them 8.
type wordFew struct {
	*asm
	rows int
	vecs int // vectors of sums of a row
}

func newWordFew(a *asm, rows int) wordFew {
	if rows > 2 {
		return wordFew{a, rows, 2}
	}
	return wordFew{a, rows, 4}
}

func (k wordFew) emit() {
	k.text(int8Name(k.rows, 1), 64*k.rows*k.vecs+8, 80)
	loadArgs(k.asm, "step+16", "R8", "w+24", "BX", "head+32", "R15", "c+40", "DI", "scale+56", "R12", "panels+64",
		"R14", "stride+72", "R13")
	k.mark("panel")
	k.op("XORL", "R11", "R11") // which columns
	k.mark("part")
	k.begin()
	k.mark("block")
	k.op("MOVQ", "CX", "R10")
	k.op("MOVQ", imm(wordSteps), "AX")
	k.op("CMPQ", "R10", "AX")
	k.op("CMOVQGT", "AX", "R10")
	k.op("SUBQ", "R10", "CX")
	for i := range k.rows * k.vecs {
		k.op("VPXOR", k.v(i), k.v(i), k.v(i))
	}
	k.mark("step")
	for p := range 16 {
		k.line(p)
	}
	k.op("ADDQ", "R8", "SI")
	k.op("ADDQ", "$2048", "R9")
	k.again("step", "R10")
	k.putAside()
	k.op("TESTQ", "CX", "CX")
	k.op("JNZ", "block")
	k.results()
	k.op("ADDQ", imm(16*k.vecs), "DI")
	k.op("INCQ", "R11")
	k.op("CMPQ", "R11", imm(8/k.vecs))
	k.op("JLT", "part")
	k.op("ADDQ", "R13", "BX")
	k.op("ADDQ", imm(int8Head), "R15")
	k.again("panel", "R14")
	k.ret()
}

// begin sets R9 to the first line of a part of a panel's columns and the sums in memory to 0.
func (k wordFew) begin() {
	k.op("MOVQ", "steps+0(FP)", "CX")
	k.op("MOVQ", "x+8(FP)", "SI")
	k.op("MOVQ", "BX", "R9")
	k.op("MOVQ", "R11", "AX")
	if k.vecs == 4 {
		k.op("SHLQ", "$10", "AX")
	} else { // halves of the lines of a tile, then of the other one
		k.op("MOVQ", "R11", "DX")
		k.op("SHRQ", "$1", "AX")
		k.op("SHLQ", "$10", "AX")
		k.op("ANDQ", "$1", "DX")
		k.op("SHLQ", "$5", "DX")
		k.op("ADDQ", "DX", "AX")
	}
	k.op("ADDQ", "AX", "R9")
	k.op("VPXOR", k.v(0), k.v(0), k.v(0))
	for i := range 2 * k.rows * k.vecs {
		k.op("VMOVDQU", k.v(0), wordSums(i))
	}
}

// wordSums is the place of vector i: upper parts at even ones, lower parts at odd ones.
func wordSums(i int) string { return fmt.Sprintf("%d(SP)", 32*i) }

// line is 4 elements of k. Registers are rows·vecs sums, rows' words from 8 on, W, products.
func (k wordFew) line(p int) {
	for r := range k.rows {
		k.op("VPBROADCASTQ", fmt.Sprintf("%d(SI)", 128*r+8*p), k.v(8+r))
	}
	k.op("PREFETCHT0", fmt.Sprintf("%d(R9)", int8Ahead+64*p))
	for i := range k.vecs {
		w := k.v(12 + i%2)
		k.op("VPMOVSXBW", fmt.Sprintf("%d(R9)", 64*p+16*i), w)
		for r := range k.rows {
			product := k.v(14 + r%2)
			k.op("VPMADDWD", k.v(8+r), w, product)
			k.op("VPADDD", product, k.v(r*k.vecs+i), k.v(r*k.vecs+i))
		}
	}
}

// putAside adds the sums of a block to those in memory.
func (k wordFew) putAside() {
	low8 := k.bits(255)
	for i := range k.rows * k.vecs {
		k.op("VPSRAD", "$8", k.v(i), k.v(8))
		k.op("VPAND", low8, k.v(i), k.v(i))
		for part, reg := range []string{k.v(8), k.v(i)} {
			k.op("VPADDD", wordSums(2*i+part), reg, reg)
			k.op("VMOVDQU", reg, wordSums(2*i+part))
		}
	}
}

// results turns the sums into y. The two halves of a column's sum lie side by side.
func (k wordFew) results() {
	k.op("MOVQ", "ldc+48(FP)", "DX")
	k.op("MOVQ", "DI", "R10")
	k.op("MOVQ", "R11", "AX")
	k.op("IMULQ", imm(16*k.vecs), "AX")
	k.op("ADDQ", "R15", "AX") // scales
	for r := range k.rows {
		k.op("VBROADCASTSS", fmt.Sprintf("%d(R12)", 4*r), k.v(4))
		for i := 0; i < k.vecs; i += 2 {
			for part := range 2 {
				k.op("VMOVDQU", wordSums(2*(r*k.vecs+i)+part), k.v(part))
				k.op("VPHADDD", wordSums(2*(r*k.vecs+i+1)+part), k.v(part), k.v(part))
				k.op("VPERMQ", "$0xD8", k.v(part), k.v(part))
			}
			int8Round(k.asm, k.v(0), k.v(1), k.v(2), k.bits(255), k.constant(256))
			k.op("VMULPS", fmt.Sprintf("%d(AX)", 16*i), k.v(1), k.v(1))
			k.op("VMULPS", k.v(4), k.v(1), k.v(1))
			k.op("VMOVUPS", k.v(1), fmt.Sprintf("%d(R10)", 16*i))
		}
		if r < k.rows-1 {
			k.op("LEAQ", "(R10)(DX*4)", "R10")
		}
	}
}
