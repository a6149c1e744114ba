package main

import (
	"bytes"
	"fmt"
	"slices"
)

// panelStep is the bytes of a panel of 32 rows or columns for 32 elements of k.
const panelStep = 2048

// amxDrain lists the wide kernels by the rows of the previous tile that each step of k writes out; narrow ones have
// half of each.
var amxDrain = []int{2, 4, 8, 16, 32}

// gemmTiles emits C[32·rows, 32·cols] (+)= A·B on packed bfloat16 panels. A panel of B stays in L1 while A's stream
// past it from L2, loaded so as not to evict it. Tiles 0–3 hold 32 × 32 elements of C, 4–5 a step of A, 6 one half of
// B's after the other: 4 products of 16 cycles for 4 loads of 8.
//
// Writing C costs as much as multiplying. A finished tile goes to a scratch of 4 KiB; the steps of the next tile write
// it to C, drain rows each, overlapped with the products; with non-temporal stores when far, which avoids reading lines
// that are overwritten.
//
// Tile instructions each need a fresh physical tile register, of which a core has few besides those in use, and half as
// many while the other hyperthread is busy: then a kernel is faster the fewer tiles it uses. The narrow form uses four:
// 16 × 32 elements of C in tiles 0–1, A in 4, B in 6. It loads half as much again, but is then faster by a fifth. The
// sums are the same.
//
// A's tiles are 16 rows with a pitch of rowA bytes, of 32 elements of k each; the next 16 rows are halfA further, the
// next elements stepA further: packed panels, or unpacked rows. C is float32 or, with halves, bfloat16: then a row of a
// tile is one line, rounded when stored.
type gemmTiles struct {
	*asm
	tileForm
	p fields

	panelB           *reg
	ahead            *reg // next line to prefetch
	line             *reg // 64
	ldc, rowA, stepA *reg
	rows, lower, b   *reg // the step's 16 rows of A, its other 16, and its part of B
	done             *reg // where the previous tile goes, or 0
	scratch          *reg // where it is
	other            *reg // tile of C to prefetch, or to begin with
	sums             []*reg
	left             []*reg // tiles of A
	right            *reg   // tile of B
	drained          []*reg
}

// amxKernel begins a kernel on tileArgs.
func amxKernel(a *asm, name string, frame int) gemmTiles {
	k := gemmTiles{asm: a, p: a.kernel(name, "tileArgs", frame, "DI")}
	configTiles(a, k.p.at("config"))
	k.panelB, k.ldc, k.line = a.take(k.p, "b", "BX"), a.take(k.p, "ldc", "R12"), a.hold("R10", "64")
	a.mov("$64", k.line)
	return k
}

func emitGemmTiles(a *asm, f tileForm) {
	k := amxKernel(a, f.name(), 8)
	k.tileForm = f
	k.rowA, k.stepA = a.take(k.p, "rowA", "R8"), a.take(k.p, "stepA", "R11")
	k.done, k.scratch = a.hold("DX", "place of the previous tile"), a.hold("R15", "scratch")
	k.other = a.hold("R14", "another tile of C")
	k.rows, k.b, k.ahead = a.hold("SI", "rows of A"), a.hold("R9", "step of B"), a.hold("AX", "next line to prefetch")
	k.sums, k.right, k.drained = a.tmms(0, len(f.order()), "C"), a.tmm(6, "B"), a.vecs(0, 16, "rows of C")
	k.left = a.tmms(4, f.height()/16, "A")
	if !f.narrow {
		k.lower = a.hold("R13", "lower rows of A")
	}
	a.zero(k.done)
	k.startTiles()
	a.repeat("column", k.p.at("cols"), func() {
		k.startColumn()
		a.repeat("panel", k.p.at("left"), func() {
			if !f.halves {
				k.startFromC()
			}
			a.mov(k.panelB, k.b)
			a.mov(k.p.at("panelA"), k.rows)
			if !f.narrow {
				a.mov(k.p.at("halfA"), k.lower)
				a.add(k.rows, k.lower)
			}
			k.loopOverK()
			k.park()
			k.nextPanel()
		})
		a.add(k.p.at("strideB"), k.panelB)
		a.add(imm(f.width()), k.p.at("c"))
	})
	a.use(tileRelease())
	k.drainRest()
}

// tileForm is one of the kernels: wide or narrow, rows of the previous tile that each step writes out, to float32 or
// bfloat16, around the caches.
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

