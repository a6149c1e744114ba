package main

import "fmt"

// fewVectors is the number of vectors of columns that NEON computes at once for this many rows. Each takes two
// registers per row, for the sums over even and over odd k.
func fewVectors(rows int) int {
	if rows > 2 {
		return 2
	}
	return 4
}

// leftNEON are pointers to up to four rows of A.
var leftNEON = []string{"R1", "R5", "R6", "R7"}

// neonFew is few in NEON. R3 points to the step in B, R12 to its panel, R15 to part of the panel, R13 to C; R14 counts
// the remaining panels.
type neonFew struct {
	*asm
	rows int
}

func (k neonFew) emit() {
	vecs := fewVectors(k.rows)
	k.text(fewName(k.rows, 1), 0, 64)
	k.op("MOVD", "FPCR", "R17")
	k.op("ORR", "$0x1000000", "R17", "R8") // subnormal inputs and results zero
	k.op("MOVD", "R8", "FPCR")
	loadArgs(k.asm, "steps+0", "R0", "a+8", "R1", "lda+16", "R2", "b+24", "R3", "c+32", "R4", "ldc+40", "R9",
		"panels+48", "R10", "stride+56", "R19")
	k.op("LSL", "$2", "R2")
	k.op("LSL", "$2", "R9")
	for r := 1; r < k.rows; r++ {
		k.op("ADD", "R2", leftNEON[r-1], leftNEON[r])
	}
	fill(k.asm, 0xFFFF0000, k.v(28))
	k.mark("step")
	k.op("MOVD", "R3", "R12")
	k.op("MOVD", "R4", "R13")
	k.op("MOVD", "R10", "R14")
	k.mark("panel")
	k.op("MOVD", "R12", "R15")
	k.op("MOVD", imm(8/vecs), "R16")
	k.mark("part")
	k.part(vecs)
	nextPart(k.asm, vecs, "R15", "R16")
	k.op("BNE", "part")
	k.op("ADD", "R19", "R12")
	k.op("SUBS", "$1", "R14")
	k.op("BNE", "panel")
	for r := range k.rows {
		k.op("ADD", "$128", leftNEON[r])
	}
	k.op("ADD", imm(panelStep), "R3")
	k.op("SUBS", "$1", "R0")
	k.op("BNE", "step")
	k.op("MOVD", "R17", "FPCR")
	k.op("RET")
}

// nextPart advances to the next columns of a panel, vecs vectors of the lines of a tile, and counts the remaining
// parts.
func nextPart(a *asm, vecs int, at, count string) {
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

// part is 32 elements of k for some columns. The sums over even k are in the first registers, then those over odd k; B
// is in V16 and up, A in V24 and up.
func (k neonFew) part(vecs int) {
	chain := func(odd, r, i int) string { return k.v(odd*k.rows*vecs + r*vecs + i) }
	for i := range 2 * k.rows * vecs {
		fill(k.asm, 0, k.v(i))
	}
	for p := range 16 {
		for r := 0; r < k.rows && p%2 == 0; r++ {
			k.op("FMOVQ", fmt.Sprintf("%d(%s)", 8*p, leftNEON[r]), float(k.v(24+r)))
		}
		k.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+fewAhead), "PLDL1STRM")
		for i := range vecs {
			even, odd := k.v(16+2*i), k.v(17+2*i)
			k.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(odd))
			k.use(shifted(0x4F005400, "shl", 32+16, 16, even, odd))
			k.use(vvv(0x4E201C00, "and", "16b", odd, odd, k.v(28)))
			for r := range k.rows {
				k.use(fmaLane(chain(0, r, i), even, k.v(24+r), p%2*2))
				k.use(fmaLane(chain(1, r, i), odd, k.v(24+r), p%2*2+1))
			}
		}
	}
	k.op("MOVD", "R13", "R8")
	for r := range k.rows {
		for i := range vecs {
			sum, c, mem := chain(0, r, i), k.v(16+i), fmt.Sprintf("%d(R8)", 16*i)
			k.op("FMOVQ", mem, float(c))
			k.use(vvv(0x4E20D400, "fadd", "4s", sum, sum, chain(1, r, i)))
			k.use(vvv(0x4E20D400, "fadd", "4s", sum, sum, c))
			k.op("FMOVQ", float(sum), mem)
		}
		if r < k.rows-1 {
			k.op("ADD", "R9", "R8")
		}
	}
	k.op("ADD", imm(16*vecs), "R13")
}

func neonFewFile() []byte {
	a := newAsm(neon)
	for r := 1; r <= fewRows; r++ {
		neonFew{a, r}.emit()
	}
	return a.finish()
}
