package main

import "fmt"

// fewVectors is the number of vectors of columns that so many rows meet at once in NEON: both chains of each have a register.
func fewVectors(rows int) int {
	if rows > 2 {
		return 2
	}
	return 4
}

// leftNEON are pointers to up to four rows of A.
var leftNEON = []string{"R1", "R5", "R6", "R7"}

// fewNEON is few. R3 is B's step, R12 its panel, R15 a part of that; R13 and R14 are C and the panels left.
func (a *asm) fewNEON(rows int) {
	vecs := fewVectors(rows)
	a.text(fewName(rows, 1), 0, 64)
	a.op("MOVD", "FPCR", "R17")
	a.op("ORR", "$0x1000000", "R17", "R8") // subnormal inputs and results zero
	a.op("MOVD", "R8", "FPCR")
	a.args("steps+0", "R0", "a+8", "R1", "lda+16", "R2", "b+24", "R3", "c+32", "R4", "ldc+40", "R9", "panels+48", "R10", "stride+56", "R19")
	a.op("LSL", "$2", "R2")
	a.op("LSL", "$2", "R9")
	for r := 1; r < rows; r++ {
		a.op("ADD", "R2", leftNEON[r-1], leftNEON[r])
	}
	a.fill(0xFFFF0000, a.v(28))
	a.mark("step")
	a.op("MOVD", "R3", "R12")
	a.op("MOVD", "R4", "R13")
	a.op("MOVD", "R10", "R14")
	a.mark("panel")
	a.op("MOVD", "R12", "R15")
	a.op("MOVD", imm(8/vecs), "R16")
	a.mark("part")
	a.fewPartNEON(rows, vecs)
	a.nextPart(vecs, "R15", "R16")
	a.op("BNE", "part")
	a.op("ADD", "R19", "R12")
	a.op("SUBS", "$1", "R14")
	a.op("BNE", "panel")
	for r := range rows {
		a.op("ADD", "$128", leftNEON[r])
	}
	a.op("ADD", imm(panelStep), "R3")
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "step")
	a.op("MOVD", "R17", "FPCR")
	a.op("RET")
}

// nextPart moves on to the next vectors of a panel's columns, which lie side by side in the lines of a tile, and counts the parts left.
func (a *asm) nextPart(vecs int, at, count string) {
	const tile = 1024
	label := a.fresh("same")
	if vecs == 4 {
		a.op("ADD", imm(tile), at)
		a.op("SUBS", "$1", count)
		return
	}
	a.op("ADD", imm(16*vecs), at)
	a.op("CMP", imm(4/vecs+1), count)
	a.op("BNE", label)
	a.op("ADD", imm(tile-64), at)
	a.mark(label)
	a.op("SUBS", "$1", count)
}

// fewPartNEON is 32 steps of k for some columns: even chains first, then odd ones; B's elements from V16 on, A's from V24 on.
func (a *asm) fewPartNEON(rows, vecs int) {
	chain := func(odd, r, i int) string { return a.v(odd*rows*vecs + r*vecs + i) }
	for i := range 2 * rows * vecs {
		a.fill(0, a.v(i))
	}
	for p := range 16 {
		for r := 0; r < rows && p%2 == 0; r++ {
			a.op("FMOVQ", fmt.Sprintf("%d(%s)", 8*p, leftNEON[r]), float(a.v(24+r)))
		}
		a.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+fewAhead), "PLDL1STRM")
		for i := range vecs {
			even, odd := a.v(16+2*i), a.v(17+2*i)
			a.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(odd))
			a.shifted(0x4F005400, "shl", 32+16, 16, even, odd)
			a.vvv(0x4E201C00, "and", "16b", odd, odd, a.v(28))
			for r := range rows {
				a.fmaLane(chain(0, r, i), even, a.v(24+r), p%2*2)
				a.fmaLane(chain(1, r, i), odd, a.v(24+r), p%2*2+1)
			}
		}
	}
	a.op("MOVD", "R13", "R8")
	for r := range rows {
		for i := range vecs {
			sum, c, mem := chain(0, r, i), a.v(16+i), fmt.Sprintf("%d(R8)", 16*i)
			a.op("FMOVQ", mem, float(c))
			a.vvv(0x4E20D400, "fadd", "4s", sum, sum, chain(1, r, i))
			a.vvv(0x4E20D400, "fadd", "4s", sum, sum, c)
			a.op("FMOVQ", float(sum), mem)
		}
		if r < rows-1 {
			a.op("ADD", "R9", "R8")
		}
	}
	a.op("ADD", imm(16*vecs), "R13")
}

func neonFewFile() []byte {
	a := newAsm(neon)
	for r := 1; r <= fewRows; r++ {
		a.fewNEON(r)
	}
	return a.finish()
}
