package main

import "fmt"

// tiles names the kernels of attention's tiles, 512 bytes from one row of logits to the next. They go through 32 rows
// at a time, so that logits never leave the first cache, and configure the tiles once for all of them.
var tiles = isa{tag: "Tile", file: "attn", lanes: 16, reg: "Z", regs: 32}

// tileRow is the bytes from a row of logits to the next.
const tileRow = 512

// exp2Regs are the registers of exp2: the logits' scale and a polynomial's coefficients.
type exp2Regs struct{ scale, c3, c2, c1, one any }

// numberedExp2 are those of kernels that number their registers.
var numberedExp2 = exp2Regs{"Z31", "Z30", "Z29", "Z28", "Z27"}

// exp2Regs holds them.
func (a *asm) exp2Regs() exp2Regs {
	return exp2Regs{a.vec(31, "scale"), a.vec(30, "c3"), a.vec(29, "c2"), a.vec(28, "c1"), a.vec(27, "1")}
}

// exp2 sets dst to 2^x, 0 below the smallest normal number where such are zero; f is lost. x = n + f with n = floor(x),
// and 2^f = 1 + f·(c1 + f·(c2 + f·c3)) to 9e-5: the result will be rounded to bfloat16.
func (a *asm) exp2(c *exp2Regs, dst, x, f any) {
	a.op("VREDUCEPS", "$9", x, f)
	a.op("VMOVAPS", f, dst)
	a.op("VFMADD213PS", c.c2, c.c3, dst)
	a.op("VFMADD213PS", c.c1, f, dst)
	a.op("VFMADD213PS", c.one, f, dst)
	a.op("VSCALEFPS", x, dst, dst)
}

// exp2Begin loads the coefficients and makes subnormal numbers zero; exp2End takes that back. The frame has 8 bytes for
// it.
func (a *asm) exp2Begin(c *exp2Regs) {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	a.op("VMOVUPS", a.constant(0.07706857673539672), c.c3)
	a.op("VMOVUPS", a.constant(0.22764331991013126), c.c2)
	a.op("VMOVUPS", a.constant(0.6951171637762403), c.c1)
	a.op("VMOVUPS", a.constant(1), c.one)
}

func (a *asm) exp2End() { a.op("LDMXCSR", "mode-8(SP)") }

// fold16 turns the reductions of 16 vectors into the lanes of the first, in order; t and u are used on the way.
func (a *asm) fold16(op string, x []*reg, t, u *reg) {
	merge := func(n int, low, high string, imm ...any) {
		for i := range n {
			first, second := x[2*i], x[2*i+1]
			if len(imm) == 0 {
				a.op(low, second, first, t)
				a.op(high, second, first, u)
			} else {
				a.op(low, imm[0], second, first, t)
				a.op(high, imm[1], second, first, u)
			}
			a.op(op, u, t, x[i])
		}
	}
	merge(8, "VUNPCKLPS", "VUNPCKHPS")
	merge(4, "VUNPCKLPD", "VUNPCKHPD")
	merge(2, "VSHUFF32X4", "VSHUFF32X4", "$0x44", "$0xEE")
	merge(1, "VSHUFF32X4", "VSHUFF32X4", "$0x88", "$0xDD")
}

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

func (a *asm) attnForward() {
	p := a.kernel("attnForward", "forwardArgs", 8, "DI")
	f := attnForward{stepper: a.stepper(), p: p, exp: a.exp2Regs()}
	a.configTiles(p.at("config"))
	a.exp2Begin(&f.exp)
	a.op("VBROADCASTSS", p.at("scale"), f.exp.scale)
	a.copy(p.at("groups"), p.at("group"))
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
	a.tileRelease()
	a.exp2End()
	a.ret()
}

