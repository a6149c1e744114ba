package main

import "fmt"

// skinnyColumns is the number of columns that skinny computes at once in NEON. With one vector of four, each
// multiply-add would wait for the previous one.
const skinnyColumns = 16

// neonTile is floatTile in NEON: rows × 16 elements of C in registers 4·row + vector, a row of B in V24–V27.
// Multiply-adds take the element of A from a lane. A full tile makes 24 multiply-adds for 5½ loads, in pairs where
// adjacent: at four multiply-adds per cycle neither loads nor issue width is the bound.
type neonTile struct {
	*asm
	rows int
}

func (k neonTile) emit() {
	frame := 64 * k.rows
	k.text(fmt.Sprintf("tile%dx", k.rows), frame, 65)
	loadArgs(k.asm, "stride+16", "R2", "b+24", "R7", "c+40", "R4", "ldc+48", "R5", "cols+56", "R6")
	k.op("LSL", "$2", "R2")
	k.op("LSL", "$2", "R5")
	k.mark("panel")
	loadArgs(k.asm, "k+0", "R0", "a+8", "R1")
	k.op("MOVD", "R7", "R3")
	k.op("MOVD", "R4", "R8") // the tile of C: in place, or on the stack if it is narrower than 16
	k.op("MOVD", "R5", "R9")
	k.op("CMP", "$16", "R6")
	k.op("BGE", "whole")
	k.op("MOVD", fmt.Sprintf("$edge-%d(SP)", frame), "R8")
	k.op("MOVD", "$64", "R9")
	k.mark("whole")
	k.op("MOVBU", "load+64(FP)", "R10")
	k.op("CBZ", "R10", "zero")
	k.op("CMP", "$16", "R6")
	k.op("BGE", "read")
	k.copyEdge("R4", "R5", "R8", "R9")
	k.mark("read")
	k.eachPair(func(mem, pair string) { k.op("FLDPQ", mem, pair) })
	elseZero(k.asm, 4*k.rows)
	k.prefetchC()
	k.loop()
	k.eachPair(func(mem, pair string) { k.op("FSTPQ", pair, mem) })
	k.op("CMP", "$16", "R6")
	k.op("BLT", "edge")
	loadArgs(k.asm, "panel+32", "R11")
	k.op("ADD", "R11<<2", "R7")
	k.op("ADD", "$64", "R4")
	k.op("SUBS", "$16", "R6")
	k.op("BNE", "panel")
	k.op("RET")
	k.mark("edge")
	k.copyEdge("R8", "R9", "R4", "R5")
	k.op("RET")
}

// prefetchC prefetches the next tile of C: to the right, or the first one of the rows below.
func (k neonTile) prefetchC() {
	k.op("ADD", "$64", "R4", "R11")
	k.op("CMP", "$16", "R6")
	k.op("BGT", "below")
	loadArgs(k.asm, "c+40", "R11")
	for range k.rows {
		k.op("ADD", "R5", "R11")
	}
	k.mark("below")
	for r := range k.rows {
		k.op("PRFM", "(R11)", "PLDL1KEEP")
		if r < k.rows-1 {
			k.op("ADD", "R5", "R11")
		}
	}
}

// eachPair walks R11 over the rows of C's tile.
func (k neonTile) eachPair(f func(mem, pair string)) {
	k.op("MOVD", "R8", "R11")
	for r := range k.rows {
		for i := 0; i < 4; i += 2 {
			f(fmt.Sprintf("%d(R11)", 16*i), fmt.Sprintf("(F%d, F%d)", 4*r+i, 4*r+i+1))
		}
		if r < k.rows-1 {
			k.op("ADD", "R9", "R11")
		}
	}
}

// copyEdge copies R6 elements of each row.
func (k neonTile) copyEdge(from, ldFrom, to, ldTo string) {
	row, element := k.fresh("row"), k.fresh("element")
	k.op("MOVD", from, "R11")
	k.op("MOVD", to, "R12")
	k.op("MOVD", imm(k.rows), "R13")
	k.mark(row)
	k.op("MOVD", "R6", "R14")
	k.op("MOVD", "R11", "R15")
	k.op("MOVD", "R12", "R16")
	k.mark(element)
	k.op("MOVWU.P", "4(R15)", "R17")
	k.op("MOVW.P", "R17", "4(R16)")
	k.op("SUBS", "$1", "R14")
	k.op("BNE", element)
	k.op("ADD", ldFrom, "R11")
	k.op("ADD", ldTo, "R12")
	k.op("SUBS", "$1", "R13")
	k.op("BNE", row)
}

// loop runs over k, four steps at a time and the rest one by one.
func (k neonTile) loop() {
	full := k.rows == k.mr
	k.op("SUBS", "$4", "R0")
	k.op("BLT", "rest")
	k.mark("four")
	for u := 0; u < 4; u += 2 {
		if full { // two steps of a full panel are three vectors
			k.op("FLDPQ", fmt.Sprintf("%d(R1)", 48*u/2), "(F28, F29)")
			k.op("FMOVQ", fmt.Sprintf("%d(R1)", 48*u/2+32), "F30")
		}
		for s := range 2 {
			k.step(u+s, func(r int) (string, int) {
				if full {
					return k.v(28 + (k.rows*s+r)/4), (k.rows*s + r) % 4
				}
				return k.v(28), r
			}, !full)
		}
	}
	if full {
		k.op("ADD", imm(16*k.rows), "R1")
	}
	k.op("ADD", "$256", "R3")
	k.op("SUBS", "$4", "R0")
	k.op("BGE", "four")
	k.mark("rest")
	k.op("ADDS", "$4", "R0")
	k.op("BEQ", "store")
	k.mark("one")
	k.step(0, func(r int) (string, int) { return k.v(28 + r/4), r % 4 }, true)
	k.op("ADD", "$64", "R3")
	k.op("SUBS", "$1", "R0")
	k.op("BNE", "one")
	k.mark("store")
}

