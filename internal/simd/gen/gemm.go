package main

import "fmt"

// ahead is how far B is fetched before its use, in bytes: it streams from the second cache. The largest tile of AVX-512 takes so long over
// a line that the processor's own fetching does.
const ahead = 1024

// tileRows are the heights of the matrix tiles; any number of rows is a sum of them.
func (i isa) tileRows() []int {
	if i.wide() {
		return []int{14, 8, 4, 2, 1}
	}
	return []int{6, 4, 2, 1}
}

// tile emits one matrix tile: rows × 2 vectors of C in registers 0…, a row of B in the next two, one element of A
// spread over another. Per step of k: 2 loads of B, and a broadcast and 2 multiply-adds for each row.
// At 14 rows AVX-512 does 28 multiply-adds for 16 loads, so the two multipliers are the bound; and, beside a neighbour on the same core,
// the number of instructions. Hence most rows have their element spread by the multiply-adds themselves, in place of a broadcast: an
// instruction less for a load more, as far as loads are to be had.
func (a *asm) tile(rows int) {
	lo := a.regs - 2 // masks, in the registers that later hold A's element
	a.text(fmt.Sprintf("tile%dx", rows), 0, 72)
	a.op("MOVQ", "cols+48(FP)", "CX")
	a.laneMasks(lo)
	a.op("MOVQ", "a+8(FP)", "SI")
	a.op("MOVQ", "stride+16(FP)", "R8")
	a.op("MOVQ", "b+24(FP)", "BX")
	a.op("MOVQ", "c+32(FP)", "DI")
	a.op("MOVQ", "ldc+40(FP)", "R9")
	a.op("MOVQ", "k+0(FP)", "CX")
	a.op("SHLQ", "$2", "R8")
	a.op("SHLQ", "$2", "R9")
	a.op("MOVQ", "DI", "DX")
	a.op("MOVBLZX", "load+56(FP)", "AX")
	a.op("TESTL", "AX", "AX")
	a.op("JZ", "zero")
	a.eachC(rows, func(i int, mem, reg string) { a.loadMasked(i, lo, mem, reg) })
	a.op("JMP", "begin")
	a.mark("zero")
	for i := range 2 * rows {
		a.op("VXORPS", a.v(i), a.v(i), a.v(i))
	}
	a.mark("begin")
	a.prefetchC(rows)
	a.op("MOVQ", "R8", "R10")
	a.op("IMULQ", "CX", "R10") // from one panel of A to the next
	a.tileLoop(rows)
	if !a.wide() {
		a.op("MOVQ", "cols+48(FP)", "CX")
		a.laneMasks(lo)
	}
	a.op("MOVQ", "DI", "DX")
	a.eachC(rows, func(i int, mem, reg string) { a.storeMasked(i, lo, reg, mem) })
	a.op("VZEROUPPER")
	a.op("RET")
}

// tileLoop runs over k, four steps at a time and the rest one by one.
func (a *asm) tileLoop(rows int) {
	a.op("SUBQ", "$4", "CX")
	a.op("JLT", "rest")
	a.mark("four")
	for u := range 4 {
		a.tileStep(rows, u)
	}
	a.tileNext(rows, 4)
	a.op("SUBQ", "$4", "CX")
	a.op("JGE", "four")
	a.mark("rest")
	a.op("ADDQ", "$4", "CX")
	a.op("JZ", "store")
	a.mark("one")
	a.tileStep(rows, 0)
	a.tileNext(rows, 1)
	a.op("DECQ", "CX")
	a.op("JNZ", "one")
	a.mark("store")
}

// tileNext moves on by steps of k. Full panels of A are as wide as they are high; of others the width is an argument, added step by step.
func (a *asm) tileNext(rows, steps int) {
	if rows == a.mr {
		a.op("ADDQ", fmt.Sprintf("$%d", 4*rows*steps), "SI")
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 2*steps*a.bytes()), "BX")
}

// eachC walks DX over the rows of C.
func (a *asm) eachC(rows int, f func(i int, mem, reg string)) {
	for r := range rows {
		for i := range 2 {
			f(i, fmt.Sprintf("%d(DX)", i*a.bytes()), a.v(2*r+i))
		}
		if r < rows-1 {
			a.op("ADDQ", "R9", "DX")
		}
	}
}

// prefetchC asks for the tile that comes next: its elements are wanted before anything else.
func (a *asm) prefetchC(rows int) {
	a.op("MOVQ", "next+64(FP)", "DX")
	for range rows {
		for i := 0; i < 2*a.bytes(); i += 64 {
			a.op("PREFETCHT0", fmt.Sprintf("%d(DX)", i))
		}
		a.op("ADDQ", "R9", "DX")
	}
}

// embedded is how many of fourteen rows of a full tile do without a broadcast.
const embedded = 10

// tileStep is step u of k. Two registers take turns with A's elements.
func (a *asm) tileStep(rows, u int) {
	b0, b1 := a.v(a.regs-4), a.v(a.regs-3)
	a.op("VMOVUPS", fmt.Sprintf("%d(BX)", 2*u*a.bytes()), b0)
	a.op("VMOVUPS", fmt.Sprintf("%d(BX)", (2*u+1)*a.bytes()), b1)
	full := rows == a.mr
	if !full || !a.wide() {
		for i := 0; i < 2*a.bytes(); i += 64 {
			a.op("PREFETCHT0", fmt.Sprintf("%d(BX)", 2*u*a.bytes()+i+ahead))
		}
	}
	if full && 64*u < 16*rows {
		a.op("PREFETCHT1", fmt.Sprintf("%d(SI)(R10*1)", 64*u)) // the next panel of A, from the third cache to the second
	}
	for r := range rows {
		mem := fmt.Sprintf("%d(SI)", 4*r)
		if full {
			mem = fmt.Sprintf("%d(SI)", 4*(u*rows+r))
		}
		if full && a.wide() && (r+1)*embedded/rows > r*embedded/rows {
			a.op("VFMADD231PS.BCST", mem, b0, a.v(2*r))
			a.op("VFMADD231PS.BCST", mem, b1, a.v(2*r+1))
			continue
		}
		t := a.v(a.regs - 2 + r%2)
		a.op("VBROADCASTSS", mem, t)
		a.op("VFMADD231PS", b0, t, a.v(2*r))
		a.op("VFMADD231PS", b1, t, a.v(2*r+1))
	}
	if !full {
		a.op("ADDQ", "R8", "SI")
	}
}

func gemmFile(i isa) []byte {
	a := newAsm(i)
	for _, r := range i.tileRows() {
		a.tile(r)
	}
	for r := 1; r <= skinnyRows; r++ {
		a.skinny(r)
	}
	a.transpose()
	a.copyPanel()
	return a.finish()
}
