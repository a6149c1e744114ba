package main

import "fmt"

// tileArgs are the byte offsets of the fields of simd.tileArgs.
const (
	argA, argB, argC, argScratch, argConfig  = 0, 8, 16, 24, 32
	argLdc, argSteps, argRows, argCols       = 40, 48, 56, 64
	argStrideA, argStrideB, argLoad, argNext = 72, 80, 88, 96
	argPartial, argKeep                      = 104, 112

	panelStep = 2048 // bytes of a panel of 32 rows or columns per 32 steps of k
)

// amxDrain lists the kernels by the rows of the tile before that each step of k writes out.
var amxDrain = []int{2, 4, 8, 16, 32}

// gemmTiles emits C[32·rows, 32·cols] (+)= A·B on packed bfloat16 panels. A panel of B stays in the first cache while
// A's stream past it from the second, loaded so as not to push it out. Tiles 0–3 hold 32 × 32 elements of C, 4–5 a
// step of A, 6–7 of B: 4 products of 16 cycles for 4 loads of 8.
//
// Writing C costs as much as multiplying. A finished tile goes to a scratch of 4 KiB; the steps of the next tile
// write it to C, drain rows each, in the shadow of the products; around the caches when far, which spares reading
// what is overwritten.
//
// The narrow form has half the tiles in flight: 16 × 32 elements of C in tiles 0–1, two steps of k of A in 4–5 and of B in 6–7.
// It loads half as much again, but where a neighbour keeps the other half of the core busy it is faster by a third. The
// sums are the same. It needs at least 2 steps.
func (a *asm) gemmTiles(drain int, far, narrow bool) {
	rows := 32
	if narrow {
		rows = 16
	}
	a.text(tilesName(drain, far, narrow), 8, 8)
	a.amxBegin()
	a.op("XORL", "DX", "DX") // where the tile before goes: nowhere yet
	a.mark("column")
	a.startColumn(narrow)
	a.mark("panel")
	a.startTiles(narrow)
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", "R8", "SI")
	a.op("MOVQ", arg(argSteps), "CX")
	if narrow {
		a.op("SHRQ", "$1", "CX")
	}
	a.tileKLoop(rows, drain, far, narrow)
	a.parkTile(narrow)
	a.nextPanel(narrow)
	a.nextColumn()
	a.drainRest(rows/8, far)
}

// startColumn begins with A, at the top of C. AX is the next panel of B, wanted next; R13 counts tiles.
func (a *asm) startColumn(narrow bool) {
	a.op("MOVQ", arg(argA), "R8")
	a.op("MOVQ", arg(argRows), "R13")
	if narrow {
		a.op("SHLQ", "$1", "R13")
		a.op("MOVQ", "$1024", "CX")
		a.op("MOVQ", "CX", arg(argNext)) // from the first half of a panel of A to the second
	}
	a.op("MOVQ", arg(argC), "R11")
	a.op("MOVQ", arg(argStrideB), "AX")
	a.op("ADDQ", "BX", "AX")
}

// tileKLoop runs over k, CX turns of it. Meanwhile it writes the tile before to C, if there is one, and fetches what the next one will
// want: the place where this one goes, and sums to begin with. BP is where those are that were put aside, 0 if there are none.
func (a *asm) tileKLoop(rows, drain int, far, narrow bool) {
	step := a.tileStep4
	if narrow {
		step = a.narrowStep
	}
	a.op("XORL", "BP", "BP")
	a.op("CMPQ", arg(argLoad), "$2")
	a.op("JNE", "nothing")
	a.op("MOVQ", arg(argPartial), "BP")
	a.op("ADDQ", fmt.Sprintf("$%d", 128*rows), "BP")
	a.mark("nothing")
	a.op("TESTQ", "DX", "DX")
	a.op("JZ", "idle")
	a.drainingTurns(rows, drain, far, step)
	a.mark("plain")
	step()
	a.op("DECQ", "CX")
	a.op("JNZ", "plain")
	a.op("JMP", "finished")
	a.mark("idle")
	a.op("CMPQ", arg(argLoad), "$0")
	a.op("JEQ", "plain")
	a.fetchingTurns(rows, drain, far, step)
	a.op("JMP", "plain")
	a.mark("finished")
	if narrow {
		a.oddStep()
	}
}

