package main

import (
	"bytes"
	"fmt"
	"slices"
)

// tileArgs are the byte offsets of the fields of simd.tileArgs.
const (
	argA, argB, argC, argScratch, argConfig  = 0, 8, 16, 24, 32
	argLdc, argSteps, argRows, argCols       = 40, 48, 56, 64
	argStrideA, argStrideB, argLoad, argNext = 72, 80, 88, 96
	argPartial, argKeep                      = 104, 112
	argRowA, argHalfA, argStepA              = 120, 128, 136
	argPanelA, argTile, argLeft              = 144, 152, 160 // the kernel's own

	panelStep = 2048 // bytes of a panel of 32 rows or columns per 32 steps of k
)

// amxDrain lists the wide kernels by the rows of the tile before that each step of k writes out; narrow ones have half of each.
var amxDrain = []int{2, 4, 8, 16, 32}

// gemmTiles emits C[32·rows, 32·cols] (+)= A·B on packed bfloat16 panels. A panel of B stays in the first cache while
// A's stream past it from the second, loaded so as not to push it out. Tiles 0–3 hold 32 × 32 elements of C, 4–5 a
// step of A, 6 one half of B's after the other: 4 products of 16 cycles for 4 loads of 8.
//
// Writing C costs as much as multiplying. A finished tile goes to a scratch of 4 KiB; the steps of the next tile
// write it to C, drain rows each, in the shadow of the products; around the caches when far, which spares reading
// what is overwritten.
//
// Tile instructions need a fresh tile register each, of which a core has few to spare beside those in use, and half as many once a
// neighbour keeps its other half busy: then a kernel is the faster the fewer tiles it uses. The narrow form uses four: 16 × 32
// elements of C in tiles 0–1, A in 4, B in 6. It loads half as much again, but is then faster by a fifth. The sums are the same.
//
// A's tiles are 16 rows, argRowA bytes apart, of 32 elements of k each; argHalfA further on are the next 16 rows, argStepA further on the next
// elements: packed panels, or rows as they lie. C is float32 or, with halves, bfloat16: then a row of a tile is one line, rounded on its way.
func (a *asm) gemmTiles(f tileForm) {
	a.text(f.name(), 8, 8)
	a.amxBegin()
	a.op("MOVQ", arg(argRowA), "R8")
	a.op("MOVQ", arg(argStepA), "R11")
	a.op("XORL", "DX", "DX") // where the tile before goes: nowhere yet
	a.startTiles(f.narrow)
	a.mark("column")
	a.startColumn(f)
	a.mark("panel")
	if !f.halves {
		a.startFromC(f)
	}
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", arg(argPanelA), "SI")
	if !f.narrow {
		a.op("MOVQ", arg(argHalfA), "R13")
		a.op("ADDQ", "SI", "R13")
	}
	a.op("MOVQ", arg(argSteps), "CX")
	a.tileKLoop(f)
	a.parkTile(f)
	a.nextPanel(f)
	a.nextColumn(f)
	a.drainRest(f)
}

// tileForm is one of the kernels: wide or narrow, rows of the tile before that each step writes out, to float32 or bfloat16, around the caches.
type tileForm struct {
	drain               int
	halves, far, narrow bool
}

// tileForms are all of them, by the steps of k that they are for.
func tileForms() (all []tileForm) {
	for _, halves := range []bool{false, true} {
		for _, far := range []bool{false, true} {
			for _, d := range amxDrain {
				all = append(all, tileForm{d, halves, far, false}, tileForm{d / 2, halves, far, true})
			}
		}
	}
	return all
}

func (f tileForm) name() string {
	form, elem, way := "Wide", "", "Near"
	if f.narrow {
		form = "Narrow"
	}
	if f.halves {
		elem = "Halves"
	}
	if f.far {
		way = "Far"
	}
	return fmt.Sprintf("gemmBF16%s%s%s%d", form, elem, way, f.drain)
}

// rows is the height of a tile.
func (f tileForm) rows() int {
	if f.narrow {
		return 16
	}
	return 32
}

// width is the bytes of a row of a tile of C.
func (f tileForm) width() int {
	if f.halves {
		return 64
	}
	return 128
}

// startColumn begins with A, at the top of C. AX is the next panel of B, wanted next.
func (a *asm) startColumn(f tileForm) {
	move := func(from, to int) {
		a.op("MOVQ", arg(from), "CX")
		a.op("MOVQ", "CX", arg(to))
	}
	move(argA, argPanelA)
	move(argC, argTile)
	if f.narrow {
		move(argHalfA, argNext) // from the first half of a panel of A to the second
	}
	a.op("MOVQ", arg(argRows), "CX")
	if f.narrow {
		a.op("SHLQ", "$1", "CX")
	}
	a.op("MOVQ", "CX", arg(argLeft))
	a.op("MOVQ", arg(argStrideB), "AX")
	a.op("ADDQ", "BX", "AX")
}

