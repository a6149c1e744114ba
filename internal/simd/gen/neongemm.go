package main

import "fmt"

// skinnyColumns is the number of columns that NEON's skinny takes at once: with the four of one vector it would wait for its own sums.
const skinnyColumns = 16

// tileNEON is tile: rows × 16 elements of C in registers 4·row + vector, a row of B in V24–V27. Multiply-adds take their
// element of A out of a lane. A full tile does 24 multiply-adds for 5½ loads, in pairs where they lie side by side:
// at four multiply-adds a cycle neither loads nor the number of instructions is the bound.
func (a *asm) tileNEON(rows int) {
	frame := 64 * rows
	a.text(fmt.Sprintf("tile%dx", rows), frame, 65)
	a.args("stride+16", "R2", "b+24", "R7", "c+40", "R4", "ldc+48", "R5", "cols+56", "R6")
	a.op("LSL", "$2", "R2")
	a.op("LSL", "$2", "R5")
	a.mark("panel")
	a.args("k+0", "R0", "a+8", "R1")
	a.op("MOVD", "R7", "R3")
	a.op("MOVD", "R4", "R8") // where C's tile is: there, or on the stack when it is narrower
	a.op("MOVD", "R5", "R9")
	a.op("CMP", "$16", "R6")
	a.op("BGE", "whole")
	a.op("MOVD", fmt.Sprintf("$edge-%d(SP)", frame), "R8")
	a.op("MOVD", "$64", "R9")
	a.mark("whole")
	a.op("MOVBU", "load+64(FP)", "R10")
	a.op("CBZ", "R10", "zero")
	a.op("CMP", "$16", "R6")
	a.op("BGE", "read")
	a.edgeNEON(rows, "R4", "R5", "R8", "R9")
	a.mark("read")
	a.eachPair(rows, func(mem, pair string) { a.op("FLDPQ", mem, pair) })
	a.elseZero(4 * rows)
	a.prefetchNEON(rows)
	a.tileLoopNEON(rows)
	a.eachPair(rows, func(mem, pair string) { a.op("FSTPQ", pair, mem) })
	a.op("CMP", "$16", "R6")
	a.op("BLT", "edge")
	a.args("panel+32", "R11")
	a.op("ADD", "R11<<2", "R7")
	a.op("ADD", "$64", "R4")
	a.op("SUBS", "$16", "R6")
	a.op("BNE", "panel")
	a.op("RET")
	a.mark("edge")
	a.edgeNEON(rows, "R8", "R9", "R4", "R5")
	a.op("RET")
}

// prefetchNEON asks for the tile of C that comes next: to the right, or at the left end of the rows below.
func (a *asm) prefetchNEON(rows int) {
	a.op("ADD", "$64", "R4", "R11")
	a.op("CMP", "$16", "R6")
	a.op("BGT", "below")
	a.args("c+40", "R11")
	for range rows {
		a.op("ADD", "R5", "R11")
	}
	a.mark("below")
	for r := range rows {
		a.op("PRFM", "(R11)", "PLDL1KEEP")
		if r < rows-1 {
			a.op("ADD", "R5", "R11")
		}
	}
}

// args loads arguments: place, register, place, register …
func (a *asm) args(list ...string) {
	for i := 0; i < len(list); i += 2 {
		a.op("MOVD", list[i]+"(FP)", list[i+1])
	}
}

// eachPair walks R11 over the rows of C's tile.
func (a *asm) eachPair(rows int, f func(mem, pair string)) {
	a.op("MOVD", "R8", "R11")
	for r := range rows {
		for i := 0; i < 4; i += 2 {
			f(fmt.Sprintf("%d(R11)", 16*i), fmt.Sprintf("(F%d, F%d)", 4*r+i, 4*r+i+1))
		}
		if r < rows-1 {
			a.op("ADD", "R9", "R11")
		}
	}
}

// edgeNEON copies R6 elements of each row.
func (a *asm) edgeNEON(rows int, from, ldFrom, to, ldTo string) {
	row, element := a.fresh("row"), a.fresh("element")
	a.op("MOVD", from, "R11")
	a.op("MOVD", to, "R12")
	a.op("MOVD", imm(rows), "R13")
	a.mark(row)
	a.op("MOVD", "R6", "R14")
	a.op("MOVD", "R11", "R15")
	a.op("MOVD", "R12", "R16")
	a.mark(element)
	a.op("MOVWU.P", "4(R15)", "R17")
	a.op("MOVW.P", "R17", "4(R16)")
	a.op("SUBS", "$1", "R14")
	a.op("BNE", element)
	a.op("ADD", ldFrom, "R11")
	a.op("ADD", ldTo, "R12")
	a.op("SUBS", "$1", "R13")
	a.op("BNE", row)
}