// drainingTurns are those in which the tile before is written to C.
func (a *asm) drainingTurns(rows, drain int, far bool, step func()) {
	a.op("MOVQ", arg(argScratch), "R15")
	a.firstTurns(rows, drain)
	if !far {
		a.nextTile(rows)
	}
	a.mark("draining")
	step()
	a.drainRows(drain, far)
	if !far {
		a.fetchRows(drain)
	}
	a.op("TESTQ", "BP", "BP")
	a.op("JZ", "drained")
	a.fetchPartial(drain)
	a.mark("drained")
	a.op("DECQ", "CX")
	a.op("JNZ", "draining")
	a.otherTurns()
}

// fetchingTurns are those with nothing to write, but sums to fetch for the next tile: partial ones, or C's.
func (a *asm) fetchingTurns(rows, drain int, far bool, step func()) {
	a.firstTurns(rows, drain)
	if !far {
		a.nextTile(rows)
	}
	a.mark("fetching")
	step()
	if !far {
		a.op("TESTQ", "BP", "BP")
		a.op("JNZ", "sums")
		a.fetchRows(drain)
		a.op("JMP", "fetched")
	}
	a.mark("sums")
	a.fetchPartial(drain)
	a.mark("fetched")
	a.op("DECQ", "CX")
	a.op("JNZ", "fetching")
	a.otherTurns()
}

// firstTurns leaves in CX the turns that something is done in beside the products; otherTurns what is left then, none: it is finished.
func (a *asm) firstTurns(rows, drain int) {
	a.op("SUBQ", fmt.Sprintf("$%d", rows/drain), "CX")
	a.op("MOVQ", "CX", "rest-8(SP)")
	a.op("MOVQ", fmt.Sprintf("$%d", rows/drain), "CX")
}

func (a *asm) otherTurns() {
	a.op("MOVQ", "rest-8(SP)", "CX")
	a.op("TESTQ", "CX", "CX")
	a.op("JZ", "finished")
}

// fetchPartial fetches n rows of the sums that the next tile begins with.
func (a *asm) fetchPartial(n int) {
	for i := range 2 * n {
		a.op("PREFETCHT0", fmt.Sprintf("%d(BP)", 64*i))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 128*n), "BP")
}

// parkTile puts the finished tile into the scratch, for DX, or where partial sums wait for the next run of k.
func (a *asm) parkTile(narrow bool) {
	tiles := 4
	if narrow {
		tiles = 2
	}
	a.op("MOVQ", arg(argScratch), "R15")
	a.op("MOVQ", "R11", "DX")
	a.op("CMPQ", arg(argKeep), "$0")
	a.op("JEQ", "park")
	a.op("MOVQ", arg(argPartial), "R15")
	a.op("XORL", "DX", "DX")
	a.mark("park")
	a.op("MOVQ", "$128", "R14")
	for t := range tiles {
		a.tileStore(t, "R15", "R14", t/2*2048+t%2*64)
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 1024*tiles), arg(argPartial))
}

// nextPanel goes to the next panel of A, or half of one, and the tile of C below.
func (a *asm) nextPanel(narrow bool) {
	shift := "$5"
	if narrow {
		shift = "$4"
		a.op("MOVQ", arg(argNext), "CX")
		a.op("ADDQ", "CX", "R8")
		a.op("NEGQ", "CX")
		a.op("ADDQ", arg(argStrideA), "CX")
		a.op("MOVQ", "CX", arg(argNext))
	} else {
		a.op("ADDQ", arg(argStrideA), "R8")
	}
	a.op("MOVQ", "R12", "CX")
	a.op("SHLQ", shift, "CX")
	a.op("ADDQ", "CX", "R11")
	a.op("DECQ", "R13")
	a.op("JNZ", "panel")
}

func tilesName(drain int, far, narrow bool) string {
	form, way := "Wide", "Near"
	if narrow {
		form = "Narrow"
	}
	if far {
		way = "Far"
	}
	return fmt.Sprintf("gemmBF16%s%s%d", form, way, drain)
}

func arg(off int) string { return fmt.Sprintf("%d(DI)", off) }

