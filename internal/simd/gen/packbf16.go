package main

import "fmt"

// packElem is what a matrix consists of that is packed.
type packElem struct {
	name, kind string // of kernels, in Go
	shift      int    // log₂ of its bytes
}

var packElems = []packElem{{"Floats", "float32", 2}, {"Halves", "uint16", 1}}

// lines is the number of cache lines, and of registers, that 32 elements take.
func (e packElem) lines() int { return 1 << e.shift / 2 }

// pairPacker emits the kernels that pack one kind of element.
type pairPacker struct {
	*asm
	e packElem
}

// emitLines packs rows of k elements, up to 16, one tile of bfloat16 for every 32 elements, padded with zeros. A tile
// is 16 lines of 64 bytes: of A, line m holds 32 elements of k of row m; of B, line p holds elements 2p and 2p+1 of k
// of 16 columns, side by side. One is the other's transpose in units of pairs.
//
//	packFloats, packHalves          rows of A as they lie
//	packFloatsTurn, packHalvesTurn  columns of B given as rows: [n,k]
func (k pairPacker) emitLines(turn bool) {
	name := "pack" + k.e.name
	if turn {
		name += "Turn"
	}
	k.text(name, 0, 40)
	loadArgs(k.asm, "dst+0", "DI", "src+8", "SI", "ld+16", "R8", "rows+24", "R11", "k+32", "BX")
	k.op("SHLQ", imm(k.e.shift), "R8")
	k.op("MOVQ", imm(128*k.e.lines()), "R9") // what is fetched: two steps ahead, at the end those of the next 16 rows
	k.op("MOVQ", "R8", "R10")
	k.op("SHLQ", "$4", "R10")
	k.op("ADDQ", "R9", "R10")
	k.op("LEAQ", "31(BX)", "AX")
	k.op("ANDQ", "$-32", "AX")
	k.op("SHLQ", imm(k.e.shift), "AX")
	k.op("SUBQ", "AX", "R10")
	wholeMasks(k.asm)
	k.mark("step")
	k.op("CMPQ", "BX", "$64")
	k.op("JGT", "whole")
	k.op("MOVQ", "R10", "R9")
	k.op("CMPQ", "BX", "$32")
	k.op("JGE", "whole")
	k.op("MOVQ", "BX", "CX")
	k.masks()
	k.mark("whole")
	k.op("MOVQ", "SI", "AX")
	eachLine(k.asm, 16, "R11", func(i int) {
		k.loadElems("(AX)", i, 16)
		for l := range k.e.lines() {
			k.op("PREFETCHT0", fmt.Sprintf("%d(AX)(R9*1)", 64*l))
		}
		if k.e.lines() == 2 {
			k.use(narrowPair(i, 16, i))
		}
		k.op("ADDQ", "R8", "AX")
	})
	if turn {
		turnRegisters(k.asm)
	}
	for i := range 16 {
		k.op("VMOVDQU64", k.v(i), fmt.Sprintf("%d(DI)", 64*i))
	}
	k.op("ADDQ", imm(64*k.e.lines()), "SI")
	k.op("ADDQ", imm(panelStep), "DI")
	k.op("SUBQ", "$32", "BX")
	k.op("JGT", "step")
	k.ret()
}

// eachLine runs f for as many of n rows as count says, and leaves the registers of the others zero.
func eachLine(a *asm, n int, count string, f func(i int)) {
	loaded := a.fresh("loaded")
	for i := range n {
		a.op("VPXORD", a.v(i), a.v(i), a.v(i))
	}
	for i := range n {
		a.op("CMPQ", count, imm(i))
		a.op("JLE", loaded)
		f(i)
	}
	a.mark(loaded)
}

// wholeMasks lets all elements through, masks only the first CX of 32.
func wholeMasks(a *asm) {
	a.op("KXNORD", "K1", "K1", "K1")
	a.op("KXNORD", "K2", "K2", "K2")
}

func (k pairPacker) masks() {
	edge{k.asm, 0}.set()
	if k.e.lines() == 1 { // one register
		k.op("KUNPCKWD", "K1", "K2", "K1")
	}
}

// loadElems loads 32 elements from mem into register low, and high where they are floats.
func (k pairPacker) loadElems(mem string, low, high int) {
	if k.e.lines() == 1 {
		k.op("VMOVDQU16.Z", mem, "K1", k.v(low))
		return
	}
	k.op("VMOVUPS.Z", mem, "K1", k.v(low))
	k.op("VMOVUPS.Z", "64"+mem, "K2", k.v(high))
}

