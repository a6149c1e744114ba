package main

import (
	"fmt"
)

var i8 = fields{"int8Args", "DI"}

// tilesInt8 emits y of rows × 32·cols: a panel of W stays in the first cache while those of x stream past it from the second.
// Tiles 0–1 hold the sums of the upper bytes of 16 rows and 32 columns, 2–3 those of the lower ones, 4–5 a step of both kinds of bytes,
// 6 one half of W's after the other: 4 products of 16 cycles for 4 loads of 8, for 64 elements of k.
//
// Finished sums go to a scratch; the steps of the next tile turn them into y, drain rows each, in the shadow of the
// products, and write that around the caches when far.
//
// The narrow form has fewer tiles in use (see gemmTiles): first the upper bytes, then the lower ones, two steps of k of x in 4–5 and W in
// 6. It loads half as much again, but where a neighbour keeps the other half of the core busy it is faster. The sums of the upper
// bytes are put aside while the tile before is still written, so that two scratches take turns. It needs at least 2 steps.
//
// With few rows, stream, reading W is the bound, and memory gives more to several streams than to one: lines of the 8 panels
// behind the 8 at hand are fetched side by side. There it is x that is met again soon.
//
// DI arguments, BX panel of W, SI and R9 the steps of x and W, AX the panel of W that comes next, R10 64, R11 C, R12 its row
// step, R13 16 of them. Of the tile before: R14 rows left, R15 sums, DX where they go, BP s, Z28–29 S, K1–2 columns.
func (a *asm) tilesInt8(way string, narrow bool) {
	far, stream := way == "Far", way == "Stream"
	a.text(tilesInt8Name(way, narrow), 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", i8.at("config"), "AX")
	a.tileConfig("AX")
	a.op("MOVQ", i8.at("w"), "BX")
	a.op("MOVQ", i8.at("ldc"), "R12")
	a.op("MOVQ", "$64", "R10")
	a.op("MOVQ", "R12", "R13")
	a.op("SHLQ", "$4", "R13")
	a.op("XORL", "R14", "R14")
	a.int8Moves([2]int{i8.off("c"), i8.off("atC")}, [2]int{i8.off("head"), i8.off("atHead")}, [2]int{i8.off("partial"), i8.off("atPartial")})
	a.op("VMOVUPS", a.bits(255), "Z31")
	a.op("VMOVUPS", a.constant(256), "Z30")
	a.mark("column")
	a.int8Column(stream)
	a.mark("panel")
	if narrow {
		a.int8Passes(far, stream)
	} else {
		a.int8Start()
		a.int8Turns(func() { a.int8Step(stream) }, far, stream)
		a.int8Place()
		for t := range 4 {
			a.tileStore(t, "R15", "R10", 1024*t)
		}
	}
	a.int8Park()
	a.int8Next()
	a.tileRelease()
	a.op("TESTQ", "R14", "R14")
	a.op("JZ", "over")
	a.mark("last")
	a.int8Row(far)
	a.op("DECQ", "R14")
	a.op("JNZ", "last")
	if far {
		a.op("SFENCE") // other threads may see the result as soon as the caller says so
	}
	a.mark("over")
	a.op("VZEROUPPER")
	a.op("RET")
}

var int8Ways = []string{"Near", "Far", "Stream"}

func tilesInt8Name(way string, narrow bool) string {
	if narrow {
		return "tilesInt8Narrow" + way
	}
	return "tilesInt8Wide" + way
}

// int8Turns runs over k, CX turns of step.
func (a *asm) int8Turns(step func(), far, stream bool) {
	turn := a.fresh("turn")
	a.mark(turn)
	step()
	a.int8Fetch(stream)
	a.int8Drain(far)
	a.op("DECQ", "CX")
	a.op("JNZ", turn)
}

// int8Next goes to the next panel of x and the tile of C below, or to the next panel of W.
func (a *asm) int8Next() {
	a.op("MOVQ", i8.at("strideX"), "R8")
	a.op("ADDQ", "R8", i8.at("atX"))
	a.op("ADDQ", "$64", i8.at("atScale"))
	a.op("ADDQ", "$4096", i8.at("atPartial"))
	a.op("ADDQ", "R13", "R11")
	a.op("SUBQ", "$16", i8.at("left"))
	a.op("JGT", "panel")
	a.op("ADDQ", i8.at("strideW"), "BX")
	a.op("ADDQ", "$128", i8.at("atC"))
	a.op("ADDQ", fmt.Sprintf("$%d", int8Head), i8.at("atHead"))
	a.op("DECQ", i8.at("cols"))
	a.op("JNZ", "column")
}

// int8Passes is the narrow form of a tile.
func (a *asm) int8Passes(far, stream bool) {
	for pass := range 2 {
		partial, begin, even := a.fresh("partial"), a.fresh("begin"), a.fresh("even")
		a.op("MOVQ", i8.at("steps"), "CX")
		a.op("SHRQ", "$1", "CX")
		a.op("CMPQ", i8.at("load"), "$0")
		a.op("JNE", partial)
		a.int8Zero(pass)
		a.op("JMP", begin)
		a.mark(partial)
		a.op("MOVQ", i8.at("atPartial"), "R9")
		for t := range 2 {
			a.tileLoad(t, "R9", "R10", 2048*pass+1024*t)
		}
		a.mark(begin)
		a.op("MOVQ", i8.at("atX"), "SI")
		a.op("MOVQ", "BX", "R9")
		a.int8Turns(func() { a.int8NarrowStep(pass, stream) }, far, stream)
		a.op("TESTQ", "$1", i8.at("steps"))
		a.op("JZ", even)
		x, w := a.int8Loads(stream)
		x(4, "SI", "R10", 1024*pass)
		for t := range 2 {
			w(6+t, "R9", "R10", 1024*t)
			a.tileProductBytes(t, 4, 6+t)
		}
		a.mark(even)
		a.op("MOVQ", "R15", "SI") // the tile before may be on its way still
		a.int8Place()
		for t := range 2 {
			a.tileStore(t, "R15", "R10", 2048*pass+1024*t)
		}
		if pass == 0 {
			a.op("MOVQ", "SI", "R15")
		}
	}
	a.op("XORQ", "$4096", i8.at("turn"))
}

// int8Zero sets tiles 0–1 to the sums of pass to begin with.
func (a *asm) int8Zero(pass int) {
	if pass == 1 {
		a.tileZero(0)
		a.tileZero(1)
		return
	}
	a.op("XORL", "R8", "R8")
	a.op("MOVQ", i8.at("atHead"), "R9")
	a.tileLoad(0, "R9", "R8", int8Sums)
	a.tileLoad(1, "R9", "R8", int8Sums+64)
}

// int8NarrowStep is two steps of one kind of bytes.
func (a *asm) int8NarrowStep(pass int, stream bool) {
	x, w := a.int8Loads(stream)
	for t := range 2 { // apart, see gemmTiles
		for half := range 2 {
			if t == 0 {
				x(4+half, "SI", "R10", 1024*pass+2048*half)
				a.gap()
			}
			w(6, "R9", "R10", 1024*t+2048*half)
			a.gap()
			a.tileProductBytes(t, 4+half, 6)
			a.gap()
		}
	}
	a.op("ADDQ", "$4096", "SI")
	a.op("ADDQ", "$4096", "R9")
}

// int8Column begins with the first rows, at the top of C.
func (a *asm) int8Column(stream bool) {
	a.int8Moves([2]int{i8.off("x"), i8.off("atX")}, [2]int{i8.off("scale"), i8.off("atScale")}, [2]int{i8.off("rows"), i8.off("left")})
	a.op("MOVQ", i8.at("atC"), "R11")
	if stream {
		a.op("DECQ", i8.at("until")) // columns until the next 8
		a.op("JGE", "same")
		a.op("MOVQ", "$7", i8.at("until"))
	}
	a.op("MOVQ", i8.at("strideW"), "AX")
	if stream {
		a.op("SHLQ", "$3", "AX")
	}
	a.op("ADDQ", "BX", "AX")
	if stream {
		a.mark("same")
	}
}

// int8Moves copies arguments to where the kernel counts: a pointer that has run past its operand must not be seen by the collector.
func (a *asm) int8Moves(moves ...[2]int) {
	for _, m := range moves {
		a.op("MOVQ", arg(m[0]), "R8")
		a.op("MOVQ", "R8", arg(m[1]))
	}
}

// int8Start sets the tiles of sums to −128·Σq of the columns, the same in every line, and zero, or to sums of an earlier run of k.
func (a *asm) int8Start() {
	a.op("MOVQ", i8.at("atX"), "SI")
	a.op("MOVQ", i8.at("steps"), "CX")
	a.op("CMPQ", i8.at("load"), "$0")
	a.op("JNE", "partial")
	a.int8Zero(0)
	a.tileZero(2)
	a.tileZero(3)
	a.op("JMP", "begin")
	a.mark("partial")
	a.op("MOVQ", i8.at("atPartial"), "R9")
	for t := range 4 {
		a.tileLoad(t, "R9", "R10", 1024*t)
	}
	a.mark("begin")
	a.op("MOVQ", "BX", "R9")
}

// int8Loads are those of tiles of x and of W: one of them keeps out of the other's way in the first cache.
func (a *asm) int8Loads(stream bool) (x, w func(t int, base, index string, disp int)) {
	if stream {
		return a.tileLoad, a.tileStream
	}
	return a.tileStream, a.tileLoad
}

// int8Step is 64 elements of k.
func (a *asm) int8Step(stream bool) {
	x, w := a.int8Loads(stream)
	x(4, "SI", "R10", 0)
	x(5, "SI", "R10", 1024)
	for t := range 2 { // apart, see gemmTiles
		w(6, "R9", "R10", 1024*t)
		a.gap()
		a.tileProductBytes(t, 4, 6)
		a.gap()
		a.tileProductBytes(2+t, 5, 6)
		a.gap()
	}
	a.op("ADDQ", "$2048", "SI")
	a.op("ADDQ", "$2048", "R9")
}

// int8Fetch fetches some lines of the panel of W that comes next, or of the next 8.
func (a *asm) int8Fetch(stream bool) {
	if stream {
		a.int8FetchStreams()
		return
	}
	fetch := a.fresh("fetch")
	a.op("MOVQ", i8.at("fetch"), "R8")
	a.mark(fetch)
	for i := range 4 {
		a.op("PREFETCHT1", fmt.Sprintf("%d(AX)", 64*i))
	}
	a.op("ADDQ", "$256", "AX")
	a.op("DECQ", "R8")
	a.op("JNZ", fetch)
}

func (a *asm) int8FetchStreams() {
	fetch := a.fresh("fetch")
	a.op("MOVQ", i8.at("fetch"), "R8")
	a.op("MOVQ", "R8", i8.at("turns"))
	a.mark(fetch)
	a.op("MOVQ", i8.at("strideW"), "R8")
	for half := range 2 {
		for _, mem := range []string{"(AX)", "(AX)(R8*1)", "(AX)(R8*2)"} {
			a.op("PREFETCHT1", mem)
		}
		if half == 0 {
			a.op("ADDQ", i8.at("four"), "AX")
		}
	}
	a.op("LEAQ", "(R8)(R8*2)", "R8")
	a.op("PREFETCHT1", "(AX)(R8*1)")
	a.op("SUBQ", i8.at("four"), "AX")
	a.op("PREFETCHT1", "(AX)(R8*1)")
	a.op("ADDQ", "$64", "AX")
	a.op("DECQ", i8.at("turns"))
	a.op("JNZ", fetch)
}

// tileProductBytes: dst += x·y, unsigned bytes times signed ones.
func (a *asm) tileProductBytes(dst, x, y int) {
	a.raw(fmt.Sprintf("TDPBUSD_T%d_T%d_T%d", dst, x, y), append(vex(byte(y), 0, 0, 1), 0x5E, 0xC0|byte(dst)<<3|byte(x)),
		fmt.Sprintf("tdpbusd tmm%d, tmm%d, tmm%d", dst, x, y))
}

// int8Drain writes some rows of the tile before, if any are left.
func (a *asm) int8Drain(far bool) {
	drain, drained := a.fresh("drain"), a.fresh("drained")
	a.op("TESTQ", "R14", "R14")
	a.op("JZ", drained)
	a.op("MOVQ", i8.at("drain"), "R8")
	a.mark(drain)
	a.int8Row(far)
	a.op("DECQ", "R14")
	a.op("JZ", drained)
	a.op("DECQ", "R8")
	a.op("JNZ", drain)
	a.mark(drained)
}

// int8Row turns a row of sums into y: 256·upper + lower, times S, times s. Near ones fetch the place of the row 16 below, whose turn is next.
func (a *asm) int8Row(far bool) {
	for i := range 2 {
		hi, lo := a.v(3*i), a.v(3*i+1)
		a.op("VMOVDQU64", fmt.Sprintf("%d(R15)", 1024*i), hi)
		a.op("VMOVDQU64", fmt.Sprintf("%d(R15)", 1024*i+2048), lo)
		a.int8Round(hi, lo, a.v(3*i+2), "Z31", "Z30")
		a.op("VMULPS", a.v(28+i), lo, lo)
		a.op("VMULPS.BCST", "(BP)", lo, lo)
		if far {
			a.op("VMOVNTPS", lo, fmt.Sprintf("%d(DX)", 64*i))
		} else {
			a.op("VMOVUPS", lo, fmt.Sprintf("K%d", i+1), fmt.Sprintf("%d(DX)", 64*i))
			a.op("PREFETCHT0", fmt.Sprintf("%d(DX)(R13*1)", 64*i))
		}
	}
	a.op("ADDQ", "$64", "R15")
	a.op("ADDQ", "$4", "BP")
	a.op("ADDQ", "R12", "DX")
}

// int8Place sets R15 to where sums go: the scratch, or where they wait for the next run of k.
func (a *asm) int8Place() {
	a.op("MOVQ", i8.at("scratch"), "R15")
	a.op("ADDQ", i8.at("turn"), "R15")
	a.op("CMPQ", i8.at("keep"), "$0")
	a.op("CMOVQNE", i8.at("atPartial"), "R15")
}

// int8Park takes down whose sums are in the scratch.
func (a *asm) int8Park() {
	a.op("CMPQ", i8.at("keep"), "$0")
	a.op("JNE", "kept")
	a.op("MOVQ", "R11", "DX")
	a.op("MOVQ", i8.at("atScale"), "BP")
	a.op("MOVQ", i8.at("left"), "R14")
	a.op("MOVQ", "$16", "R8")
	a.op("CMPQ", "R14", "R8")
	a.op("CMOVQGT", "R8", "R14")
	a.op("MOVQ", i8.at("atHead"), "R8")
	a.op("VMOVUPS", "(R8)", "Z28")
	a.op("VMOVUPS", "64(R8)", "Z29")
	a.op("MOVQ", "$-1", "R8")
	a.op("CMPQ", i8.at("cols"), "$1")
	a.op("CMOVQEQ", i8.at("last"), "R8")
	a.op("KMOVW", "R8", "K1")
	a.op("SHRQ", "$16", "R8")
	a.op("KMOVW", "R8", "K2")
	a.mark("kept")
}