// step is step u of k; at says where A's elements are, loaded here if load.
func (k neonTile) step(u int, at func(r int) (string, int), load bool) {
	k.op("FLDPQ", fmt.Sprintf("%d(R3)", 64*u), "(F24, F25)")
	k.op("FLDPQ", fmt.Sprintf("%d(R3)", 64*u+32), "(F26, F27)")
	if load {
		k.op(map[int]string{6: "FMOVQ", 4: "FMOVQ", 2: "FMOVD", 1: "FMOVS"}[k.rows], "(R1)", "F28")
		if k.rows == 6 {
			k.op("FMOVD", "16(R1)", "F29")
		}
		k.op("ADD", "R2", "R1")
	}
	for r := range k.rows {
		x, l := at(r)
		for i := range 4 {
			k.use(fmaLane(k.v(4*r+i), k.v(24+i), x, l))
		}
	}
}

// turnNEON transposes the 4 × 4 matrix in V16–V19; V20–V23 are temporaries.
func turnNEON(a *asm) {
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

// rowsNEON are pointers to rows of B, or of the matrix that is transposed.
var rowsNEON = []string{"R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R19", "R20", "R21",
	"R22", "R23", "R24"}

// pointRows sets n of them to rows that are step bytes apart.
func pointRows(a *asm, first, step string, n int) {
	a.op("MOVD", first, rowsNEON[0])
	for i := 1; i < n; i++ {
		a.op("ADD", step, rowsNEON[i-1], rowsNEON[i])
	}
}

// neonSkinny is skinnyKernel for 16 columns.
type neonSkinny struct {
	*asm
	rows int
}

func (k neonSkinny) emit() {
	left := []string{"R1", "R5", "R6", "R7"} // rows of A
	k.text(fmt.Sprintf("skinny%dx", k.rows), 0, 57)
	loadArgs(k.asm, "k+0", "R0", "a+8", "R1", "lda+16", "R2", "b+24", "R25", "ldb+32", "R4")
	k.op("LSL", "$2", "R2")
	k.op("LSL", "$2", "R4")
	for r := 1; r < k.rows; r++ {
		k.op("ADD", "R2", left[r-1], left[r])
	}
	pointRows(k.asm, "R25", "R4", skinnyColumns)
	k.op("MOVBU", "load+56(FP)", "R25")
	k.op("CBZ", "R25", "zero")
	k.eachPair(func(mem, pair string) { k.op("FLDPQ", mem, pair) })
	elseZero(k.asm, 4*k.rows)
	k.mark("block")
	for r := range k.rows {
		k.op("FMOVQ.P", "16("+left[r]+")", float(k.v(24+r)))
	}
	for g := range 4 {
		for i := range 4 {
			k.op("FMOVQ.P", "16("+rowsNEON[4*g+i]+")", float(k.v(16+i)))
		}
		turnNEON(k.asm)
		for p := range 4 {
			for r := range k.rows {
				k.use(fmaLane(k.v(4*r+g), k.v(16+p), k.v(24+r), p))
			}
		}
	}
	k.op("SUBS", "$4", "R0")
	k.op("BNE", "block")
	k.eachPair(func(mem, pair string) { k.op("FSTPQ", pair, mem) })
	k.op("RET")
}

// eachPair walks R3 over the rows of C.
func (k neonSkinny) eachPair(f func(mem, pair string)) {
	loadArgs(k.asm, "c+40", "R3", "ldc+48", "R25")
	for r := range k.rows {
		for i := 0; i < 4; i += 2 {
			f(fmt.Sprintf("%d(R3)", 16*i), fmt.Sprintf("(F%d, F%d)", 4*r+i, 4*r+i+1))
		}
		if r < k.rows-1 {
			k.op("ADD", "R25<<2", "R3")
		}
	}
}

// transposeNEON is transpose: a loop for each number of rows.
func transposeNEON(a *asm) {
	a.text("transpose", 0, 48)
	loadArgs(a, "dst+0", "R0", "stride+8", "R1", "src+16", "R2", "ld+24", "R3", "rows+32", "R4", "k+40", "R5")
	a.op("LSL", "$2", "R1")
	a.op("LSL", "$2", "R3")
	pointRows(a, "R2", "R3", 4)
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
		turnNEON(a)
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

// copyPanelNEON is copyPanel, with separate loops for the widths of whole panels.
func copyPanelNEON(a *asm) {
	a.text("copyPanel", 0, 48)
	loadArgs(a, "dst+0", "R0", "stride+8", "R1", "src+16", "R2", "ld+24", "R3", "width+32", "R4", "k+40", "R5")
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
		neonTile{a, r}.emit()
	}
	for r := 1; r <= skinnyRows; r++ {
		neonSkinny{a, r}.emit()
	}
	transposeNEON(a)
	copyPanelNEON(a)
	return a.finish()
}

// elseZero ends the branch that loaded the sums and adds the one that clears them, the first n registers.
func elseZero(a *asm, n int) {
	a.op("JMP", "begin")
	a.mark("zero")
	for i := range n {
		fill(a, 0, a.v(i))
	}
	a.mark("begin")
}