// height is the rows of a tile.
func (f tileForm) height() int {
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

// order is the numbers of the tiles with sums, in the order in which a step finishes them.
func (f tileForm) order() []int {
	if f.narrow {
		return []int{0, 1}
	}
	return []int{0, 2, 1, 3}
}

// startColumn begins with A, at the top of C.
func (k *gemmTiles) startColumn() {
	x := k.hold("CX", "copy")
	copy := func(from, to string) {
		k.mov(k.p.at(from), x)
		k.mov(x, k.p.at(to))
	}
	copy("a", "panelA")
	copy("c", "tile")
	if k.narrow {
		copy("halfA", "next") // from the first half of a panel of A to the second
	}
	k.mov(k.p.at("rows"), x)
	if k.narrow {
		k.shl(1, x)
	}
	k.mov(x, k.p.at("left"))
	k.mov(k.p.at("ahead"), k.ahead)
	k.mov(k.p.at("strideAhead"), x)
	k.add(x, k.p.at("ahead"))
	k.drop(x)
}

// loopOverK runs over k. Meanwhile it writes the previous tile to C, if there is one, and prefetches the place where
// the next one goes. Partial sums are not prefetched: that takes longer than waiting for them.
func (k *gemmTiles) loopOverK() {
	step := k.wideStep
	if k.narrow {
		step = k.narrowStep
	}
	left := k.take(k.p, "steps", "CX")
	k.op("TESTQ", k.done, k.done)
	k.op("JZ", "idle")
	k.mov(k.p.at("scratch"), k.scratch)
	k.sideTurns(left, func() {
		step()
		k.drainRows(k.drain)
		if !k.far {
			k.prefetchRows()
		}
	})
	k.repeat("plain", left, step)
	k.op("JMP", "finished")
	k.mark("idle")
	k.jump(k.p.at("load"), 1, "JNE", "plain")
	if !k.far && !k.halves { // C is wanted for the sums it holds
		k.sideTurns(left, func() {
			step()
			k.prefetchRows()
		})
	}
	k.op("JMP", "plain")
	k.mark("finished")
	k.drop(left)
}

// sideTurns are the first iterations, in which other work overlaps the products. It falls through if others are left.
func (k *gemmTiles) sideTurns(left *reg, turn func()) {
	turns := k.height() / k.drain
	again := k.fresh("turn")
	k.sub(imm(turns), left)
	k.mov(left, "rest-8(SP)")
	k.mov(imm(turns), left)
	if !k.far {
		k.nextTile()
	}
	k.repeat(again, left, turn)
	k.mov("rest-8(SP)", left)
	k.op("TESTQ", left, left)
	k.op("JZ", "finished")
}

// nextPanel goes to the next panel of A, or half of one, and the tile of C below.
func (k *gemmTiles) nextPanel() {
	by, shift := k.hold("CX", "stride"), 5
	if k.narrow {
		shift = 4
		k.mov(k.p.at("next"), by)
		k.add(by, k.p.at("panelA"))
		k.op("NEGQ", by)
		k.add(k.p.at("strideA"), by)
		k.mov(by, k.p.at("next"))
	} else {
		k.mov(k.p.at("strideA"), by)
		k.add(by, k.p.at("panelA"))
	}
	k.mov(k.ldc, by)
	k.shl(shift, by)
	k.add(by, k.p.at("tile"))
	k.drop(by)
}

// wideStep is one step of 32 along k for 32 rows.
func (k *gemmTiles) wideStep() {
	for half, rows := range []*reg{k.rows, k.lower} {
		k.use(streamTile(k.left[half], rows, k.rowA, 0))
		k.gap()
	}
	for col := range 2 {
		k.use(loadTile(k.right, k.b, k.line, 1024*col))
		k.gap()
		for half := range 2 {
			k.use(multiplyTiles(k.sums[2*half+col], k.left[half], k.right))
			k.gap()
		}
	}
	k.add(k.stepA, k.lower)
	k.nextStep(4)
}

// narrowStep is one step for 16 rows.
func (k *gemmTiles) narrowStep() {
	k.use(streamTile(k.left[0], k.rows, k.rowA, 0))
	k.gap()
	for col := range 2 {
		k.use(loadTile(k.right, k.b, k.line, 1024*col))
		k.gap()
		k.use(multiplyTiles(k.sums[col], k.left[0], k.right))
		k.gap()
	}
	k.nextStep(2)
}

// nextStep advances along k, and prefetches n lines of what is needed after this column, usually the next panel of B.
func (k *gemmTiles) nextStep(n int) {
	for i := range n {
		k.op("PREFETCHT1", mem(k.ahead, 64*i))
	}
	k.add(imm(64*n), k.ahead)
	k.add(k.stepA, k.rows)
	k.add(imm(panelStep), k.b)
}

// gap keeps tile instructions apart: if the other hyperthread is busy, instructions that follow each other closely take
// half as long again. Otherwise it costs nothing.
func (a *asm) gap() {
	a.use(raw("GAP", []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, "8 × nop"))
}

func amxFile() []byte {
	a := newAsm(amx)
	a.include(missingFile)
	for _, f := range tileForms() {
		emitGemmTiles(a, f)
	}
	gemmHalf(a)
	widenTiles(a)
	return a.finish()
}

// declareTiles declares them and gathers the tiles by [float32, bfloat16][near, far][wide, narrow][for at least 1, 2,
// 4, 8 and 16 steps of k].
func declareTiles(out *bytes.Buffer, declare func(format string, a ...any)) {
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
