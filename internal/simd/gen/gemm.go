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

// tileSignature is the parameters of a tile, see simd.tile.
const tileSignature = "(k int, a *float32, stride int, b *float32, panel int, c *float32, ldc, cols int, load bool)"

// aKind says how a tile reads A: from a panel of PackA, or row by row as the matrix lies in memory.
type aKind struct {
	name string
	rows bool // stride is the distance of rows, not of steps of k
}

var (
	packedA = aKind{name: "tile"}
	rowsA   = aKind{name: "plain", rows: true}
)

// aKinds are the kinds that an instruction set has tiles for. Fourteen rows of AVX-512 have more addresses than there are registers.
func (i isa) aKinds() []aKind {
	if i == avx2 {
		return []aKind{packedA, rowsA}
	}
	return []aKind{packedA}
}

// tile emits one matrix tile: rows × 2 vectors of C in registers 0…, a row of B in the next two, one element of A
// spread over another. Per step of k: 2 loads of B, and a broadcast and 2 multiply-adds for each row.
// At 14 rows AVX-512 does 28 multiply-adds for 16 loads, so the two multipliers are the bound; and, beside a neighbour on the same core,
// the number of instructions. Hence most rows have their element spread by the multiply-adds themselves, in place of a broadcast: an
// instruction less for a load more, until the load ports saturate.
//
// The outer loop runs over panels of B: SI, BX and DI are at the operands, R11 and R12 where A and B's panel begin, AX and DX are free.
func (a *asm) tile(kind aKind, rows int) {
	lo, nr := a.regs-2, 2*a.lanes // lo: masks, in the registers that later hold A's element
	a.text(fmt.Sprintf("%s%dx", kind.name, rows), 0, 65)
	for _, arg := range [][2]string{{"a+8", "R11"}, {"stride+16", "R8"}, {"b+24", "R12"}, {"c+40", "DI"}, {"ldc+48", "R9"}, {"cols+56", "R13"}} {
		a.op("MOVQ", arg[0]+"(FP)", arg[1])
	}
	a.op("SHLQ", "$2", "R8")
	a.op("SHLQ", "$2", "R9")
	a.mark("panel")
	a.op("MOVQ", "DI", "DX")
	a.op("MOVBLZX", "load+64(FP)", "AX")
	a.op("TESTL", "AX", "AX")
	a.op("JZ", "zero")
	a.op("CMPQ", "R13", imm(nr))
	a.op("JLT", "edge")
	a.eachC(rows, func(_ int, mem, reg string) { a.op("VMOVUPS", mem, reg) })
	a.op("JMP", "begin")
	a.mark("edge")
	a.edgeMasks(lo)
	a.eachC(rows, func(i int, mem, reg string) { a.loadMasked(i, lo, mem, reg) })
	a.op("JMP", "begin")
	a.mark("zero")
	for i := range 2 * rows {
		a.op("VXORPS", a.v(i), a.v(i), a.v(i))
	}
	a.mark("begin")
	a.prefetchC(rows)
	a.op("MOVQ", "R11", "SI")
	a.op("MOVQ", "R12", "BX")
	a.op("MOVQ", "k+0(FP)", "CX")
	if kind.rows { // the third and fifth rows' distances: the others are multiples that an address can have
		a.op("LEAQ", "(R8)(R8*2)", "DX")
		a.op("LEAQ", "(R8)(R8*4)", "AX")
	} else {
		a.op("MOVQ", "R8", "R10")
		a.op("IMULQ", "CX", "R10") // from one panel of A to the next
	}
	a.tileLoop(kind, rows)
	a.op("MOVQ", "DI", "DX")
	a.op("CMPQ", "R13", imm(nr))
	a.op("JLT", "last")
	a.eachC(rows, func(_ int, mem, reg string) { a.op("VMOVUPS", reg, mem) })
	a.op("MOVQ", "panel+32(FP)", "AX")
	a.op("LEAQ", "(R12)(AX*4)", "R12")
	a.op("ADDQ", imm(4*nr), "DI")
	a.op("SUBQ", imm(nr), "R13")
	a.op("JNZ", "panel")
	a.op("VZEROUPPER")
	a.op("RET")
	a.mark("last")
	a.edgeMasks(lo)
	a.op("MOVQ", "DI", "DX")
	a.eachC(rows, func(i int, mem, reg string) { a.storeMasked(i, lo, reg, mem) })
	a.op("VZEROUPPER")
	a.op("RET")
}