// amxBegin: DI the arguments, BX the panel of B, R12 the row step of C, R10 that of packed tiles.
func (a *asm) amxBegin() {
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(argConfig), "AX")
	a.tileConfig("AX")
	a.op("MOVQ", arg(argB), "BX")
	a.op("MOVQ", arg(argLdc), "R12")
	a.op("MOVQ", "$64", "R10")
}

// nextTile sets R14 to the tile of C behind the one at hand: below its rows, or at the top of the next column.
func (a *asm) nextTile(rows int) {
	below := a.fresh("below")
	a.op("MOVQ", "R12", "R14")
	a.op("IMULQ", fmt.Sprintf("$%d", rows), "R14")
	a.op("ADDQ", "R11", "R14")
	a.op("CMPQ", "R13", "$1")
	a.op("JNE", below)
	a.op("MOVQ", arg(argC), "R14")
	a.op("ADDQ", "$128", "R14")
	a.mark(below)
}

// fetchRows fetches n rows of it: a store that misses the caches waits for what it overwrites, and a few of them fill the
// store buffer.
func (a *asm) fetchRows(n int) {
	for range n {
		a.op("PREFETCHT0", "(R14)")
		a.op("PREFETCHT0", "64(R14)")
		a.op("PREFETCHT0", "127(R14)") // a row may begin within a line
		a.op("ADDQ", "R12", "R14")
	}
}

// startTiles sets tiles 0–3 (0–1 when narrow) to C, to partial sums, or to zero.
func (a *asm) startTiles(narrow bool) {
	if narrow {
		a.startPair()
		return
	}
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JLT", "zero")
	a.op("JGT", "partial")
	a.op("MOVQ", "R12", "CX")
	a.op("SHLQ", "$4", "CX")
	a.op("ADDQ", "R11", "CX")
	a.tileLoad(0, "R11", "R12", 0)
	a.tileLoad(1, "R11", "R12", 64)
	a.tileLoad(2, "CX", "R12", 0)
	a.tileLoad(3, "CX", "R12", 64)
	a.op("JMP", "begin")
	a.loadPartial(4)
	a.mark("zero")
	for t := range 4 {
		a.tileZero(t)
	}
	a.mark("begin")
}

// tileStep4 is one step of 32 along k: SI walks A's panel, R9 B's, AX the piece of B that comes next.
func (a *asm) tileStep4() {
	a.tileStream(4, "SI", "R10", 0)
	a.tileStream(5, "SI", "R10", 1024)
	a.tileLoad(6, "R9", "R10", 0)
	a.tileLoad(7, "R9", "R10", 1024)
	a.tileProduct(0, 4, 6)
	a.tileProduct(1, 4, 7)
	a.fetchB()
	a.tileProduct(2, 5, 6)
	a.tileProduct(3, 5, 7)
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R9")
}

// drainRows copies n rows of the scratch at R15 to C at DX.
func (a *asm) drainRows(n int, far bool) {
	store := "VMOVUPS"
	if far {
		store = "VMOVNTPS"
	}
	for r := range n {
		z0, z1 := a.v(2*r%16), a.v(2*r%16+1)
		a.op("VMOVUPS", fmt.Sprintf("%d(R15)", 128*r), z0)
		a.op("VMOVUPS", fmt.Sprintf("%d(R15)", 128*r+64), z1)
		a.op(store, z0, "(DX)")
		a.op(store, z1, "64(DX)")
		a.op("ADDQ", "R12", "DX")
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 128*n), "R15")
}

// loadPartial sets tiles 0 … n−1 to partial sums.
func (a *asm) loadPartial(n int) {
	a.mark("partial")
	a.op("MOVQ", arg(argPartial), "CX")
	a.op("MOVQ", "$128", "R14")
	for t := range n {
		a.tileLoad(t, "CX", "R14", t/2*2048+t%2*64)
	}
	a.op("JMP", "begin")
}

// startPair sets tiles 0–1 to the 16 rows of C at R11, to partial sums, or to zero.
func (a *asm) startPair() {
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JLT", "zero")
	a.op("JGT", "partial")
	a.tileLoad(0, "R11", "R12", 0)
	a.tileLoad(1, "R11", "R12", 64)
	a.op("JMP", "begin")
	a.loadPartial(2)
	a.mark("zero")
	a.tileZero(0)
	a.tileZero(1)
	a.mark("begin")
}