// tileLoopNEON runs over k, four steps at a time and the rest one by one.
func (a *asm) tileLoopNEON(rows int) {
	full := rows == a.mr
	a.op("SUBS", "$4", "R0")
	a.op("BLT", "rest")
	a.mark("four")
	for u := 0; u < 4; u += 2 {
		if full { // two steps of a full panel are three vectors
			a.op("FLDPQ", fmt.Sprintf("%d(R1)", 48*u/2), "(F28, F29)")
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 48*u/2+32), "F30")
		}
		for s := range 2 {
			a.tileStepNEON(rows, u+s, func(r int) (string, int) {
				if full {
					return a.v(28 + (rows*s+r)/4), (rows*s + r) % 4
				}
				return a.v(28), r
			}, !full)
		}
	}
	if full {
		a.op("ADD", imm(16*rows), "R1")
	}
	a.op("ADD", "$256", "R3")
	a.op("SUBS", "$4", "R0")
	a.op("BGE", "four")
	a.mark("rest")
	a.op("ADDS", "$4", "R0")
	a.op("BEQ", "store")
	a.mark("one")
	a.tileStepNEON(rows, 0, func(r int) (string, int) { return a.v(28 + r/4), r % 4 }, true)
	a.op("ADD", "$64", "R3")
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "one")
	a.mark("store")
}

// tileStepNEON is step u of k; at says where A's elements are, loaded here if load.
func (a *asm) tileStepNEON(rows, u int, at func(r int) (string, int), load bool) {
	a.op("FLDPQ", fmt.Sprintf("%d(R3)", 64*u), "(F24, F25)")
	a.op("FLDPQ", fmt.Sprintf("%d(R3)", 64*u+32), "(F26, F27)")
	if load {
		a.op(map[int]string{6: "FMOVQ", 4: "FMOVQ", 2: "FMOVD", 1: "FMOVS"}[rows], "(R1)", "F28")
		if rows == 6 {
			a.op("FMOVD", "16(R1)", "F29")
		}
		a.op("ADD", "R2", "R1")
	}
	for r := range rows {
		x, l := at(r)
		for i := range 4 {
			a.fmaLane(a.v(4*r+i), a.v(24+i), x, l)
		}
	}
}

// turnNEON transposes V16–V19 as a 4 × 4 matrix; V20–V23 are used on the way.
func (a *asm) turnNEON() {
	for i := range 2 {
		x, y := a.v(16+2*i)+".S4", a.v(17+2*i)+".S4"
		a.op("VTRN1", y, x, a.v(20+2*i)+".S4")
		a.op("VTRN2", y, x, a.v(21+2*i)+".S4")
	}
	for i := range 2 {
		x, y := a.v(20+i)+".D2", a.v(22+i)+".D2"
		a.op("VZIP1", y, x, a.v(16+i)+".D2")
		a.op("VZIP2", y, x, a.v(18+i)+".D2")
	}
}

// rowsNEON are pointers to rows of B, or of what is turned.
var rowsNEON = []string{"R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R19", "R20", "R21", "R22", "R23", "R24"}

// pointRows sets n of them, step bytes apart.
func (a *asm) pointRows(first, step string, n int) {
	a.op("MOVD", first, rowsNEON[0])
	for i := 1; i < n; i++ {
		a.op("ADD", step, rowsNEON[i-1], rowsNEON[i])
	}
}

// skinnyNEON is skinny for 16 columns.
func (a *asm) skinnyNEON(rows int) {
	left := []string{"R1", "R5", "R6", "R7"} // rows of A
	a.text(fmt.Sprintf("skinny%dx", rows), 0, 57)
	a.args("k+0", "R0", "a+8", "R1", "lda+16", "R2", "b+24", "R25", "ldb+32", "R4")
	a.op("LSL", "$2", "R2")
	a.op("LSL", "$2", "R4")
	for r := 1; r < rows; r++ {
		a.op("ADD", "R2", left[r-1], left[r])
	}
	a.pointRows("R25", "R4", skinnyColumns)
	a.op("MOVBU", "load+56(FP)", "R25")
	a.op("CBZ", "R25", "zero")
	a.eachSkinnyNEON(rows, func(mem, pair string) { a.op("FLDPQ", mem, pair) })
	a.elseZero(4 * rows)
	a.mark("block")
	for r := range rows {
		a.op("FMOVQ.P", "16("+left[r]+")", float(a.v(24+r)))
	}
	for g := range 4 {
		for i := range 4 {
			a.op("FMOVQ.P", "16("+rowsNEON[4*g+i]+")", float(a.v(16+i)))
		}
		a.turnNEON()
		for p := range 4 {
			for r := range rows {
				a.fmaLane(a.v(4*r+g), a.v(16+p), a.v(24+r), p)
			}
		}
	}
	a.op("SUBS", "$4", "R0")
	a.op("BNE", "block")
	a.eachSkinnyNEON(rows, func(mem, pair string) { a.op("FSTPQ", pair, mem) })
	a.op("RET")
}

