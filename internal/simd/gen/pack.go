package main

import "fmt"

// transpose: dst[p·stride+i] = src[i·ld+p] for i < rows ≤ lanes, p < k, k a multiple of 4. It reads all lanes' rows,
// stored or not. R8 is the row pitch, R9 three times that; each base is 4 rows further than the previous one.
func transpose(a *asm) {
	bases := []string{"SI", "R10", "R11", "R12"}[:a.lanes/4]
	a.text("transpose", 0, 48)
	a.op("MOVQ", "rows+32(FP)", "CX")
	edge{a, 14}.set()
	loadArgs(a, "dst+0", "DI", "stride+8", "BX", "src+16", "SI", "ld+24", "R8", "k+40", "CX")
	a.op("SHLQ", "$2", "BX")
	a.op("SHLQ", "$2", "R8")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	for i := 1; i < len(bases); i++ {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i-1]), bases[i])
	}
	turn(a, bases, func(_ int, reg string) {
		edge{a, 14}.store(0, reg, "(DI)")
		a.op("ADDQ", "BX", "DI")
	}, func(int) {})
	a.ret()
}

// turn gives each of CX columns of the rows at bases to sink, as a register with an element of every row, in groups
// of 16 (AVX-512) and of 4. sink gets the column's number within its group; after a group, whose length along a row is
// bytes, advance moves what else walks along.
func turn(a *asm, bases []string, sink func(p int, reg string), advance func(bytes int)) {
	step := func(bytes int) {
		for _, b := range bases {
			a.op("ADDQ", imm(bytes), b)
		}
		advance(bytes)
	}
	if a.wide() {
		a.mark("line")
		a.op("SUBQ", "$16", "CX")
		a.op("JLT", "fours")
		turnLines(a, bases, sink)
		step(64)
		a.op("JMP", "line")
		a.mark("fours")
		a.op("ADDQ", "$16", "CX")
	}
	a.mark("block")
	a.op("SUBQ", "$4", "CX")
	a.op("JLT", "done")
	turnFours(a, bases, sink)
	step(16)
	a.op("JMP", "block")
	a.mark("done")
}

// rowAddr are the four rows of one base.
var rowAddr = []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R9*1)"}

// turnLines turns 16 rows × 16 elements at a time, so that each cache line is touched once: rows that lie a
// power of two apart share a few places in the first cache and would push each other out. 64 shuffles for 1 KiB.
func turnLines(a *asm, bases []string, sink func(p int, reg string)) {
	for i := range 16 {
		row := fmt.Sprintf(rowAddr[i%4], bases[i/4])
		a.op("VMOVUPS", row, a.v(i))
		a.op("PREFETCHT0", "256"+row)
	}
	turnRegisters(a)
	for p := range 16 {
		sink(p, a.v(p))
	}
}

// turnRegisters transposes registers 0–15 as a 16 × 16 matrix of 32-bit elements; 16–19 are used on the way.
func turnRegisters(a *asm) {
	// Pairs, then fours within 128 bits: then register 4q+e holds, in its part s, element 4s+e of rows 4q…4q+3.
	t0, t1, t2, t3 := a.v(16), a.v(17), a.v(18), a.v(19)
	for q := 0; q < 16; q += 4 {
		a.op("VUNPCKLPS", a.v(q+1), a.v(q), t0)
		a.op("VUNPCKHPS", a.v(q+1), a.v(q), t1)
		a.op("VUNPCKLPS", a.v(q+3), a.v(q+2), t2)
		a.op("VUNPCKHPS", a.v(q+3), a.v(q+2), t3)
		a.op("VUNPCKLPD", t2, t0, a.v(q))
		a.op("VUNPCKHPD", t2, t0, a.v(q+1))
		a.op("VUNPCKLPD", t3, t1, a.v(q+2))
		a.op("VUNPCKHPD", t3, t1, a.v(q+3))
	}
	// A 4 × 4 transpose of the 128-bit parts for each e.
	for e := range 4 {
		a.op("VSHUFF32X4", "$0x44", a.v(4+e), a.v(e), t0)    // q0s0 q0s1 q1s0 q1s1
		a.op("VSHUFF32X4", "$0xEE", a.v(4+e), a.v(e), t1)    // q0s2 q0s3 q1s2 q1s3
		a.op("VSHUFF32X4", "$0x44", a.v(12+e), a.v(8+e), t2) // q2s0 q2s1 q3s0 q3s1
		a.op("VSHUFF32X4", "$0xEE", a.v(12+e), a.v(8+e), t3) // q2s2 q2s3 q3s2 q3s3
		a.op("VSHUFF32X4", "$0x88", t2, t0, a.v(e))
		a.op("VSHUFF32X4", "$0xDD", t2, t0, a.v(4+e))
		a.op("VSHUFF32X4", "$0x88", t3, t1, a.v(8+e))
		a.op("VSHUFF32X4", "$0xDD", t3, t1, a.v(12+e))
	}
}

