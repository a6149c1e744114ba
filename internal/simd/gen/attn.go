package main

import "fmt"

// tiles names the kernels of attention's tiles, 512 bytes from one row of logits to the next. They go through 32 rows
// at a time, so that logits never leave the first cache, and configure the tiles once for all of them.
var tiles = isa{tag: "Tile", file: "attn", lanes: 16, reg: "Z", regs: 32}

// tileRow is the bytes from a row of logits to the next.
const tileRow = 512

// attnForward attends groups of 16 rows to a tile of keys and values: logits, one step of the online softmax in units
// of log 2, and the probabilities' product with the values. While the vectors work on one group, tiles do the logits of
// the next and the values of the previous one.
type attnForward struct {
	stepper
	p   fields
	exp exp2Regs

	// During the softmax of a group:
	group  fields
	logits *reg // of the row, or the first
	panels *reg // of columns
	lines  *reg // of p
}

func emitForward(a *asm) {
	p := a.kernel("attnForward", "forwardArgs", 8, "DI")
	f := attnForward{stepper: newStepper(a), p: p, exp: holdExp2(a)}
	configTiles(a, p.at("config"))
	beginExp2(a, &f.exp)
	a.op("VBROADCASTSS", p.at("scale"), f.exp.scale)
	copyField(a, p.at("groups"), p.at("group"))
	a.mov("$64", f.line)
	f.listSteps(func() { f.addLogits(0) })
	f.takeUntil(f.end)
	a.mov("$0", p.at("before"))
	a.repeat("group", p.at("count"), func() {
		f.swap("logits")
		f.swap("p")
		f.listSteps(func() {
			a.jump(p.at("count"), 1, "JEQ", "last")
			f.addLogits(sizeOf("forwardGroup"))
			a.mark("last")
			a.jump(p.at("before"), 0, "JEQ", "first")
			f.addValues()
			a.mark("first")
		})
		f.softmaxGroup()
		f.takeUntil(f.end)
		a.mov("$1", p.at("before"))
		a.add(imm(sizeOf("forwardGroup")), p.at("group"))
	})
	f.swap("p")
	f.listSteps(f.addValues)
	f.takeUntil(f.end)
	a.use(tileRelease())
	endExp2(a)
	a.ret()
}

// copyField moves memory to memory.
func copyField(a *asm, from, to operand) {
	x := a.hold("AX", "copy")
	a.mov(from, x)
	a.mov(x, to)
	a.drop(x)
}

// swap exchanges the two pointers of a field: of this group, and of the one that the tiles work on.
func (f *attnForward) swap(field string) {
	x, y := f.hold("AX", "first"), f.hold("CX", "second")
	f.mov(f.p.at(field, 0), x)
	f.mov(f.p.at(field, 1), y)
	f.mov(x, f.p.at(field, 1))
	f.mov(y, f.p.at(field, 0))
	f.drop(x, y)
}

// listSteps makes a new list.
func (f *attnForward) listSteps(add func()) {
	f.mov(f.p.at("steps"), f.end)
	add()
	f.mov(f.p.at("steps"), f.next)
}

// addLogits lists the products of the group off bytes after the present one.
func (f *attnForward) addLogits(off int) {
	at := f.take(f.p, "group", "AX")
	of := func(field, name string) *reg {
		r := f.hold(name, field)
		f.mov(mem(at, off+offset("forwardGroup", field)), r)
		return r
	}
	q, k, panels := of("q", "SI"), of("k", "BX"), of("panels", "CX")
	logits, depth := f.hold("R11", "logits"), f.hold("R13", "depth")
	f.mov(f.p.at("logits", 1), logits)
	f.mov(f.p.at("depth"), depth)
	f.drop(at)
	f.addSteps(product{a: q, b: k, c: logits, panels: panels, depth: depth,
		sizeA: panelStep, strideB: f.p.at("strideK"), ld: imm(tileRow), start: imm(startZero)})
}

// addValues lists the products of the previous group: its p with the values, added to acc.
func (f *attnForward) addValues() {
	at := f.take(f.p, "group", "AX")
	of := func(field, name string) *reg {
		r := f.hold(name, field)
		f.mov(mem(at, offset("forwardGroup", field)-sizeOf("forwardGroup")), r)
		return r
	}
	acc, depth := of("acc", "R11"), of("panels", "R13")
	p := f.hold("SI", "p")
	f.mov(f.p.at("p", 1), p)
	v, panels := f.take(f.p, "v", "BX"), f.take(f.p, "panels", "CX")
	f.drop(at)
	f.addSteps(product{a: p, b: v, c: acc, panels: panels, depth: depth,
		sizeA: panelStep / 2, strideB: f.p.at("strideV"), ld: f.p.at("ldacc"), start: f.p.at("start")})
}

// iotaTable holds 0, 1, … 127.
func iotaTable(a *asm) {
	for i := 0; i < 128; i += 2 {
		fmt.Fprintf(&a.out, "DATA iota%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*i, i+1, i)
	}
	fmt.Fprintf(&a.out, "GLOBL iota%s<>(SB), RODATA|NOPTR, $512\n", a.tag)
}

func attnFile() []byte {
	a := newAsm(tiles)
	a.include(missingFile)
	emitForward(a)
	for maps := 1; maps <= 2; maps++ {
		emitGrad(a, maps)
	}
	productTiles(a)
	dots(a)
	logSums(a)
	normRows(a)
	emitNormBack(a)
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			scaleRows(a, far, half)
			turnRows(a, far, half)
		}
	}
	byteTable(a)
	iotaTable(a)
	return a.finish()
}

func declareAttn(declare func(format string, a ...any)) {
	declare("attnForwardTile(p *forwardArgs)")
	declare("attnGrad1Tile(p *gradArgs)")
	declare("attnGrad2Tile(p *gradArgs)")
	declare("productTile(p *productArgs)")
	declare("dotsTile(p *dotsArgs)")
	declare("logSumsTile(top, sum *float32, n int)")
	declare("normRowsTile(p *normRowsArgs)")
	declare("normBackTile(p *normBackArgs)")
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			declare("%sTile(p *outArgs)", scaleName(far, half))
			declare("%sTile(p *outArgs)", turnName(far, half))
		}
	}
}
