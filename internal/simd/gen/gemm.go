package main

import "fmt"

// ahead is how far B is fetched before its use, in bytes: it streams from the second cache. The largest tile of AVX-512
// takes so long over a line that the processor's own fetching does.
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

// aKind is how a tile reads A: from a panel of PackA, row by row from the unpacked matrix, or step by step from an
// unpacked matrix [k,m]. Packed tiles of fewer than mr rows have the distance of steps as an argument, so they serve
// for the last kind too.
type aKind struct {
	name  string
	rows  bool // stride is the distance of rows, not of steps of k
	apart bool // steps of k are any distance apart, in a tile of mr rows
}

var (
	packedA = aKind{name: "tile"}
	rowsA   = aKind{name: "plain", rows: true}
	turnedA = aKind{name: "turned", apart: true}
)

// aKinds are the kinds that an instruction set has tiles for. Fourteen rows of AVX-512 have more addresses than there
// are registers.
func (i isa) aKinds() []aKind {
	switch i {
	case avx2:
		return []aKind{packedA, rowsA, turnedA}
	case avx512:
		return []aKind{packedA, turnedA}
	}
	return []aKind{packedA}
}

// tileKind is the kind of the tile that serves for a kind and number of rows.
func (i isa) tileKind(kind aKind, rows int) aKind {
	if kind.apart && rows < i.mr {
		return packedA
	}
	return kind
}

// floatTile is one matrix tile: rows × 2 vectors of C in registers 0…, a row of B in the next two, one element of A
// spread over another. Per step of k: 2 loads of B, and a broadcast and 2 multiply-adds for each row.
// At 14 rows AVX-512 does 28 multiply-adds for 16 loads, so the two multipliers are the bound; and, beside a neighbour
// on the same core, the number of instructions. Hence most rows have their element spread by the multiply-adds
// themselves, in place of a broadcast: an instruction less for a load more, until the load ports saturate.
//
// The outer loop runs over panels of B: SI, BX and DI are at the operands, R11 and R12 where A and B's panel begin, AX
// and DX are free.
type floatTile struct {
	*asm
	kind aKind
	rows int
}

func (k floatTile) emit() {
	lo, nr := k.regs-2, 2*k.lanes // lo: masks, in the registers that later hold A's element
	k.text(fmt.Sprintf("%s%dx", k.kind.name, k.rows), 0, 65)
	for _, arg := range [][2]string{{"a+8", "R11"}, {"stride+16", "R8"}, {"b+24", "R12"}, {"c+40", "DI"},
		{"ldc+48", "R9"}, {"cols+56", "R13"}} {
		k.op("MOVQ", arg[0]+"(FP)", arg[1])
	}
	k.op("SHLQ", "$2", "R8")
	k.op("SHLQ", "$2", "R9")
	k.mark("panel")
	k.op("MOVQ", "DI", "DX")
	k.op("MOVBLZX", "load+64(FP)", "AX")
	k.op("TESTL", "AX", "AX")
	k.op("JZ", "zero")
	k.op("CMPQ", "R13", imm(nr))
	k.op("JLT", "edge")
	k.eachC(func(_ int, mem, reg string) { k.op("VMOVUPS", mem, reg) })
	k.op("JMP", "begin")
	k.mark("edge")
	k.edgeMasks(lo)
	k.eachC(func(i int, mem, reg string) { edge{k.asm, lo}.load(i, mem, reg) })
	k.op("JMP", "begin")
	k.mark("zero")
	for i := range 2 * k.rows {
		k.op("VXORPS", k.v(i), k.v(i), k.v(i))
	}
	k.mark("begin")
	k.prefetchC()
	k.op("MOVQ", "R11", "SI")
	k.op("MOVQ", "R12", "BX")
	k.op("MOVQ", "k+0(FP)", "CX")
	if k.kind.rows { // the third and fifth rows' distances: the others are multiples that an address can have
		k.op("LEAQ", "(R8)(R8*2)", "DX")
		k.op("LEAQ", "(R8)(R8*4)", "AX")
	} else {
		k.op("MOVQ", "R8", "R10")
		k.op("IMULQ", "CX", "R10") // from one panel of A to the next
	}
	k.loop()
	k.op("MOVQ", "DI", "DX")
	k.op("CMPQ", "R13", imm(nr))
	k.op("JLT", "last")
	k.eachC(func(_ int, mem, reg string) { k.op("VMOVUPS", reg, mem) })
	k.op("MOVQ", "panel+32(FP)", "AX")
	k.op("LEAQ", "(R12)(AX*4)", "R12")
	k.op("ADDQ", imm(4*nr), "DI")
	k.op("SUBQ", imm(nr), "R13")
	k.op("JNZ", "panel")
	k.ret()
	k.mark("last")
	k.edgeMasks(lo)
	k.op("MOVQ", "DI", "DX")
	k.eachC(func(i int, mem, reg string) { edge{k.asm, lo}.store(i, reg, mem) })
	k.ret()
}

// edgeMasks are the lane masks of the last R13 columns. It uses AX, CX, DX, of which DX is at C again afterwards.
func (k floatTile) edgeMasks(lo int) {
	k.op("MOVQ", "R13", "CX")
	edge{k.asm, lo}.set()
	k.op("MOVQ", "DI", "DX")
}