// turnFours transposes all rows × 4 elements. Rows i, i+4, i+8 … are loaded into one register, 4 elements each; then
// the four registers are transposed within each 128 bits.
func turnFours(a *asm, bases []string, sink func(p int, reg string)) {
	insert := "VINSERTF128"
	if a.wide() {
		insert = "VINSERTF32X4"
	}
	for r, addr := range rowAddr {
		a.op("VMOVUPS", fmt.Sprintf(addr, bases[0]), fmt.Sprintf("X%d", r))
		for g := 1; g < len(bases); g++ {
			a.op(insert, imm(g), fmt.Sprintf(addr, bases[g]), a.v(r), a.v(r))
		}
		if !a.wide() {
			for _, b := range bases {
				a.op("PREFETCHT0", "256"+fmt.Sprintf(addr, b))
			}
		}
	}
	a.op("VUNPCKLPS", a.v(1), a.v(0), a.v(4))
	a.op("VUNPCKHPS", a.v(1), a.v(0), a.v(5))
	a.op("VUNPCKLPS", a.v(3), a.v(2), a.v(6))
	a.op("VUNPCKHPS", a.v(3), a.v(2), a.v(7))
	a.op("VUNPCKLPD", a.v(6), a.v(4), a.v(0))
	a.op("VUNPCKHPD", a.v(6), a.v(4), a.v(1))
	a.op("VUNPCKLPD", a.v(7), a.v(5), a.v(2))
	a.op("VUNPCKHPD", a.v(7), a.v(5), a.v(3))
	for r := range 4 {
		sink(r, a.v(r))
	}
}

// copyPanel: dst[p·stride+i] = src[p·ld+i] for i < width ≤ 2 vectors, p < k.
func copyPanel(a *asm) {
	a.text("copyPanel", 0, 48)
	a.op("MOVQ", "width+32(FP)", "CX")
	edge{a, 14}.set()
	loadArgs(a, "dst+0", "DI", "stride+8", "BX", "src+16", "SI", "ld+24", "R8", "width+32", "AX", "k+40", "CX")
	a.op("SHLQ", "$2", "BX")
	a.op("SHLQ", "$2", "R8")
	a.op("MOVQ", "R8", "R9")
	a.op("SHLQ", "$4", "R9") // rows ahead: too far apart for the processor's own prefetching
	if !a.wide() {           // masked stores are slow, on some processors very
		copyRows(a, 6, "six", "VMOVUPS", "X", "(%s)", "VMOVSD", "X", "16(%s)")
		copyRows(a, 16, "sixteen", "VMOVUPS", "Y", "(%s)", "VMOVUPS", "Y", "32(%s)")
	}
	for _, vectors := range []int{1, 2} {
		if vectors == 1 {
			a.op("CMPQ", "AX", imm(a.lanes))
			a.op("JGT", "two")
		}
		label := []string{"", "one", "two"}[vectors]
		a.mark(label)
		for i := range vectors {
			a.op("PREFETCHT0", fmt.Sprintf("%d(SI)(R9*1)", i*a.bytes()))
			edge{a, 14}.load(i, fmt.Sprintf("%d(SI)", i*a.bytes()), a.v(i))
			edge{a, 14}.store(i, a.v(i), fmt.Sprintf("%d(DI)", i*a.bytes()))
		}
		nextRow(a, label)
	}
}

// copyRows is copyPanel where the width is this one: two moves, each an instruction, the kind of its register and its
// place in the row.
func copyRows(a *asm, width int, label string, moves ...string) {
	a.op("CMPQ", "AX", imm(width))
	a.op("JNE", "not"+label)
	a.mark(label)
	a.op("PREFETCHT0", "(SI)(R9*1)")
	for i := 0; i < len(moves); i += 3 {
		reg := fmt.Sprintf("%s%d", moves[i+1], i/3)
		a.op(moves[i], fmt.Sprintf(moves[i+2], "SI"), reg)
		a.op(moves[i], reg, fmt.Sprintf(moves[i+2], "DI"))
	}
	nextRow(a, label)
	a.mark("not" + label)
}

// nextRow ends a loop over rows, and the kernel.
func nextRow(a *asm, label string) {
	a.op("ADDQ", "R8", "SI")
	a.op("ADDQ", "BX", "DI")
	a.again(label, "CX")
	a.ret()
}