// emitPairs packs rows of B [k,n], up to 8, into 4 lines of each tile, panels stride bytes apart, padding columns and
// rows with zeros. It runs along the rows, 8 streams that the hardware prefetcher follows; memory is the bound.
func (k pairPacker) emitPairs() {
	k.text("pair"+k.e.name, 0, 48)
	loadArgs(k.asm, "dst+0", "DI", "src+8", "SI", "ld+16", "R8", "rows+24", "R13", "cols+32", "BX", "stride+40", "DX")
	k.op("SHLQ", imm(k.e.shift), "R8")
	k.op("LEAQ", "(R8)(R8*2)", "R9")
	k.op("LEAQ", "(SI)(R8*4)", "R10")
	k.op("LEAQ", "(SI)(R8*8)", "R11")
	k.op("LEAQ", "(R10)(R8*8)", "R12")
	if k.e.lines() == 2 {
		k.op("VMOVDQU64", "pairs"+k.tag+"<>(SB)", "Z31")
	} else {
		k.op("VMOVDQU64", "words"+k.tag+"<>(SB)", "Z30")
		k.op("VMOVDQU64", "words"+k.tag+"<>+64(SB)", "Z31")
	}
	wholeMasks(k.asm)
	k.op("SUBQ", "$32", "BX")
	k.op("JLT", "last")
	k.mark("panel")
	k.panel()
	for _, r := range []string{"SI", "R10", "R11", "R12"} {
		k.op("ADDQ", imm(64*k.e.lines()), r)
	}
	k.op("ADDQ", "DX", "DI")
	k.op("SUBQ", "$32", "BX")
	k.op("JGE", "panel")
	k.mark("last")
	k.op("MOVQ", "BX", "CX")
	k.op("ADDQ", "$32", "CX")
	k.op("JLE", "done") // none left, or these were the last
	k.masks()
	k.op("XORL", "BX", "BX") // one more turn
	k.op("JMP", "panel")
	k.mark("done")
	k.ret()
}

// panel packs 32 columns of them, the rows in registers 0–7 and, of floats, their other halves in 8–15.
func (k pairPacker) panel() {
	if k.e.lines() == 2 {
		for i := range 8 {
			k.op("VPXORD", k.v(8+i), k.v(8+i), k.v(8+i))
		}
	}
	eachLine(k.asm, 8, "R13", func(r int) {
		k.loadElems(fmt.Sprintf(rowAddr[r%4], []string{"SI", "R10"}[r/4]), r, 8+r)
		for l := range k.e.lines() {
			k.op("PREFETCHT1", fmt.Sprintf("%d"+rowAddr[r%4], 64*l, []string{"R11", "R12"}[r/4]))
		}
	})
	for i := range 4 { // line i of both tiles
		x, y := 2*i, 2*i+1
		if k.e.lines() == 2 {
			k.use(narrowPair(x, y, x))
			k.use(narrowPair(y, 8+y, 8+x))
			k.op("VPERMW", k.v(x), "Z31", k.v(x))
			k.op("VPERMW", k.v(y), "Z31", k.v(y))
		} else {
			k.op("VMOVDQA64", k.v(x), k.v(8+i))
			k.op("VPERMT2W", k.v(y), "Z30", k.v(x))
			k.op("VPERMT2W", k.v(y), "Z31", k.v(8+i))
			y = 8 + i
		}
		k.op("VMOVDQU64", k.v(x), fmt.Sprintf("%d(DI)", 64*i))
		k.op("VMOVDQU64", k.v(y), fmt.Sprintf("%d(DI)", 1024+64*i))
	}
}

// emitTurn makes tiles of A out of tiles of B, in place: one step of panels that lie stride bytes apart. Meanwhile it
// fetches 8 of the rows that emitPairs' kernel will want then: those after the ones it has fetched itself, the next of
// src's.
func (k pairPacker) emitTurn() {
	k.text("turn"+k.e.name, 0, 40)
	loadArgs(k.asm, "dst+0", "DI", "panels+8", "CX", "stride+16", "DX", "src+24", "R11", "ld+32", "R8")
	k.op("SHLQ", imm(k.e.shift), "R8")
	k.op("LEAQ", "(R8)(R8*4)", "R9")
	k.op("LEAQ", "(R11)(R9*8)", "R11")
	k.op("LEAQ", "(R8)(R8*2)", "R9")
	k.op("LEAQ", "(R11)(R8*4)", "R12")
	k.mark("panel")
	for h := range 2 {
		for i := range 16 {
			k.op("VMOVDQU64", fmt.Sprintf("%d(DI)", 1024*h+64*i), k.v(i))
			if i%2 == 0 && h < k.e.lines() {
				k.op("PREFETCHT0", fmt.Sprintf("%d"+rowAddr[i/2%4], 64*h, []string{"R11", "R12"}[i/8]))
			}
		}
		turnRegisters(k.asm)
		for i := range 16 {
			k.op("VMOVDQU64", k.v(i), fmt.Sprintf("%d(DI)", 1024*h+64*i))
		}
	}
	k.op("ADDQ", imm(64*k.e.lines()), "R11")
	k.op("ADDQ", imm(64*k.e.lines()), "R12")
	nextPanels(k.asm)
}

// nextPanels goes DX bytes on to the next of CX panels at DI, or returns.
func nextPanels(a *asm) {
	a.op("ADDQ", "DX", "DI")
	a.again("panel", "CX")
	a.ret()
}