// oddStep is the last of an odd number of steps.
func (a *asm) oddStep() {
	a.op("TESTQ", "$1", arg(argSteps))
	a.op("JZ", "even")
	a.tileStream(4, "SI", "R10", 0)
	a.tileLoad(6, "R9", "R10", 0)
	a.tileLoad(7, "R9", "R10", 1024)
	a.tileProduct(0, 4, 6)
	a.tileProduct(1, 4, 7)
	a.mark("even")
}

// narrowStep is two steps of k.
func (a *asm) narrowStep() {
	a.tileStream(4, "SI", "R10", 0)
	a.tileStream(5, "SI", "R10", panelStep)
	for half := range 2 {
		a.tileLoad(6, "R9", "R10", 1024*half)
		a.tileLoad(7, "R9", "R10", 1024*half+panelStep)
		a.tileProduct(half, 4, 6)
		a.tileProduct(half, 5, 7)
		if half == 0 {
			a.fetchB()
		}
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 2*panelStep), "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", 2*panelStep), "R9")
}

// fetchB fetches four lines of the panel of B that comes next.
func (a *asm) fetchB() {
	for i := range 4 {
		a.op("PREFETCHT1", fmt.Sprintf("%d(AX)", 64*i))
	}
	a.op("ADDQ", "$256", "AX")
}

// nextColumn goes to the next panel of B, or ends with the tiles.
func (a *asm) nextColumn() {
	a.op("ADDQ", arg(argStrideB), "BX")
	a.op("ADDQ", "$128", arg(argC))
	a.op("DECQ", arg(argCols))
	a.op("JNZ", "column")
	a.tileRelease()
}

// drainRest writes out the last tile, of 8·n rows, and returns.
func (a *asm) drainRest(n int, far bool) {
	a.op("TESTQ", "DX", "DX")
	a.op("JZ", "over")
	a.op("MOVQ", arg(argScratch), "R15")
	a.op("MOVQ", fmt.Sprintf("$%d", n), "CX")
	a.mark("last")
	a.drainRows(8, far)
	a.op("DECQ", "CX")
	a.op("JNZ", "last")
	if far {
		a.op("SFENCE") // other threads may see the result as soon as the caller says so
	}
	a.mark("over")
	a.op("VZEROUPPER")
	a.op("RET")
}

// gemmHalf is the product of up to 16 rows, one panel of A: B streams from memory, so two tiles of C are enough.
// C is [16, 32·cols], padded, accumulated onto in place, and written straight away.
func (a *asm) gemmHalf() {
	a.text("gemmBF16Half", 0, 8)
	a.amxBegin()
	a.op("MOVQ", arg(argC), "R11")
	a.op("MOVQ", arg(argCols), "R13")
	a.mark("column")
	a.startPair()
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", arg(argA), "SI")
	a.op("MOVQ", arg(argSteps), "CX")
	a.mark("step")
	a.tileLoad(4, "SI", "R10", 0)
	a.tileStream(6, "R9", "R10", 0)
	a.tileProduct(0, 4, 6)
	a.tileStream(7, "R9", "R10", 1024)
	a.tileProduct(1, 4, 7)
	for i := 0; i < panelStep; i += 64 {
		a.op("PREFETCHT0", fmt.Sprintf("%d(R9)", 2*panelStep+i))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R9")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.tileStore(0, "R11", "R12", 0)
	a.tileStore(1, "R11", "R12", 64)
	a.op("ADDQ", "$128", "R11")
	a.op("ADDQ", arg(argStrideB), "BX")
	a.op("DECQ", "R13")
	a.op("JNZ", "column")
	a.tileRelease()
	a.op("RET")
}

func amxFile() []byte {
	a := newAsm(amx)
	a.include(missingFile)
	for _, d := range amxDrain {
		for _, far := range []bool{false, true} {
			a.gemmTiles(d, far, false)
			if d < 32 {
				a.gemmTiles(d, far, true)
			}
		}
	}
	a.gemmHalf()
	return a.finish()
}