// tileKLoop runs over k, CX turns of it. Meanwhile it writes the tile before to C, if there is one, and fetches the place where
// the next one goes. Sums put aside are not fetched: that takes longer than waiting for them.
func (a *asm) tileKLoop(f tileForm) {
	step := a.tileStep4
	if f.narrow {
		step = a.narrowStep
	}
	a.op("TESTQ", "DX", "DX")
	a.op("JZ", "idle")
	a.op("MOVQ", arg(argScratch), "R15")
	a.sideTurns(f, func() {
		step()
		a.drainRows(f, f.drain)
		if !f.far {
			a.fetchRows(f)
		}
	})
	a.mark("plain")
	step()
	a.op("DECQ", "CX")
	a.op("JNZ", "plain")
	a.op("JMP", "finished")
	a.mark("idle")
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JNE", "plain")
	if !f.far && !f.halves { // C is wanted for the sums it holds
		a.sideTurns(f, func() {
			step()
			a.fetchRows(f)
		})
	}
	a.op("JMP", "plain")
	a.mark("finished")
}

// sideTurns are the first ones, in which something is done beside the products. It falls through if others are left.
func (a *asm) sideTurns(f tileForm, turn func()) {
	again := a.fresh("turn")
	a.op("SUBQ", fmt.Sprintf("$%d", f.rows()/f.drain), "CX")
	a.op("MOVQ", "CX", "rest-8(SP)")
	a.op("MOVQ", fmt.Sprintf("$%d", f.rows()/f.drain), "CX")
	if !f.far {
		a.nextTile(f)
	}
	a.mark(again)
	turn()
	a.op("DECQ", "CX")
	a.op("JNZ", again)
	a.op("MOVQ", "rest-8(SP)", "CX")
	a.op("TESTQ", "CX", "CX")
	a.op("JZ", "finished")
}

// parkTile puts the finished tile into the scratch, for DX, or where partial sums wait for the next run of k. Each tile register begins
// the next tile, with zero or its partial sums, as soon as it is stored.
func (a *asm) parkTile(f tileForm) {
	a.op("MOVQ", arg(argScratch), "R15")
	a.op("MOVQ", arg(argTile), "DX")
	a.op("CMPQ", arg(argKeep), "$0")
	a.op("JEQ", "park")
	a.op("MOVQ", arg(argPartial), "R15")
	a.op("XORL", "DX", "DX")
	a.mark("park")
	tiles := sumTiles(f.narrow)
	a.op("ADDQ", fmt.Sprintf("$%d", 1024*len(tiles)), arg(argPartial))
	a.op("MOVQ", "$128", "R14")
	store := func(t int) {
		a.tileStore(t, "R15", "R14", t/2*2048+t%2*64)
		a.gap()
	}
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JLT", "tozero")
	a.op("JGT", "topartial")
	for _, t := range tiles {
		store(t)
	}
	a.op("JMP", "parked")
	a.mark("tozero")
	for _, t := range tiles {
		store(t)
		a.tileZero(t)
		a.gap()
	}
	a.op("JMP", "parked")
	a.mark("topartial")
	a.op("MOVQ", arg(argPartial), "CX")
	for _, t := range tiles {
		store(t)
		a.tileLoad(t, "CX", "R14", t/2*2048+t%2*64)
		a.gap()
	}
	a.mark("parked")
}

// sumTiles are the tiles with sums, in the order in which a step finishes them.
func sumTiles(narrow bool) []int {
	if narrow {
		return []int{0, 1}
	}
	return []int{0, 2, 1, 3}
}