// packDown packs 32 rows of a left operand given transposed, [k,m] of bfloat16, into a step of panels that lie stride
// bytes apart: 32 × 32 words are transposed for each. Four pieces of 8 columns, of rows 8 apart, are put together in a
// register as they are loaded, which leaves three of the five rounds of shuffles. Meanwhile the next 32 rows are
// fetched.
func packDown(a *asm) {
	a.text("downHalves", 0, 40)
	for l := 1; l < 4; l++ { // a quarter of a register each
		a.op("MOVL", fmt.Sprintf("$0x%x", 0xf<<(4*l)), "AX")
		a.op("KMOVW", "AX", fmt.Sprintf("K%d", l))
	}
	loadArgs(a, "dst+0", "DI", "src+8", "SI", "ld+16", "R8", "panels+24", "CX", "stride+32", "DX")
	a.op("SHLQ", "$1", "R8")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	bases := []string{"SI", "BX", "R10", "R11", "R12", "R13", "R14", "R15"} // every fourth row
	for i, r := range bases[1:] {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i]), r)
	}
	a.op("MOVQ", "R8", "AX")
	a.op("SHLQ", "$5", "AX")
	a.mark("panel")
	for piece := range 4 {
		for t := range 8 {
			for l := range 4 {
				r := 8*l + t
				mem := fmt.Sprintf("%d"+rowAddr[r%4], 16*piece, bases[r/4])
				if l == 0 {
					a.op("VMOVDQU", mem, fmt.Sprintf("X%d", t))
				} else {
					a.op("VBROADCASTI32X4", mem, fmt.Sprintf("K%d", l), a.v(t))
				}
			}
		}
		for _, r := range bases {
			a.op("PREFETCHT1", fmt.Sprintf("(%s)(AX*1)", r))
		}
		a.op("ADDQ", "R8", "AX")
		turnWords(a)
		for c := range 8 {
			a.op("VMOVDQU64", a.v(8+c), fmt.Sprintf("%d(DI)", 64*(8*piece+c)))
		}
	}
	a.op("SUBQ", "R8", "AX")
	a.op("SUBQ", "R9", "AX")
	for _, r := range bases {
		a.op("ADDQ", "$64", r)
	}
	nextPanels(a)
}

// turnWords transposes 8 × 8 words in each quarter of registers 0–7, by way of 8–15.
func turnWords(a *asm) {
	round := func(unit string, from, to int, pair func(i int) (x, y, low int)) {
		for i := range 4 {
			x, y, low := pair(i)
			a.op("VPUNPCKL"+unit, a.v(from+y), a.v(from+x), a.v(to+low))
			a.op("VPUNPCKH"+unit, a.v(from+y), a.v(from+x), a.v(to+low+1))
		}
	}
	// After the first round register 2i+h holds rows 2i and 2i+1 of columns 4h … 4h+3, after the second one register
	// 4i+2h+q rows 4i … 4i+3 of columns 4h+2q and 4h+2q+1.
	round("WD", 0, 8, func(i int) (int, int, int) { return 2 * i, 2*i + 1, 2 * i })
	round("DQ", 8, 0, func(i int) (int, int, int) { return i/2*4 + i%2, i/2*4 + i%2 + 2, i/2*4 + i%2*2 })
	round("QDQ", 0, 8, func(i int) (int, int, int) { return i, i + 4, 2 * i })
}

// pairTable is the permutation that interleaves the halves of a vector of 32 words.
func pairTable(a *asm) {
	for i := 0; i < 16; i += 2 {
		fmt.Fprintf(&a.out, "DATA pairs%s<>+%d(SB)/8, $0x%04X%04X%04X%04X\n", a.tag, 4*i, 17+i, i+1, 16+i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL pairs%s<>(SB), RODATA|NOPTR, $64\n", a.tag)
}

// wordTable interleaves the words of two vectors: the first 16 of each, then the others.
func wordTable(a *asm) {
	for i := range 16 {
		fmt.Fprintf(&a.out, "DATA words%s<>+%d(SB)/8, $0x%04X%04X%04X%04X\n", a.tag, 8*i, 33+2*i, 2*i+1, 32+2*i, 2*i)
	}
	fmt.Fprintf(&a.out, "GLOBL words%s<>(SB), RODATA|NOPTR, $128\n", a.tag)
}

// declarePacking declares the packing kernels.
func declarePacking(declare func(format string, a ...any)) {
	for _, e := range packElems {
		declare("pack%sBF16(dst *uint16, src *%s, ld, rows, k int)", e.name, e.kind)
		declare("pack%sTurnBF16(dst *uint16, src *%s, ld, rows, k int)", e.name, e.kind)
		declare("pair%sBF16(dst *uint16, src *%s, ld, rows, cols, stride int)", e.name, e.kind)
		declare("turn%sBF16(dst *uint16, panels, stride int, src *%s, ld int)", e.name, e.kind)
	}
	declare("downHalvesBF16(dst, src *uint16, ld, panels, stride int)")
}