// edgeMasks are the lane masks of the last R13 columns. It uses AX, CX, DX, of which DX is at C again afterwards.
func (a *asm) edgeMasks(lo int) {
	a.op("MOVQ", "R13", "CX")
	a.laneMasks(lo)
	a.op("MOVQ", "DI", "DX")
}

// tileLoop runs over k, four steps at a time and the rest one by one.
func (a *asm) tileLoop(kind aKind, rows int) {
	a.op("SUBQ", "$4", "CX")
	a.op("JLT", "rest")
	a.mark("four")
	for u := range 4 {
		a.tileStep(kind, rows, u)
	}
	a.tileNext(kind, rows, 4)
	a.op("SUBQ", "$4", "CX")
	a.op("JGE", "four")
	a.mark("rest")
	a.op("ADDQ", "$4", "CX")
	a.op("JZ", "store")
	a.mark("one")
	a.tileStep(kind, rows, 0)
	a.tileNext(kind, rows, 1)
	a.op("DECQ", "CX")
	a.op("JNZ", "one")
	a.mark("store")
}

// tileNext moves on by steps of k. Full panels of A are as wide as they are high; of others the width is an argument, added step by step.
func (a *asm) tileNext(kind aKind, rows, steps int) {
	switch {
	case kind.rows:
		a.op("ADDQ", imm(4*steps), "SI")
	case rows == a.mr:
		a.op("ADDQ", imm(4*rows*steps), "SI")
	}
	a.op("ADDQ", imm(2*steps*a.bytes()), "BX")
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

// prefetchC asks for the tile that comes next, whose elements are wanted before anything else: to the right, or at the left end of the rows below.
func (a *asm) prefetchC(rows int) {
	below := a.fresh("below")
	a.op("LEAQ", fmt.Sprintf("%d(DI)", 2*a.bytes()), "DX")
	a.op("CMPQ", "R13", imm(2*a.lanes))
	a.op("JGT", below)
	a.op("MOVQ", "c+40(FP)", "DX")
	for range rows {
		a.op("ADDQ", "R9", "DX")
	}
	a.mark(below)
	for r := range rows {
		for i := 0; i < 2*a.bytes(); i += 64 {
			a.op("PREFETCHT0", fmt.Sprintf("%d(DX)", i))
		}
		if r < rows-1 {
			a.op("ADDQ", "R9", "DX")
		}
	}
}

// embedded is how many of fourteen rows of a full tile do without a broadcast.
const embedded = 10

// strides are the addresses of six rows, R8 bytes apart.
var strides = []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(DX*1)", "(SI)(R8*4)", "(SI)(AX*1)"}

// tileStep is step u of k. Two registers take turns with A's elements.
func (a *asm) tileStep(kind aKind, rows, u int) {
	b0, b1 := a.v(a.regs-4), a.v(a.regs-3)
	a.op("VMOVUPS", fmt.Sprintf("%d(BX)", 2*u*a.bytes()), b0)
	a.op("VMOVUPS", fmt.Sprintf("%d(BX)", (2*u+1)*a.bytes()), b1)
	full := rows == a.mr && !kind.rows
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
		switch {
		case full:
			mem = fmt.Sprintf("%d(SI)", 4*(u*rows+r))
		case kind.rows:
			mem = fmt.Sprintf("%d", 4*u) + strides[r]
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
	if !full && !kind.rows {
		a.op("ADDQ", "R8", "SI")
	}
}

func gemmFile(i isa) []byte {
	a := newAsm(i)
	for _, kind := range i.aKinds() {
		for _, r := range i.tileRows() {
			a.tile(kind, r)
		}
	}
	for r := 1; r <= skinnyRows; r++ {
		a.skinny(r)
	}
	a.transpose()
	a.copyPanel()
	return a.finish()
}