// copy moves memory to memory.
func (a *asm) copy(from, to operand) {
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
func (a *asm) iotaTable() {
	for i := 0; i < 128; i += 2 {
		fmt.Fprintf(&a.out, "DATA iota%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*i, i+1, i)
	}
	fmt.Fprintf(&a.out, "GLOBL iota%s<>(SB), RODATA|NOPTR, $512\n", a.tag)
}

// softmaxGroup is the softmax of the present group. Meanwhile steps are taken: as many after each row that they end
// with the last.
func (f *attnForward) softmaxGroup() {
	f.group = fields{"forwardGroup", f.take(f.p, "group", "R12")}
	f.logits = f.hold("SI", "logits")
	f.mov(f.p.at("logits", 0), f.logits)
	f.panels = f.take(f.group, "panels", "R13")
	f.maskGroup()
	tops := f.rowTops()
	f.raiseTops(tops)
	f.stepRate()
	f.lines = f.hold("BX", "lines of p")
	f.mov(f.p.at("p", 0), f.lines)
	f.expRows()
	f.drop(f.group.base.(*reg), f.logits, f.panels, f.lines)
}

// maskGroup sets logits to −Inf outside of each row's columns lo … hi−1, if they are masked.
func (f *attnForward) maskGroup() {
	f.jump(f.group.at("masked"), 0, "JEQ", "masked")
	m := maskRegs{lo: f.take(f.group, "lo", "R9"), hi: f.take(f.group, "hi", "R11"),
		columns: f.hold("R14", "numbers of columns"), at: f.hold("AX", "logits of the panel")}
	left := f.hold("CX", "panels left")
	f.lea(operand(fmt.Sprintf("iota%s<>(SB)", f.tag)), m.columns)
	f.mov(f.logits, m.at)
	f.mov(f.panels, left)
	f.repeat("mask", left, func() {
		f.maskPanel(m, 16, tileRow, 1)
		f.add("$128", m.at)
		f.add("$128", m.columns)
	})
	f.mark("masked")
	f.drop(m.lo, m.hi, m.columns, m.at, left)
}

// maskRegs are the operands of maskPanel: rows' lo and hi, the columns' numbers, the first row's logits.
type maskRegs struct{ lo, hi, columns, at *reg }

// maskPanel masks rows of 32 logits, step bytes apart, and those of a second map a unit further on, if any row's
// columns begin or end among them.
func (a *asm) maskPanel(m maskRegs, rows, step, maps int) {
	label, whole := a.fresh("maskrow"), a.fresh("maskno")
	below, above, any := a.hold("K1", "below lo"), a.hold("K2", "not below hi"), a.hold("K3", "any")
	lo, hi := a.vec(0, "lo"), a.vec(1, "hi")
	first, last := a.vec(2, "first column, then −Inf"), a.vec(3, "last column, then 16 of them")
	more := a.vec(4, "16 more")
	at, row := a.hold("BX", "logits of the row"), a.hold("DX", "row")
	a.op("VPBROADCASTD", mem(m.columns), first)
	a.op("VPBROADCASTD", mem(m.columns, 124), last)
	a.op("KXORW", any, any, any)
	for i := 0; i < rows; i += 16 {
		a.op("VPCMPD", "$1", mem(m.lo, 4*i), first, below)
		a.op("VPCMPD", "$5", mem(m.hi, 4*i), last, above)
		a.op("KORW", below, any, any)
		a.op("KORW", above, any, any)
	}
	a.op("KORTESTW", any, any)
	a.op("JEQ", whole)
	inf := first
	a.op("VMOVUPS", a.bits(negInf), inf)
	a.op("VMOVDQU64", mem(m.columns), last)
	a.op("VMOVDQU64", mem(m.columns, 64), more)
	a.mov(m.at, at)
	a.zero(row)
	a.mark(label)
	a.op("VPBROADCASTD", indexed(m.lo, row, 4), lo)
	a.op("VPBROADCASTD", indexed(m.hi, row, 4), hi)
	for half, columns := range []*reg{last, more} {
		a.op("VPCMPD", "$1", lo, columns, below)
		a.op("VPCMPD", "$5", hi, columns, above)
		a.op("KORW", below, above, below)
		for m := range maps {
			a.op("VMOVUPS", inf, below, mem(at, m*unitSize+64*half))
		}
	}
	a.add(imm(step), at)
	a.op("INCQ", row)
	a.jump(row, rows, "JLT", label)
	a.mark(whole)
	a.drop(below, above, any, lo, hi, first, last, more, at, row)
}

// rowTops is the largest logits of the 16 rows, in Z0.
func (f *attnForward) rowTops() *reg {
	at, left := f.hold("AX", "logits of the panel"), f.hold("CX", "panels left")
	tops, temp := f.vecs(0, 16, "tops"), f.vecs(16, 2, "temporary")
	f.mov(f.logits, at)
	f.mov(f.panels, left)
	for r, top := range tops {
		f.op("VMOVUPS", mem(at, r*tileRow), top)
	}
	f.repeat("tops", left, func() {
		for r, top := range tops {
			f.op("VMAXPS", mem(at, r*tileRow), top, top)
			f.op("VMAXPS", mem(at, r*tileRow+64), top, top)
		}
		f.add("$128", at)
	})
	f.fold16("VMAXPS", tops, temp[0], temp[1])
	f.drop(at, left)
	f.drop(temp...)
	f.drop(tops[1:]...)
	return tops[0]
}

// raiseTops updates top, scales sums and, unless they are the first, accumulated rows down, and keeps what is
// subtracted. A row that has not seen any column yet has −Inf, for which the least number stands. It drops tops.
func (f *attnForward) raiseTops(tops *reg) {
	top, sum := f.take(f.group, "top", "AX"), f.take(f.group, "sum", "CX")
	old, least := f.vec(1, "old tops"), f.vec(2, "least number")
	factor, temp := f.vec(3, "factors of sums"), f.vec(4, "temporary")
	f.op("VMULPS", f.exp.scale, tops, tops)
	f.op("VMOVUPS", mem(top), old)
	f.op("VMAXPS", old, tops, tops)
	f.op("VMOVUPS", tops, mem(top))
	f.op("VMOVUPS", f.bits(0xFF7FFFFF), least)
	f.op("VMAXPS", least, tops, tops)
	f.op("VMAXPS", least, old, old)
	f.op("VMOVUPS", tops, f.p.at("shift"))
	f.op("VSUBPS", tops, old, old)
	f.exp2(&f.exp, factor, old, temp)
	f.op("VMOVUPS", factor, f.p.at("factor"))
	f.op("VMULPS", mem(sum), factor, factor)
	f.op("VMOVUPS", factor, mem(sum))
	f.drop(top, sum, tops, factor, temp)
	f.jump(f.p.at("start"), 0, "JGE", "raised")
	f.scaleRaised(old, least)
	f.mark("raised")
	f.drop(old, least)
}

// scaleRaised scales the accumulated rows whose top has changed, by; zero is lost.
func (f *attnForward) scaleRaised(by, zero *reg) {
	changed := f.hold("K1", "changed")
	f.zero(zero)
	f.op("VCMPPS", "$4", zero, by, changed)
	rows, left := f.hold("AX", "rows left, as bits"), f.hold("DX", "vectors left")
	acc := f.hold("CX", "number of the row, then acc")
	factor, x := zero, f.vec(3, "elements")
	f.op("KMOVW", changed, rows)
	f.mark("raise")
	f.op("TESTL", rows, rows)
	f.op("JZ", "raised")
	f.op("BSFL", rows, acc)
	f.op("LEAL", mem(rows, -1), left)
	f.op("ANDL", left, rows)
	f.op("VBROADCASTSS", f.p.elem("factor", acc, 4), factor)
	f.op("IMULQ", f.p.at("ldacc"), acc)
	f.add(f.group.at("acc"), acc)
	f.mov(f.p.at("vectors"), left)
	f.repeat("scale", left, func() {
		f.op("VMULPS", mem(acc), factor, x)
		f.op("VMOVUPS", x, mem(acc))
		f.add("$64", acc)
	})
	f.op("JMP", "raise")
	f.drop(changed, rows, acc, left, x)
}

// stepRate finds the number of bytes of steps that go with a row: the list's, divided by 16 and rounded up to whole
// steps.
func (f *attnForward) stepRate() {
	left, rate := f.hold("AX", "bytes left"), f.hold("CX", "rate")
	f.mov(f.next, f.p.at("due"))
	f.mov(f.end, left)
	f.sub(f.next, left)
	f.zero(rate)
	f.mark("rate")
	f.add(imm(sizeOf("attnStep")), rate)
	f.sub(imm(16*sizeOf("attnStep")), left)
	f.op("JGT", "rate")
	f.mov(rate, f.p.at("rate"))
	f.drop(left, rate)
}

// expRows writes the rows' lines and adds their sums. Steps of tiles go best in small pieces between the lines of a
// whole row.
func (f *attnForward) expRows() {
	row := f.hold("DX", "row")
	line := expLine{asm: f.asm, exp: &f.exp, sums: f.vecs(0, 2, "sums"), shift: f.vec(16, "shift")}
	for _, n := range []int{4, 8} {
		line.x = append(line.x, f.vec(n, "logits"))
		line.e = append(line.e, f.vec(n+1, "exponentials"))
		line.temp = append(line.temp, f.vec(n+2, "temporary"))
	}
	f.zero(row)
	f.mark("row")
	f.op("VBROADCASTSS", f.p.elem("shift", row, 4), line.shift)
	f.zero(line.sums...)
	f.dueSteps()
	f.jump(f.panels, tileRow/128, "JNE", "alone")
	pieces := f.pieces()
	for n := range tileRow / 128 {
		pieces[n]()
		line.emit(f.logits, f.lines, n)
	}
	pieces[len(pieces)-1]()
	f.op("JMP", "exps")
	f.mark("alone")
	from, to, left := f.hold("AX", "logits of the line"), f.hold("R14", "line"), f.hold("CX", "lines left")
	f.mov(f.logits, from)
	f.mov(f.lines, to)
	f.mov(f.panels, left)
	f.repeat("line", left, func() {
		line.emit(from, to, 0)
		f.add("$128", from)
		f.add(imm(panelStep/2), to)
	})
	f.mark("exps")
	f.drop(from, to, left)
	f.keepSums(row, line.sums)
	f.takeUntil(f.p.at("due"))
	f.fetchSome(f.p.at("fetch"), 2)
	f.add(imm(tileRow), f.logits)
	f.add("$64", f.lines)
	f.op("INCQ", row)
	f.op("CMPQ", row, f.group.at("rows"))
	f.op("JLT", "row")
	f.drop(row)
	line.drop()
	f.addSums()
}

// dueSteps finds the step up to which steps are taken in this row. It jumps where there are none.
func (f *attnForward) dueSteps() {
	due := f.hold("AX", "due")
	f.mov(f.p.at("rate"), due)
	f.add(f.p.at("due"), due)
	f.op("CMPQ", due, f.end)
	f.op("CMOVQGT", f.end, due)
	f.mov(due, f.p.at("due"))
	f.op("CMPQ", f.next, due)
	f.op("JGE", "alone")
	f.drop(due)
}

// keepSums stores a row's sums, a lane each.
func (f *attnForward) keepSums(row *reg, sums []*reg) {
	at := f.hold("AX", "offset of the row's sums")
	f.op("VADDPS", sums[1], sums[0], sums[0])
	f.mov(row, at)
	f.shl(6, at)
	f.op("VMOVUPS", sums[0], f.p.elem("sums", at, 1))
	f.drop(at)
}

// addSums folds the rows' sums and adds them to the group's.
func (f *attnForward) addSums() {
	sums, temp := f.vecs(0, 16, "sums"), f.vecs(16, 2, "temporary")
	for r, x := range sums {
		f.op("VMOVUPS", f.p.at("sums", r), x)
	}
	f.fold16("VADDPS", sums, temp[0], temp[1])
	at := f.take(f.group, "sum", "AX")
	f.op("VADDPS", mem(at), sums[0], sums[0])
	f.op("VMOVUPS", sums[0], mem(at))
	f.drop(at)
	f.drop(append(sums, temp...)...)
}

// expLine turns 32 logits into a line of p, rounded, and adds them to the sums.
type expLine struct {
	*asm
	exp        *exp2Regs
	shift      *reg
	sums       []*reg
	x, e, temp []*reg // of each half
}

// emit is line n of a row.
func (l *expLine) emit(from, to *reg, n int) {
	for i, sum := range l.sums {
		l.op("VMOVUPS", mem(from, 128*n+64*i), l.x[i])
		l.op("VFMSUB213PS", l.shift, l.exp.scale, l.x[i])
		l.exp2(l.exp, l.e[i], l.x[i], l.temp[i])
		l.op("VADDPS", l.e[i], sum, sum)
	}
	l.narrow(l.e[0], l.e[1], l.e[0])
	l.op("VMOVDQU64", l.e[0], mem(to, panelStep/2*n))
}

// drop gives its registers back.
func (l *expLine) drop() {
	l.asm.drop(l.shift)
	for _, all := range [][]*reg{l.sums, l.x, l.e, l.temp} {
		l.asm.drop(all...)
	}
}

func attnFile() []byte {
	a := newAsm(tiles)
	a.include(missingFile)
	a.attnForward()
	for maps := 1; maps <= 2; maps++ {
		a.attnGrad(maps)
	}
	a.productTiles()
	a.dots()
	a.logSums()
	a.normRows()
	a.normBack()
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			a.scaleRows(far, half)
			a.turnRows(far, half)
		}
	}
	a.byteTable()
	a.iotaTable()
	return a.finish()
}

func attnStubs(declare func(format string, a ...any)) {
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