// eachSkinnyNEON walks R3 over the rows of C.
func (a *asm) eachSkinnyNEON(rows int, f func(mem, pair string)) {
	a.args("c+40", "R3", "ldc+48", "R25")
	for r := range rows {
		for i := 0; i < 4; i += 2 {
			f(fmt.Sprintf("%d(R3)", 16*i), fmt.Sprintf("(F%d, F%d)", 4*r+i, 4*r+i+1))
		}
		if r < rows-1 {
			a.op("ADD", "R25<<2", "R3")
		}
	}
}

// transposeNEON is transpose: a loop for each number of rows.
func (a *asm) transposeNEON() {
	a.text("transpose", 0, 48)
	a.args("dst+0", "R0", "stride+8", "R1", "src+16", "R2", "ld+24", "R3", "rows+32", "R4", "k+40", "R5")
	a.op("LSL", "$2", "R1")
	a.op("LSL", "$2", "R3")
	a.pointRows("R2", "R3", 4)
	for rows := 1; rows <= 4; rows++ {
		next, label := fmt.Sprintf("not%d", rows), fmt.Sprintf("rows%d", rows)
		if rows < 4 {
			a.op("CMP", imm(rows), "R4")
			a.op("BNE", next)
		}
		a.mark(label)
		for i := range 4 {
			a.op("FMOVQ.P", "16("+rowsNEON[i]+")", float(a.v(16+i)))
		}
		a.turnNEON()
		for p := range 4 {
			f := float(a.v(16 + p))
			switch rows {
			case 1:
				a.op("FMOVS", f, "(R0)")
			case 2:
				a.op("FMOVD", f, "(R0)")
			case 3:
				a.op("FMOVD", f, "(R0)")
				a.op("VMOV", a.v(16+p)+".S[2]", "R6")
				a.op("MOVW", "R6", "8(R0)")
			default:
				a.op("FMOVQ", f, "(R0)")
			}
			a.op("ADD", "R1", "R0")
		}
		a.op("SUBS", "$4", "R5")
		a.op("BNE", label)
		a.op("RET")
		if rows < 4 {
			a.mark(next)
		}
	}
}

// copyPanelNEON is copyPanel, with loops of their own for the widths of whole panels.
func (a *asm) copyPanelNEON() {
	a.text("copyPanel", 0, 48)
	a.args("dst+0", "R0", "stride+8", "R1", "src+16", "R2", "ld+24", "R3", "width+32", "R4", "k+40", "R5")
	a.op("LSL", "$2", "R1")
	a.op("LSL", "$2", "R3")
	loop := func(label string, body func()) {
		a.mark(label)
		body()
		a.op("ADD", "R1", "R0")
		a.op("ADD", "R3", "R2")
		a.op("SUBS", "$1", "R5")
		a.op("BNE", label)
		a.op("RET")
	}
	a.op("CMP", "$16", "R4")
	a.op("BNE", "not16")
	loop("wide", func() {
		for i := range 2 {
			a.op("FLDPQ", fmt.Sprintf("%d(R2)", 32*i), fmt.Sprintf("(F%d, F%d)", 2*i, 2*i+1))
		}
		for i := range 2 {
			a.op("FSTPQ", fmt.Sprintf("(F%d, F%d)", 2*i, 2*i+1), fmt.Sprintf("%d(R0)", 32*i))
		}
	})
	a.mark("not16")
	a.op("CMP", imm(a.mr), "R4")
	a.op("BNE", "other")
	loop("six", func() {
		a.op("FMOVQ", "(R2)", "F0")
		a.op("FMOVD", "16(R2)", "F1")
		a.op("FMOVQ", "F0", "(R0)")
		a.op("FMOVD", "F1", "16(R0)")
	})
	loop("other", func() {
		a.op("MOVD", "R4", "R6")
		a.op("MOVD", "R2", "R7")
		a.op("MOVD", "R0", "R8")
		a.mark("one")
		a.op("MOVWU.P", "4(R7)", "R9")
		a.op("MOVW.P", "R9", "4(R8)")
		a.op("SUBS", "$1", "R6")
		a.op("BNE", "one")
	})
}

func neonGemmFile() []byte {
	a := newAsm(neon)
	for _, r := range neon.tileRows() {
		a.tileNEON(r)
	}
	for r := 1; r <= skinnyRows; r++ {
		a.skinnyNEON(r)
	}
	a.transposeNEON()
	a.copyPanelNEON()
	return a.finish()
}

// elseZero ends sums that were loaded, and begins those at zero, the first n registers.
func (a *asm) elseZero(n int) {
	a.op("JMP", "begin")
	a.mark("zero")
	for i := range n {
		a.fill(0, a.v(i))
	}
	a.mark("begin")
}