// loop runs over k, four steps at a time and the rest one by one.
func (k floatTile) loop() {
	k.op("SUBQ", "$4", "CX")
	k.op("JLT", "rest")
	k.mark("four")
	for u := range 4 {
		k.step(u)
	}
	k.next(4)
	k.op("SUBQ", "$4", "CX")
	k.op("JGE", "four")
	k.mark("rest")
	k.op("ADDQ", "$4", "CX")
	k.op("JZ", "store")
	k.mark("one")
	k.step(0)
	k.next(1)
	k.again("one", "CX")
	k.mark("store")
}

// next moves on by steps of k. Full panels of A are as wide as they are high; of others the width is an argument, added
// step by step.
func (k floatTile) next(steps int) {
	switch {
	case k.kind.rows:
		k.op("ADDQ", imm(4*steps), "SI")
	case k.rows == k.mr && !k.kind.apart:
		k.op("ADDQ", imm(4*k.rows*steps), "SI")
	}
	k.op("ADDQ", imm(2*steps*k.bytes()), "BX")
}

// eachC walks DX over the rows of C.
func (k floatTile) eachC(f func(i int, mem, reg string)) {
	for r := range k.rows {
		for i := range 2 {
			f(i, fmt.Sprintf("%d(DX)", i*k.bytes()), k.v(2*r+i))
		}
		if r < k.rows-1 {
			k.op("ADDQ", "R9", "DX")
		}
	}
}

// prefetchC asks for the tile that comes next, whose elements are wanted before anything else: to the right, or at the
// left end of the rows below.
func (k floatTile) prefetchC() {
	below := k.fresh("below")
	k.op("LEAQ", fmt.Sprintf("%d(DI)", 2*k.bytes()), "DX")
	k.op("CMPQ", "R13", imm(2*k.lanes))
	k.op("JGT", below)
	k.op("MOVQ", "c+40(FP)", "DX")
	for range k.rows {
		k.op("ADDQ", "R9", "DX")
	}
	k.mark(below)
	for r := range k.rows {
		for i := 0; i < 2*k.bytes(); i += 64 {
			k.op("PREFETCHT0", fmt.Sprintf("%d(DX)", i))
		}
		if r < k.rows-1 {
			k.op("ADDQ", "R9", "DX")
		}
	}
}

// embedded is how many of fourteen rows of a full tile do without a broadcast.
const embedded = 10

// strides are the addresses of six rows, R8 bytes apart.
var strides = []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(DX*1)", "(SI)(R8*4)", "(SI)(AX*1)"}

// step is step u of k. Two registers take turns with A's elements.
func (k floatTile) step(u int) {
	b0, b1 := k.v(k.regs-4), k.v(k.regs-3)
	k.op("VMOVUPS", fmt.Sprintf("%d(BX)", 2*u*k.bytes()), b0)
	k.op("VMOVUPS", fmt.Sprintf("%d(BX)", (2*u+1)*k.bytes()), b1)
	full := k.rows == k.mr && k.kind == packedA
	most := k.rows == k.mr && k.wide()
	if !most {
		for i := 0; i < 2*k.bytes(); i += 64 {
			k.op("PREFETCHT0", fmt.Sprintf("%d(BX)", 2*u*k.bytes()+i+ahead))
		}
	}
	if k.kind.apart && !k.wide() {
		// Rows are far apart: their next line, for the tile below, would be a miss for every step.
		k.op("PREFETCHT1", "64(SI)")
	}
	if full && 64*u < 16*k.rows {
		// The next panel of A, from the third cache to the second.
		k.op("PREFETCHT1", fmt.Sprintf("%d(SI)(R10*1)", 64*u))
	}
	for r := range k.rows {
		mem := fmt.Sprintf("%d(SI)", 4*r)
		switch {
		case full:
			mem = fmt.Sprintf("%d(SI)", 4*(u*k.rows+r))
		case k.kind.rows:
			mem = fmt.Sprintf("%d", 4*u) + strides[r]
		}
		if most && (r+1)*embedded/k.rows > r*embedded/k.rows {
			k.op("VFMADD231PS.BCST", mem, b0, k.v(2*r))
			k.op("VFMADD231PS.BCST", mem, b1, k.v(2*r+1))
			continue
		}
		t := k.v(k.regs - 2 + r%2)
		k.op("VBROADCASTSS", mem, t)
		k.op("VFMADD231PS", b0, t, k.v(2*r))
		k.op("VFMADD231PS", b1, t, k.v(2*r+1))
	}
	if !full && !k.kind.rows {
		k.op("ADDQ", "R8", "SI")
	}
}

func gemmFile(i isa) []byte {
	a := newAsm(i)
	for _, kind := range i.aKinds() {
		for _, r := range i.tileRows() {
			if i.tileKind(kind, r) == kind {
				floatTile{a, kind, r}.emit()
			}
		}
	}
	for r := 1; r <= skinnyRows; r++ {
		skinnyKernel{a, r}.emit()
	}
	transpose(a)
	copyPanel(a)
	return a.finish()
}