// nextPanel goes to the next panel of A, or half of one, and the tile of C below.
func (a *asm) nextPanel(f tileForm) {
	shift := "$5"
	if f.narrow {
		shift = "$4"
		a.op("MOVQ", arg(argNext), "CX")
		a.op("ADDQ", "CX", arg(argPanelA))
		a.op("NEGQ", "CX")
		a.op("ADDQ", arg(argStrideA), "CX")
		a.op("MOVQ", "CX", arg(argNext))
	} else {
		a.op("MOVQ", arg(argStrideA), "CX")
		a.op("ADDQ", "CX", arg(argPanelA))
	}
	a.op("MOVQ", "R12", "CX")
	a.op("SHLQ", shift, "CX")
	a.op("ADDQ", "CX", arg(argTile))
	a.op("DECQ", arg(argLeft))
	a.op("JNZ", "panel")
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
func (a *asm) nextTile(f tileForm) {
	below := a.fresh("below")
	a.op("MOVQ", "R12", "R14")
	a.op("IMULQ", fmt.Sprintf("$%d", f.rows()), "R14")
	a.op("ADDQ", arg(argTile), "R14")
	a.op("CMPQ", arg(argLeft), "$1")
	a.op("JNE", below)
	a.op("MOVQ", arg(argC), "R14")
	a.op("ADDQ", fmt.Sprintf("$%d", f.width()), "R14")
	a.mark(below)
}

// fetchRows fetches as many rows of it as are written in a step: a store that misses the caches waits for what it overwrites, and a few of them fill the
// store buffer.
func (a *asm) fetchRows(f tileForm) {
	for range f.drain {
		for at := 0; at < f.width(); at += 64 {
			a.op("PREFETCHT0", fmt.Sprintf("%d(R14)", at))
		}
		a.op("PREFETCHT0", fmt.Sprintf("%d(R14)", f.width()-1)) // a row may begin within a line
		a.op("ADDQ", "R12", "R14")
	}
}

// startTiles sets the first tile to zero, or to partial sums; one that begins with C waits for startFromC.
func (a *asm) startTiles(narrow bool) {
	tiles := sumTiles(narrow)
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JEQ", "column")
	a.op("JGT", "partial")
	for _, t := range tiles {
		a.tileZero(t)
	}
	a.op("JMP", "column")
	a.mark("partial")
	a.op("MOVQ", arg(argPartial), "CX")
	a.op("MOVQ", "$128", "R14")
	for _, t := range tiles {
		a.tileLoad(t, "CX", "R14", t/2*2048+t%2*64)
	}
}

// startFromC sets a tile to what is in C, if it is to begin with that.
func (a *asm) startFromC(f tileForm) {
	a.op("CMPQ", arg(argLoad), "$1")
	a.op("JNE", "begin")
	a.op("MOVQ", arg(argTile), "R14")
	a.op("MOVQ", "R12", "CX")
	a.op("SHLQ", "$4", "CX")
	a.op("ADDQ", "R14", "CX")
	for _, t := range sumTiles(f.narrow) {
		a.tileLoad(t, []string{"R14", "CX"}[t/2], "R12", t%2*64)
		a.gap()
	}
	a.mark("begin")
}

// tileStep4 is one step of 32 along k: SI and R13 walk along A's rows, R9 along B's panel, AX along the piece of B that comes next.
func (a *asm) tileStep4() {
	for half, rows := range []string{"SI", "R13"} {
		a.tileStream(4+half, rows, "R8", 0)
		a.gap()
	}
	for col := range 2 {
		a.tileLoad(6, "R9", "R10", 1024*col)
		a.gap()
		for half := range 2 {
			a.tileProduct(2*half+col, 4+half, 6)
			a.gap()
		}
	}
	a.op("ADDQ", "R11", "R13")
	a.nextStep(4)
}

// gap keeps tile instructions apart: beside a busy neighbour, ones that follow each other closely take half as long again. Alone it
// costs nothing.
func (a *asm) gap() {
	a.raw("GAP", []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, "8 × nop")
}

// drainRows copies n rows of the scratch at R15 to C at DX.
func (a *asm) drainRows(f tileForm, n int) {
	store := "VMOVUPS"
	if f.far {
		store = "VMOVNTPS"
	}
	for r := range n {
		z := 2 * r % 16
		a.op("VMOVUPS", fmt.Sprintf("%d(R15)", 128*r), a.v(z))
		a.op("VMOVUPS", fmt.Sprintf("%d(R15)", 128*r+64), a.v(z+1))
		if f.halves {
			a.narrowPair(z, z+1, z)
		} else {
			a.op(store, a.v(z+1), "64(DX)")
		}
		a.op(store, a.v(z), "(DX)")
		a.op("ADDQ", "R12", "DX")
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 128*n), "R15")
}

// narrowStep is one step for 16 rows.
func (a *asm) narrowStep() {
	a.tileStream(4, "SI", "R8", 0)
	a.gap()
	for col := range 2 {
		a.tileLoad(6, "R9", "R10", 1024*col)
		a.gap()
		a.tileProduct(col, 4, 6)
		a.gap()
	}
	a.nextStep(2)
}

