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
type int8Tiles struct {
	*asm
	stream, far bool
}

func tilesInt8(a *asm, way string, narrow bool) {
	k := int8Tiles{a, way == "Stream", way == "Far"}
	a.text(tilesInt8Name(way, narrow), 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", i8.at("config"), "AX")
	a.use(tileConfig("AX"))
	a.op("MOVQ", i8.at("w"), "BX")
	a.op("MOVQ", i8.at("ldc"), "R12")
	a.op("MOVQ", "$64", "R10")
	a.op("MOVQ", "R12", "R13")
	a.op("SHLQ", "$4", "R13")
	a.op("XORL", "R14", "R14")
	k.moves([2]int{i8.off("c"), i8.off("atC")}, [2]int{i8.off("head"), i8.off("atHead")}, [2]int{i8.off("partial"), i8.off("atPartial")})
	a.op("VMOVUPS", a.bits(255), "Z31")
	a.op("VMOVUPS", a.constant(256), "Z30")
	a.mark("column")
	k.column()
	a.mark("panel")
	if narrow {
		k.passes()
	} else {
		k.start()
		k.turns(k.step)
		k.place()
		for t := range 4 {
			a.use(tileStore(t, "R15", "R10", 1024*t))
		}
	}
	k.park()
	k.next()
	a.use(tileRelease())
	a.op("TESTQ", "R14", "R14")
	a.op("JZ", "over")
	a.mark("last")
	k.row()
	a.op("DECQ", "R14")
	a.op("JNZ", "last")
	if k.far {
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

// turns runs over k, CX turns of step.
func (k int8Tiles) turns(step func()) {
	turn := k.fresh("turn")
	k.mark(turn)
	step()
	k.fetch()
	k.drain()
	k.op("DECQ", "CX")
	k.op("JNZ", turn)
}

// next goes to the next panel of x and the tile of C below, or to the next panel of W.
func (k int8Tiles) next() {
	k.op("MOVQ", i8.at("strideX"), "R8")
	k.op("ADDQ", "R8", i8.at("atX"))
	k.op("ADDQ", "$64", i8.at("atScale"))
	k.op("ADDQ", "$4096", i8.at("atPartial"))
	k.op("ADDQ", "R13", "R11")
	k.op("SUBQ", "$16", i8.at("left"))
	k.op("JGT", "panel")
	k.op("ADDQ", i8.at("strideW"), "BX")
	k.op("ADDQ", "$128", i8.at("atC"))
	k.op("ADDQ", fmt.Sprintf("$%d", int8Head), i8.at("atHead"))
	k.op("DECQ", i8.at("cols"))
	k.op("JNZ", "column")
}

// passes is the narrow form of a tile.
func (k int8Tiles) passes() {
	for pass := range 2 {
		partial, begin, even := k.fresh("partial"), k.fresh("begin"), k.fresh("even")
		k.op("MOVQ", i8.at("steps"), "CX")
		k.op("SHRQ", "$1", "CX")
		k.op("CMPQ", i8.at("load"), "$0")
		k.op("JNE", partial)
		k.zeroSums(pass)
		k.op("JMP", begin)
		k.mark(partial)
		k.op("MOVQ", i8.at("atPartial"), "R9")
		for t := range 2 {
			k.use(tileLoad(t, "R9", "R10", 2048*pass+1024*t))
		}
		k.mark(begin)
		k.op("MOVQ", i8.at("atX"), "SI")
		k.op("MOVQ", "BX", "R9")
		k.turns(func() { k.narrowStep(pass) })
		k.op("TESTQ", "$1", i8.at("steps"))
		k.op("JZ", even)
		x, w := k.loads()
		k.use(x(4, "SI", "R10", 1024*pass))
		for t := range 2 {
			k.use(w(6+t, "R9", "R10", 1024*t))
			k.use(tileProductBytes(t, 4, 6+t))
		}
		k.mark(even)
		k.op("MOVQ", "R15", "SI") // the tile before may be on its way still
		k.place()
		for t := range 2 {
			k.use(tileStore(t, "R15", "R10", 2048*pass+1024*t))
		}
		if pass == 0 {
			k.op("MOVQ", "SI", "R15")
		}
	}
	k.op("XORQ", "$4096", i8.at("turn"))
}

// zeroSums sets tiles 0–1 to the sums of pass to begin with.
func (k int8Tiles) zeroSums(pass int) {
	if pass == 1 {
		k.use(tileZero(0))
		k.use(tileZero(1))
		return
	}
	k.op("XORL", "R8", "R8")
	k.op("MOVQ", i8.at("atHead"), "R9")
	k.use(tileLoad(0, "R9", "R8", int8Sums))
	k.use(tileLoad(1, "R9", "R8", int8Sums+64))
}

// narrowStep is two steps of one kind of bytes.
func (k int8Tiles) narrowStep(pass int) {
	x, w := k.loads()
	for t := range 2 { // apart, see gemmTiles
		for half := range 2 {
			if t == 0 {
				k.use(x(4+half, "SI", "R10", 1024*pass+2048*half))
				k.gap()
			}
			k.use(w(6, "R9", "R10", 1024*t+2048*half))
			k.gap()
			k.use(tileProductBytes(t, 4+half, 6))
			k.gap()
		}
	}
	k.op("ADDQ", "$4096", "SI")
	k.op("ADDQ", "$4096", "R9")
}

// column begins with the first rows, at the top of C.
func (k int8Tiles) column() {
	k.moves([2]int{i8.off("x"), i8.off("atX")}, [2]int{i8.off("scale"), i8.off("atScale")}, [2]int{i8.off("rows"), i8.off("left")})
	k.op("MOVQ", i8.at("atC"), "R11")
	if k.stream {
		k.op("DECQ", i8.at("until")) // columns until the next 8
		k.op("JGE", "same")
		k.op("MOVQ", "$7", i8.at("until"))
	}
	k.op("MOVQ", i8.at("strideW"), "AX")
	if k.stream {
		k.op("SHLQ", "$3", "AX")
	}
	k.op("ADDQ", "BX", "AX")
	if k.stream {
		k.mark("same")
	}
}

// moves copies arguments to where the kernel counts: a pointer that has run past its operand must not be seen by the collector.
func (k int8Tiles) moves(moves ...[2]int) {
	for _, m := range moves {
		k.op("MOVQ", arg(m[0]), "R8")
		k.op("MOVQ", "R8", arg(m[1]))
	}
}

// start sets the tiles of sums to −128·Σq of the columns, the same in every line, and zero, or to sums of an earlier run of k.
func (k int8Tiles) start() {
	k.op("MOVQ", i8.at("atX"), "SI")
	k.op("MOVQ", i8.at("steps"), "CX")
	k.op("CMPQ", i8.at("load"), "$0")
	k.op("JNE", "partial")
	k.zeroSums(0)
	k.use(tileZero(2))
	k.use(tileZero(3))
	k.op("JMP", "begin")
	k.mark("partial")
	k.op("MOVQ", i8.at("atPartial"), "R9")
	for t := range 4 {
		k.use(tileLoad(t, "R9", "R10", 1024*t))
	}
	k.mark("begin")
	k.op("MOVQ", "BX", "R9")
}

// loads are those of tiles of x and of W: one of them keeps out of the other's way in the first cache.
func (k int8Tiles) loads() (x, w func(t int, base, index string, disp int) macro) {
	if k.stream {
		return tileLoad, tileStream
	}
	return tileStream, tileLoad
}

// step is 64 elements of k.
func (k int8Tiles) step() {
	x, w := k.loads()
	k.use(x(4, "SI", "R10", 0))
	k.use(x(5, "SI", "R10", 1024))
	for t := range 2 { // apart, see gemmTiles
		k.use(w(6, "R9", "R10", 1024*t))
		k.gap()
		k.use(tileProductBytes(t, 4, 6))
		k.gap()
		k.use(tileProductBytes(2+t, 5, 6))
		k.gap()
	}
	k.op("ADDQ", "$2048", "SI")
	k.op("ADDQ", "$2048", "R9")
}

// fetch fetches some lines of the panel of W that comes next, or of the next 8.
func (k int8Tiles) fetch() {
	if k.stream {
		k.fetchStreams()
		return
	}
	fetch := k.fresh("fetch")
	k.op("MOVQ", i8.at("fetch"), "R8")
	k.mark(fetch)
	for i := range 4 {
		k.op("PREFETCHT1", fmt.Sprintf("%d(AX)", 64*i))
	}
	k.op("ADDQ", "$256", "AX")
	k.op("DECQ", "R8")
	k.op("JNZ", fetch)
}

func (k int8Tiles) fetchStreams() {
	fetch := k.fresh("fetch")
	k.op("MOVQ", i8.at("fetch"), "R8")
	k.op("MOVQ", "R8", i8.at("turns"))
	k.mark(fetch)
	k.op("MOVQ", i8.at("strideW"), "R8")
	for half := range 2 {
		for _, mem := range []string{"(AX)", "(AX)(R8*1)", "(AX)(R8*2)"} {
			k.op("PREFETCHT1", mem)
		}
		if half == 0 {
			k.op("ADDQ", i8.at("four"), "AX")
		}
	}
	k.op("LEAQ", "(R8)(R8*2)", "R8")
	k.op("PREFETCHT1", "(AX)(R8*1)")
	k.op("SUBQ", i8.at("four"), "AX")
	k.op("PREFETCHT1", "(AX)(R8*1)")
	k.op("ADDQ", "$64", "AX")
	k.op("DECQ", i8.at("turns"))
	k.op("JNZ", fetch)
}

// tileProductBytes: dst += x·y, unsigned bytes times signed ones.
func tileProductBytes(dst, x, y int) macro {
	return raw(fmt.Sprintf("TDPBUSD_T%d_T%d_T%d", dst, x, y), append(vex(byte(y), 0, 0, 1), 0x5E, 0xC0|byte(dst)<<3|byte(x)),
		fmt.Sprintf("tdpbusd tmm%d, tmm%d, tmm%d", dst, x, y))
}

// drain writes some rows of the tile before, if any are left.
func (k int8Tiles) drain() {
	drain, drained := k.fresh("drain"), k.fresh("drained")
	k.op("TESTQ", "R14", "R14")
	k.op("JZ", drained)
	k.op("MOVQ", i8.at("drain"), "R8")
	k.mark(drain)
	k.row()
	k.op("DECQ", "R14")
	k.op("JZ", drained)
	k.op("DECQ", "R8")
	k.op("JNZ", drain)
	k.mark(drained)
}

// row turns a row of sums into y: 256·upper + lower, times S, times s. Near ones fetch the place of the row 16 below, whose turn is next.
func (k int8Tiles) row() {
	for i := range 2 {
		hi, lo := k.v(3*i), k.v(3*i+1)
		k.op("VMOVDQU64", fmt.Sprintf("%d(R15)", 1024*i), hi)
		k.op("VMOVDQU64", fmt.Sprintf("%d(R15)", 1024*i+2048), lo)
		int8Round(k.asm, hi, lo, k.v(3*i+2), "Z31", "Z30")
		k.op("VMULPS", k.v(28+i), lo, lo)
		k.op("VMULPS.BCST", "(BP)", lo, lo)
		if k.far {
			k.op("VMOVNTPS", lo, fmt.Sprintf("%d(DX)", 64*i))
		} else {
			k.op("VMOVUPS", lo, fmt.Sprintf("K%d", i+1), fmt.Sprintf("%d(DX)", 64*i))
			k.op("PREFETCHT0", fmt.Sprintf("%d(DX)(R13*1)", 64*i))
		}
	}
	k.op("ADDQ", "$64", "R15")
	k.op("ADDQ", "$4", "BP")
	k.op("ADDQ", "R12", "DX")
}

// place sets R15 to where sums go: the scratch, or where they wait for the next run of k.
func (k int8Tiles) place() {
	k.op("MOVQ", i8.at("scratch"), "R15")
	k.op("ADDQ", i8.at("turn"), "R15")
	k.op("CMPQ", i8.at("keep"), "$0")
	k.op("CMOVQNE", i8.at("atPartial"), "R15")
}

// park takes down whose sums are in the scratch.
func (k int8Tiles) park() {
	k.op("CMPQ", i8.at("keep"), "$0")
	k.op("JNE", "kept")
	k.op("MOVQ", "R11", "DX")
	k.op("MOVQ", i8.at("atScale"), "BP")
	k.op("MOVQ", i8.at("left"), "R14")
	k.op("MOVQ", "$16", "R8")
	k.op("CMPQ", "R14", "R8")
	k.op("CMOVQGT", "R8", "R14")
	k.op("MOVQ", i8.at("atHead"), "R8")
	k.op("VMOVUPS", "(R8)", "Z28")
	k.op("VMOVUPS", "64(R8)", "Z29")
	k.op("MOVQ", "$-1", "R8")
	k.op("CMPQ", i8.at("cols"), "$1")
	k.op("CMOVQEQ", i8.at("last"), "R8")
	k.op("KMOVW", "R8", "K1")
	k.op("SHRQ", "$16", "R8")
	k.op("KMOVW", "R8", "K2")
	k.mark("kept")
}