// nextStep goes on along k, and fetches n lines of the panel of B that comes next.
func (a *asm) nextStep(n int) {
	for i := range n {
		a.op("PREFETCHT1", fmt.Sprintf("%d(AX)", 64*i))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", 64*n), "AX")
	a.op("ADDQ", "R11", "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R9")
}

// nextColumn goes to the next panel of B, or ends with the tiles.
func (a *asm) nextColumn(f tileForm) {
	a.op("ADDQ", arg(argStrideB), "BX")
	a.op("ADDQ", fmt.Sprintf("$%d", f.width()), arg(argC))
	a.op("DECQ", arg(argCols))
	a.op("JNZ", "column")
	a.tileRelease()
}

// drainRest writes out the last tile and returns.
func (a *asm) drainRest(f tileForm) {
	a.op("TESTQ", "DX", "DX")
	a.op("JZ", "over")
	a.op("MOVQ", arg(argScratch), "R15")
	a.op("MOVQ", fmt.Sprintf("$%d", f.rows()/8), "CX")
	a.mark("last")
	a.drainRows(f, 8)
	a.op("DECQ", "CX")
	a.op("JNZ", "last")
	if f.far {
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
	a.tileZero(0)
	a.tileZero(1)
	a.op("MOVQ", "R11", arg(argTile))
	a.startFromC(tileForm{narrow: true})
	a.op("MOVQ", "BX", "R9")
	a.op("MOVQ", arg(argA), "SI")
	a.op("MOVQ", arg(argSteps), "CX")
	a.op("MOVQ", arg(argStrideB), "R14")
	a.op("ADDQ", "BX", "R14")
	a.op("MOVQ", "CX", "R8")
	a.op("IMULQ", fmt.Sprintf("$%d", panelStep/4), "R8")
	a.op("LEAQ", "(R8)(R8*2)", "R15")
	a.mark("step")
	a.tileLoad(4, "SI", "R10", 0)
	a.gap()
	for col := range 2 {
		a.tileStream(6, "R9", "R10", 1024*col)
		a.gap()
		a.tileProduct(col, 4, 6)
		a.gap()
	}
	for i := 0; i < panelStep; i += 64 {
		a.op("PREFETCHT0", fmt.Sprintf("%d(R9)", 2*panelStep+i))
	}
	for i := range panelStep / 64 { // of the next panel, a quarter of them from each of its quarters: memory serves four streams faster than one
		a.op("PREFETCHT1", fmt.Sprintf("%d"+[]string{"(R14)", "(R14)(R8*1)", "(R14)(R8*2)", "(R14)(R15*1)"}[i%4], 64*(i/4)))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep/4), "R14")
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

// widenTiles copies rows × cols panels of C, of bfloat16, to where partial sums wait: tile after tile, down the columns.
func (a *asm) widenTiles() {
	a.text("widenTiles", 0, 40)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "BX")
	a.op("MOVQ", "ld+16(FP)", "R8")
	a.op("MOVQ", "cols+32(FP)", "DX")
	a.op("MOVQ", "R8", "R9")
	a.op("SHLQ", "$4", "R9") // rows ahead
	a.mark("column")
	a.op("MOVQ", "BX", "SI")
	a.op("MOVQ", "rows+24(FP)", "CX")
	a.op("SHLQ", "$5", "CX")
	a.mark("row")
	a.op("PREFETCHT0", "(SI)(R9*1)")
	for i := range 2 {
		a.op("VPMOVZXWD", fmt.Sprintf("%d(SI)", 32*i), a.v(i))
		a.op("VPSLLD", "$16", a.v(i), a.v(i))
		a.op("VMOVUPS", a.v(i), fmt.Sprintf("%d(DI)", 64*i))
	}
	a.op("ADDQ", "R8", "SI")
	a.op("ADDQ", "$128", "DI")
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.op("ADDQ", "$64", "BX")
	a.op("DECQ", "DX")
	a.op("JNZ", "column")
	a.op("VZEROUPPER")
	a.op("RET")
}

func amxFile() []byte {
	a := newAsm(amx)
	a.include(missingFile)
	for _, f := range tileForms() {
		a.gemmTiles(f)
	}
	a.gemmHalf()
	a.widenTiles()
	return a.finish()
}

// tileStubs declares them and gathers the tiles by [float32, bfloat16][near, far][wide, narrow][for at least 1, 2, 4, 8 and 16 steps of k].
func tileStubs(out *bytes.Buffer, declare func(format string, a ...any)) {
	for _, f := range tileForms() {
		declare("%sAMX(p *tileArgs)", f.name())
	}
	declare("gemmBF16HalfAMX(p *tileArgs)")
	declare("widenTilesAMX(dst *float32, src *uint16, ld, rows, cols int)")
	out.WriteString("\nvar tileKernels = [2][2][2][5]func(*tileArgs){\n")
	for _, halves := range []bool{false, true} {
		out.WriteString("{")
		for _, far := range []bool{false, true} {
			out.WriteString("{\n")
			for _, narrow := range []bool{false, true} {
				out.WriteString("{")
				for _, d := range slices.Backward(amxDrain) {
					f := tileForm{d, halves, far, narrow}
					if narrow {
						f.drain /= 2
					}
					fmt.Fprintf(out, "%sAMX,", f.name())
				}
				out.WriteString("},\n")
			}
			out.WriteString("},")
		}
		out.WriteString("},\n")
	}
	out.WriteString("}\n")
}
